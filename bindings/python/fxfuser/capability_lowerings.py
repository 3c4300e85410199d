"""Calls that go to one nvprim directly, before any decomposition is asked."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp.decompositions import native_batch_norm_backward
from torch._prims_common import extract_shape_from_varargs, infer_size

from fxfuser.nvprims import is_supported_call

# The call first, then its own arguments; NotImplemented: the call is to be treated like any other.
Lowering = Callable[..., Any]


def _is_traced(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and is_supported_call(None, (tensor,), {})


def _var_mean(func: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    if not _is_traced(x) or not x.is_floating_point():
        return NotImplemented
    names = ["dim", "unbiased", "keepdim"]
    if args and isinstance(args[0], bool):  # var_mean(x, unbiased): a flag, never the dim 1
        names = ["unbiased"]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if len(args) > len(names) or given.pop("out", None) is not None:
        return NotImplemented
    dim = given.get("dim")
    dims = [dim] if isinstance(dim, int) else dim
    correction = given.get("correction")
    return torch.ops.nvprims.var_mean.main(
        x, dims, given.get("unbiased"), bool(given.get("keepdim", False)), correction=None if correction is None else float(correction)
    )


def _batch_norm_prim(
    x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: Any, momentum: Any, eps: Any
) -> Any:
    if not _is_traced(x) or not x.is_floating_point():
        return NotImplemented
    return torch.ops.nvprims.native_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps)


def _native_batch_norm(func: Any, *args: Any, **kwargs: Any) -> Any:
    names = ("input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    return _batch_norm_prim(*(given.get(name) for name in names)) if "out" not in given else NotImplemented


def _batch_norm(func: Any, *args: Any, **kwargs: Any) -> Any:
    result = _native_batch_norm(func, *args[:8], **{name: value for name, value in kwargs.items() if name != "cudnn_enabled"})
    return result if result is NotImplemented else result[0]


def _functional_batch_norm(
    func: Any,
    input: torch.Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if training:
        torch.nn.functional._verify_batch_size(list(input.size()))  # type: ignore[attr-defined]
    result = _batch_norm_prim(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return result if result is NotImplemented else result[0]


def _cudnn_batch_norm(func: Any, x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float) -> Any:
    result = _batch_norm_prim(x, weight, bias, running_mean, running_var, training, momentum, eps)
    if result is NotImplemented:
        return result
    reserved = torch.empty((0,), dtype=torch.uint8, device=x.device)
    if training:
        return (*result, reserved)
    nothing = weight.new_zeros((0,))
    return result[0], nothing, nothing, reserved


def _cudnn_batch_norm_backward(
    func: Any, x: Any, grad: Any, weight: Any, running_mean: Any, running_var: Any, save_mean: Any, save_var: Any, eps: float, reserved: Any
) -> Any:
    return native_batch_norm_backward(grad, x, weight, running_mean, running_var, save_mean, save_var, True, eps, [True, True, True])


def _shape_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    if len(args) == 0:
        args = (kwargs["shape"],) if "shape" in kwargs else (kwargs["size"],) if "size" in kwargs else ()
    if len(args) == 0 or isinstance(args[0], torch.dtype):
        return None
    return tuple(extract_shape_from_varargs(args, validate=False))


def _view(func: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    shape = _shape_of(args, kwargs)
    if shape is None or not _is_traced(x):
        return NotImplemented
    shape = tuple(infer_size(shape, x.numel()))
    if shape == tuple(x.shape):
        return torch.ops.nvprims.view_of(x)
    return torch.ops.nvprims.view(x, x.shape, shape)


def _view_copy(func: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    view = _view(func, x, *args, **kwargs)
    return view if view is NotImplemented else torch.ops.nvprims.clone(view)


_FACTORY = frozenset({"dtype", "layout", "device", "pin_memory"})


def _rand_like(func: Any, x: torch.Tensor, **kwargs: Any) -> Any:
    if kwargs.pop("requires_grad", False) or not _is_traced(x) or not is_supported_call(None, (), kwargs):
        return NotImplemented
    return torch.ops.nvprims.rand_like(x, **kwargs)


def _full(func: Any, size: Any, fill_value: Any, **kwargs: Any) -> Any:
    given = {name: value for name, value in kwargs.items() if value is not None and value is not False}
    plain = isinstance(fill_value, (bool, int, float)) and given.keys() <= {"dtype", "layout", "device"}
    if not plain or given.pop("layout", torch.strided) is not torch.strided or not is_supported_call(None, (), given):
        return NotImplemented
    return torch.ops.nvprims.full(tuple(size), fill_value, **given)


def _transposed(func: Any, x: torch.Tensor, *owner: Any) -> Any:
    """The properties T, mT, H and mH: a transpose of the last two dims of real tensors."""
    if x.is_complex() or not _is_traced(x) or x.ndim < 2 or (x.ndim > 2 and func not in _BATCHED):
        return NotImplemented
    order = [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]
    return torch.ops.nvprims.transpose(x, order)


_BATCHED = frozenset(getattr(torch.Tensor, name).__get__ for name in ("mT", "mH"))


@functools.cache
def _table() -> dict[Any, Lowering]:
    aten = torch.ops.aten
    table: dict[Any, Lowering] = {}

    def add(lowering: Lowering, *calls: Any) -> None:
        table.update(dict.fromkeys(calls, lowering))

    def packet(op: Any) -> list[Any]:
        return [op, *(getattr(op, overload) for overload in op.overloads() if "out" not in overload)]

    add(_var_mean, torch.var_mean, *packet(aten.var_mean))
    add(_native_batch_norm, torch.native_batch_norm, *packet(aten.native_batch_norm))
    add(_batch_norm, torch.batch_norm, *packet(aten.batch_norm))
    add(_functional_batch_norm, torch.nn.functional.batch_norm)
    add(_cudnn_batch_norm, *packet(aten.cudnn_batch_norm))
    add(_cudnn_batch_norm_backward, *packet(aten.cudnn_batch_norm_backward))
    add(_view, torch.Tensor.view, torch.Tensor.reshape, torch.reshape, aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.view, aten.reshape)
    add(_view_copy, torch.view_copy, aten.view_copy.default)
    add(_rand_like, torch.rand_like, *packet(aten.rand_like)[:2])
    add(_full, torch.full, aten.full, aten.full.default)
    add(_transposed, *(getattr(torch.Tensor, name).__get__ for name in ("T", "mT", "H", "mH")))
    return table


def find(call: Any) -> Lowering | None:
    """The direct lowering of a call, or None."""
    try:
        return _table().get(call)
    except TypeError:  # not hashable
        return None
