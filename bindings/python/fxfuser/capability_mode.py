"""``TorchRefsNvfuserCapabilityMode``: traces PyTorch calls down to ``torch.ops.nvprims`` where all of a call can go there.

A call's decomposition is traced in place, once. The first step of it that has no nvprim ends the attempt: what it added to the
graph is taken out again and the call stays whole. So a trace costs about as much as the ops that it holds, however deep they nest.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch._decomp
import torch.overrides
from torch._prims.context import TorchRefsMode, torch_to_refs_map
from torch._prims_common import torch_function_passthrough
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils import _pytree as pytree

from fxfuser import capability_lowerings
from fxfuser.nvprims import is_supported_call, nvprim_of

ALWAYS_SKIPPED = frozenset({"aten._log_softmax.default", "aten._log_softmax_backward_data.default"})


class _Unsupported(BaseException):
    """A step of a decomposition has no nvprim; not an ``Exception``, so that no decomposition catches it."""


@functools.lru_cache(maxsize=4096)
def _name(func: Any) -> str:
    return torch.overrides.resolve_name(func) or str(func)


def _is_prim(func: Any) -> bool:
    if isinstance(func, torch._ops.OpOverload):
        return bool(func.namespace == "prims")
    return isinstance(func, torch._ops.OpOverloadPacket) and func._qualified_op_name.startswith("prims::")


def _is_nvprim(func: Any) -> bool:
    return isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)) and str(func).startswith("nvprims.")


def _has_tensor(result: Any) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(result))


def _writes_in_place(func: Any) -> bool:
    name = getattr(func, "__name__", "").split(".")[0]
    return name.endswith("_") and not name.endswith("__")


def _decomposition(func: Any) -> Callable[..., Any] | None:
    """The reference or decomposition of a call, or None."""
    try:
        ref: Callable[..., Any] | None = torch_to_refs_map().get(func)
    except TypeError:  # not hashable
        return None
    if ref is None and isinstance(func, torch._ops.OpOverload):
        return torch._decomp.decomposition_table.get(func)
    if ref is None and isinstance(func, torch._ops.OpOverloadPacket):
        overload = getattr(func, "default", None) or getattr(func, func.overloads()[0])
        return torch._decomp.decomposition_table.get(overload)
    return ref


def _plain(result: Any) -> Any:
    """References return named tuples that no graph can hold; the calls that they stand for return plain or torch's own ones."""
    if isinstance(result, tuple) and type(result).__name__.startswith("return_types_"):
        kind = getattr(torch.return_types, type(result).__name__.removeprefix("return_types_"), None)
        return tuple(result) if kind is None else kind(tuple(result))
    return result


class _Mark:
    """The end of the graph that is being traced, if one is."""

    def __init__(self) -> None:
        mode = get_proxy_mode()
        self._graph = None if mode is None else mode.tracer.graph
        self._last = None if self._graph is None else self._graph._root._prev

    def roll_back(self) -> None:
        """Takes out the ops that were added since. Sizes stay: the tracer hands them out again."""
        if self._graph is None:
            return
        node = self._graph._root._prev
        while node is not self._last:
            before = node._prev
            is_op = isinstance(node.target, torch._ops.OpOverload) and "sym_" not in str(node.target)
            if not node.users and (is_op or node.target is operator.getitem):
                self._graph.erase_node(node)
            node = before


def _names(skip_ops: Iterable[str]) -> frozenset[str]:
    if isinstance(skip_ops, str):
        raise TypeError(f"skip_ops is a collection of names, not one string: ({skip_ops!r},)")
    return frozenset(skip_ops)


