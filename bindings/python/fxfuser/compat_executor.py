"""What ``torch._prims.nvfuser_executor`` held in 2022, on top of fxfuser."""

from __future__ import annotations

import copy
import operator
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
import torch.fx
from torch.fx.experimental.proxy_tensor import get_isolated_graphmodule
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupport
from torch.utils import _pytree as pytree

from fxfuser import _C, nvprims
from fxfuser.warnings import FallbackWarning

DEFAULT_NVFUSER_PYTHON_CONFIG: Mapping[str, Any] = MappingProxyType({"use_python_fusion_cache": True, "allow_single_op_fusion": True})


def execute(gm: torch.fx.GraphModule, *args: Any, executor: str = "aten", executor_parameters: Any = None) -> Any:
    """``fxfuser.execute`` with the default executor of ``torch._prims.executor``."""
    return _C.execute(gm, *args, executor=executor, executor_parameters=executor_parameters)


def nvfuser_execute(gm: torch.fx.GraphModule, *args: Any, executor_parameters: Any = None) -> Any:
    """The whole graph in generated kernels, or an error."""
    return _C.execute(gm, *args, executor="strictly_nvfuser", executor_parameters=executor_parameters)


def nvfuser_execute_partitioned(gm: torch.fx.GraphModule, *args: Any, executor_parameters: Any = None) -> Any:
    """What can be fused in generated kernels, the rest through ATen."""
    return _C.execute(gm, *args, executor="nvfuser", executor_parameters=executor_parameters)


class NvfuserPrimOperatorSupport(OperatorSupport):
    """nvprims and ``getitem`` are supported; a cast only between dtypes that nvprims are traced with."""

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node) -> bool:
        if node.op != "call_function":
            return False
        if node.target is operator.getitem:
            return True
        target = node.target
        if isinstance(target, torch._ops.OpOverloadPacket):
            return target._qualified_op_name.startswith("nvprims::")
        if not isinstance(target, torch._ops.OpOverload) or target.namespace != "nvprims":
            return False
        if target is not torch.ops.nvprims.convert_element_type.default:
            return True
        source = node.args[0].meta.get("val", node.args[0].meta.get("tensor_meta")) if isinstance(node.args[0], torch.fx.Node) else None
        return (source is None or source.dtype in nvprims.TRACED_DTYPES) and node.args[1] in nvprims.TRACED_DTYPES


def _is_node_supported_nvfuser(node: torch.fx.Node) -> bool:
    return NvfuserPrimOperatorSupport().is_node_supported({}, node)


def _is_func_unsupported_nvfuser(mode: Any, orig_func: Any, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], *, skip_ops: Sequence[str] = ()) -> bool:
    """True when a decomposition, traced under ``mode``, holds a node that is not supported."""
    try:
        with mode:
            gm = get_isolated_graphmodule(func, tuple(args), dict(kwargs))
    except Exception as error:
        warnings.warn(f"get_isolated_graphmodule failed on decomposition: {orig_func} with error message: {error}", stacklevel=2)
        return True
    return not all(_is_node_supported_nvfuser(node) for node in gm.graph.nodes if node.op == "call_function")


class NvfuserGraphModule(torch.nn.Module):
    """A partition as a module: calling it runs the partition's graph in generated kernels."""

    def __init__(self, gm: torch.fx.GraphModule, use_python_fusion_cache: bool = True) -> None:
        super().__init__()
        self.gm = gm
        self.executor_parameters = {"use_python_fusion_cache": use_python_fusion_cache}

    def __call__(self, *args: Any) -> Any:
        return nvfuser_execute(self.gm, *args, executor_parameters=self.executor_parameters)


class PartitionedInterpreter(torch.fx.Interpreter):
    """Runs a partitioned module node by node, its ``fused_`` submodules in generated kernels."""

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        submodule = self.fetch_attr(target)
        if str(target).startswith("fused_") and isinstance(submodule, torch.fx.GraphModule):
            return nvfuser_execute(submodule, *args)
        return super().call_module(target, args, kwargs)


