"""Samples of ops for the table tests: torch's own OpInfo database, traced to single dispatcher calls, many to one graph.

One graph of many independent samples compiles its kernels in few compiler runs, which is what makes a test of every row in
every dtype affordable.
"""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import torch
import torch.fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
# Not functions of their inputs alone, or not tensors to tensors.
SKIP = ("rand", "normal", "bernoulli", "dropout", "multinomial", "empty", "uniform", "exponential", "geometric", "cauchy", "log_normal",
        "to_sparse", "sparse", "fft", "linalg", "masked.", "special.", "jiterator", "item", "equal", "tolist", "resize", "as_strided",
        "nn.functional.conv", "nn.functional.scaled_dot", "histogram", "svd", "cholesky", "lu", "ormqr", "geqrf", "stft", "istft",
        "signal.", "nn.functional.interpolate", "nn.functional.grid", "nn.functional.max_", "nn.functional.avg", "nn.functional.adaptive",
        "nn.functional.fractional", "nn.functional.ctc", "nn.functional.multi_head", "nn.functional.rrelu", "nn.functional.pdist",
        "cdist", "unique", "sort", "topk", "kthvalue", "mode", "quantile", "median", "ops.aten.")


@dataclass(frozen=True)
class Sample:
    """One dispatcher call: `graph` has one call_function node (and getitems), `args` its placeholders' values."""

    name: str
    target: str
    dtype: torch.dtype
    graph: torch.fx.Graph
    args: tuple[Any, ...]


@functools.cache
def op_database() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

        return [op for op in op_db if not any(op.name.startswith(skip) or skip in op.name for skip in SKIP)]


def _trace(op: Any, sample: Any, pre_dispatch: bool) -> tuple[torch.fx.Graph, tuple[Any, ...]] | None:
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if not tensors or any(tensor.numel() > 20000 or tensor.layout != torch.strided for tensor in tensors):
        return None

    def function(*given: torch.Tensor) -> Any:
        rest = iter(given)
        filled = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        return op.op(first, *args, **kwargs)

    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            gm = make_fx(function, pre_dispatch=pre_dispatch)(*tensors)
    except Exception:  # an op that can't be traced is no sample
        return None
    calls = [node for node in gm.graph.nodes if node.op == "call_function" and "getitem" not in str(node.target)]
    if len(calls) != 1 or any(node.op == "get_attr" for node in gm.graph.nodes):
        return None
    if not isinstance(calls[0].target, torch._ops.OpOverload) or calls[0].target._schema.is_mutable:
        return None
    return gm.graph, tuple(tensors)


def _drawn(op: Any, dtype: torch.dtype) -> Iterator[Any]:
    """What `op.sample_inputs` gives, each drawn from the same seed, without its look at the stack and at every device for each sample (half of a table test's time)."""
    given = iter(op.sample_inputs_func(op, "cpu", dtype, False))
    while True:
        torch.default_generator.manual_seed(1234)
        random.seed(1234)
        numpy.random.seed(1234)
        try:
            yield next(given)
        except StopIteration:
            return


def samples(dtypes: tuple[torch.dtype, ...] = DTYPES, each: int = 3, names: tuple[str, ...] = ()) -> Iterator[Sample]:
    """Up to `each` samples an op, dtype and traced form."""
    for op in op_database():
        if names and op.name not in names:
            continue
        for dtype in dtypes:
            if dtype not in op.supported_dtypes("cpu"):
                continue
            seen: dict[str, int] = {}
            try:
                found = list(_drawn(op, dtype))
            except Exception:
                continue
            # Spread over the list: the first samples of many ops are all alike.
            step = max(1, len(found) // (2 * each))
            for sample in found[::step]:
                for pre_dispatch in (False, True):
                    traced = _trace(op, sample, pre_dispatch)
                    if traced is None:
                        continue
                    graph, args = traced
                    target = next(str(node.target) for node in graph.nodes if isinstance(node.target, torch._ops.OpOverload))
                    if seen.get(target, 0) >= each:
                        continue
                    seen[target] = seen.get(target, 0) + 1
                    yield Sample(op.name, target, dtype, graph, args)


def combine(chosen: list[Sample]) -> tuple[torch.fx.GraphModule, tuple[Any, ...], list[int]]:
    """One GraphModule that runs every sample on its own inputs; `starts[i]` is the first output of sample i."""
    graph = torch.fx.Graph()
    args: list[Any] = []
    outputs: list[torch.fx.Node] = []
    starts: list[int] = []
    bodies: list[tuple[Sample, dict[torch.fx.Node, torch.fx.Node]]] = []
    for index, sample in enumerate(chosen):
        mapping: dict[torch.fx.Node, torch.fx.Node] = {}
        for node, value in zip((n for n in sample.graph.nodes if n.op == "placeholder"), sample.args, strict=True):
            mapping[node] = graph.placeholder(f"s{index}_{node.name}")
            mapping[node].meta["val"] = value
            args.append(value)
        bodies.append((sample, mapping))
    for index, (sample, mapping) in enumerate(bodies):
        for node in sample.graph.nodes:
            if node.op == "call_function":
                mapping[node] = graph.node_copy(node, mapping.__getitem__)
                mapping[node].name = f"s{index}_{node.name}"
        result = next(node for node in sample.graph.nodes if node.op == "output").args[0]
        starts.append(len(outputs))
        outputs += [mapping[leaf] for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.fx.Node)]
    graph.output(tuple(outputs))
    return torch.fx.GraphModule(torch.nn.Module(), graph), tuple(args), starts