class NvfuserPrimsMode(torch.overrides.TorchFunctionMode):
    """Turns calls of ``torch.ops.prims`` into calls of the nvprims of the same name, where there are such.

    Args:
        skip_ops: names of prims to leave alone, such as ``"prims.sin.default"``.

    Example:
        >>> with NvfuserPrimsMode(), TorchRefsMode():
        ...     gm = make_fx(fn)(x)
    """

    def __init__(self, *, skip_ops: Iterable[str] = ()) -> None:
        self.skip_ops = _names(skip_ops)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> NvfuserPrimsMode:
        """The mode as older code enters it: ``with NvfuserPrimsMode.push():``."""
        return cls(*args, **kwargs)

    def __torch_function__(self, orig_func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if _is_prim(orig_func) and not (self.skip_ops and _name(orig_func) in self.skip_ops):
            prim = nvprim_of(orig_func)
            if prim is not None:
                return prim(*args, **kwargs)
        return orig_func(*args, **kwargs)


class TorchRefsNvfuserCapabilityMode(TorchRefsMode):
    """Traces calls of PyTorch down to nvprims; a call that can't go there as a whole stays what it is.

    Args:
        skip_ops: names of calls to leave alone, as ``torch.overrides.resolve_name`` gives them: ``"torch.sin"``,
            ``"aten.view.default"``, ``"prims.sin.default"``.

    Example:
        >>> with TorchRefsNvfuserCapabilityMode():
        ...     gm = make_fx(fn)(x)
        >>> y = execute(gm, x)
    """

    def __init__(self, *, skip_ops: Iterable[str] = ()) -> None:
        self.skip_ops = _names(skip_ops) | ALWAYS_SKIPPED
        super().__init__(strict=False, prims_mode_cls=functools.partial(NvfuserPrimsMode, skip_ops=self.skip_ops))  # type: ignore[arg-type]
        self._attempting = False
        self._refused: set[Any] = set()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchRefsNvfuserCapabilityMode:
        """The mode as older code enters it: ``with TorchRefsNvfuserCapabilityMode.push():``."""
        return cls(*args, **kwargs)

    def __torch_function__(self, orig_func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if orig_func in torch_function_passthrough:
            return orig_func(*args, **kwargs)
        if _name(orig_func) in self.skip_ops:
            return self._keep(orig_func, args, kwargs)
        if _is_prim(orig_func):
            return self._prim(orig_func, args, kwargs)
        lowering = capability_lowerings.find(orig_func)
        if lowering is not None:
            with self:
                result = lowering(orig_func, *args, **kwargs)
            if result is not NotImplemented:
                return result
        ref = _decomposition(orig_func)
        if ref is None:
            return self._keep(orig_func, args, kwargs)
        if self._attempting:
            with self:
                return ref(*args, **kwargs)
        return self._attempt(orig_func, ref, args, kwargs)

    def _keep(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Runs a call as it is; inside an attempt that ends the attempt, unless the call makes no tensor."""
        if self._attempting and (_writes_in_place(func) or _name(func) in self.skip_ops):
            raise _Unsupported
        result = func(*args, **kwargs)
        if self._attempting and _has_tensor(result) and not _is_nvprim(func):
            raise _Unsupported
        return result

    def _prim(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        prim = nvprim_of(func)
        if prim is not None and is_supported_call(prim, args, kwargs):
            return prim(*args, **kwargs)
        if self._attempting:
            raise _Unsupported
        return func(*args, **kwargs)

    def _attempt(self, func: Any, ref: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        key = _decision_key(func, args, kwargs)
        if key is not None and key in self._refused:
            return func(*args, **kwargs)
        mark = _Mark()
        self._attempting = True
        try:
            with self:
                return _plain(ref(*args, **kwargs))
        except _Unsupported:
            if key is not None:
                self._refused.add(key)
        except Exception as error:  # whatever a decomposition can't do, the call itself may
            warnings.warn(f"get_isolated_graphmodule failed on decomposition: {_name(func)} with error message: {error}", stacklevel=3)
        finally:
            self._attempting = False
        mark.roll_back()
        return func(*args, **kwargs)


def _decision_key(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a refusal depends on: the call, dtypes and ranks of its tensors, all other arguments; None when those can't be compared."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    facts = tuple((leaf.dtype, leaf.ndim) if isinstance(leaf, torch.Tensor) else (type(leaf), leaf) for leaf in leaves)
    if any(isinstance(leaf, (torch.SymInt, torch.SymFloat, torch.SymBool)) for leaf in leaves):
        return None
    try:
        hash(facts)
    except TypeError:
        return None
    return func, facts, spec