def maybe_partition_graph(gm: torch.fx.GraphModule, allow_single_op_fusion: bool, use_python_fusion_cache: bool) -> tuple[torch.fx.GraphModule, bool]:
    """The graph with its supported groups as ``fused_`` submodules, and whether anything is not supported. ``gm`` stays as it is."""
    support = NvfuserPrimOperatorSupport()
    calls = [node for node in gm.graph.nodes if node.op == "call_function"]
    if calls and all(support.is_node_supported({}, node) for node in calls):
        return gm, False
    split = copy.deepcopy(gm)
    views = [f"torch.ops.nvprims.{name}.default" for name in nvprims.names() if nvprims.is_view(name)]
    partitioner = CapabilityBasedPartitioner(
        split,
        support,
        allows_single_node_partition=allow_single_op_fusion,
        non_compute_ops=views,
        allowed_single_node_partition_ops=[f"torch.ops.nvprims.{name}" for name in ("native_batch_norm.default", "var_mean.default", "var_mean.main")],
    )
    partitions = partitioner.propose_partitions()
    partitioner.remove_bookend_non_compute_ops(partitions)
    if not any(partition.nodes for partition in partitions):
        warnings.warn("nothing is fused: no group of this graph is supported, the graph is not supported by nvFuser, fallback to aten executor", FallbackWarning, stacklevel=2)
        return gm, True
    fused = partitioner.fuse_partitions([partition for partition in partitions if partition.nodes])
    for node in fused.graph.nodes:
        if node.op == "call_module" and str(node.target).startswith("fused_"):
            group = fused.get_submodule(str(node.target))
            assert isinstance(group, torch.fx.GraphModule)
            setattr(fused, str(node.target), NvfuserGraphModule(group, use_python_fusion_cache))
    return fused, True


def compute_contiguity(sizes: Sequence[int], strides: Sequence[int]) -> tuple[bool, ...]:
    """For each dim, whether it joins the one after it without a gap (the last: whether its stride is 1).

    Raises:
        RuntimeError: sizes and strides differ in length.
    """
    if len(sizes) != len(strides):
        raise RuntimeError(f"compute_contiguity: {len(sizes)} sizes and {len(strides)} strides")
    after = [*(stride * size for size, stride in zip(sizes[1:], strides[1:], strict=True)), 1]
    return tuple(stride == wanted for stride, wanted in zip(strides, after[: len(strides)], strict=True))


def compute_symbolic_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """1 stays 1, any other size is -1: known at the call."""
    return tuple(1 if size == 1 else -1 for size in shape)


@dataclass(frozen=True)
class nvFuserTensorTemplate:
    """What a definition knows of a tensor."""

    symbolic_shape: tuple[int, ...]
    contiguity: tuple[bool, ...]
    dtype: torch.dtype
    is_cpu: bool


@dataclass(frozen=True)
class nvFuserScalarTemplate:
    """What a definition knows of a number."""

    dtype: type


def to_nvfuser_template_args(args: Any) -> Any:
    """Tensors and numbers as their templates; None, strings and dtypes as they are."""

    def template(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return nvFuserTensorTemplate(compute_symbolic_shape(leaf.size()), compute_contiguity(leaf.size(), leaf.stride()), leaf.dtype, leaf.is_cpu)
        return nvFuserScalarTemplate(type(leaf)) if isinstance(leaf, (bool, int, float, complex)) else leaf

    return pytree.tree_map(template, args)


def _remove_empty_like_fill(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A copy in which ``sub(fill(t, number), x)`` reads the number itself."""
    out = copy.deepcopy(gm)
    for node in out.graph.nodes:
        filled = node.args[0] if node.op == "call_function" and node.target is torch.ops.nvprims.sub.default else None
        if isinstance(filled, torch.fx.Node) and filled.target is torch.ops.aten.fill.Scalar:
            node.args = (filled.args[1], *node.args[1:])
    out.graph.eliminate_dead_code()
    out.recompile()
    return out


_DTYPE_NAMES: Mapping[Any, str] = MappingProxyType({
    torch.cdouble: "ComplexDouble", torch.cfloat: "ComplexFloat", torch.double: "Double", torch.float: "Float", torch.half: "Half",
    torch.bfloat16: "BFloat16", torch.long: "Int", torch.int: "Int32", torch.bool: "Bool", complex: "ComplexDouble", float: "Double", int: "Int", bool: "Bool",
})


def getnvFuserDtype(dtype: Any) -> Any:
    """The frontend's ``DataType`` of a torch dtype or a Python number type; None where there is none."""
    from fxfuser import compat

    name = _DTYPE_NAMES.get(dtype)
    return None if name is None else getattr(compat._frontend("DataType"), name)


class _DtypeMap(Mapping[Any, Any]):
    """torch dtypes and Python number types to the frontend's ``DataType``, looked up when they are asked for."""

    def __getitem__(self, dtype: Any) -> Any:
        if dtype not in _DTYPE_NAMES:
            raise KeyError(dtype)
        return getnvFuserDtype(dtype)

    def __iter__(self) -> Iterator[Any]:
        return iter(_DTYPE_NAMES)

    def __len__(self) -> int:
        return len(_DTYPE_NAMES)


_torch_dtype_to_nvfuser_dtype_map = _DtypeMap()


def __getattr__(name: str) -> Any:
    if name == "make_nvfuser_fusion":
        raise AttributeError("fxfuser builds fusions in its own code: there is no make_nvfuser_fusion; fxfuser.explain(gm, *args) shows what is generated")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
