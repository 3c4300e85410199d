"""``impl_nvfuser`` of each nvprim: the call written into a ``FusionDefinition``, as code of 2022 builds fusions from a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Implementation = Callable[..., Any]


def _squeeze(fd: Any, a: Any, dimensions: Any) -> Any:
    return fd.ops.squeeze(a, dimensions) if dimensions else fd.ops.set(a)


def _view(fd: Any, inp: Any, *shapes: Any) -> Any:
    return fd.ops.reshape(inp, shapes[-1])


def _var(fd: Any, inp: Any, dims: Any = None, correction: Any = 1, *, output_dtype: Any = None) -> Any:
    result = fd.ops.var(inp, _all_of(inp, dims), correction)
    return result if output_dtype is None else fd.ops.cast(result, output_dtype)


def _var_mean(fd: Any, inp: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    if isinstance(dim, bool):  # the overload whose second argument is `unbiased`
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return fd.ops.var_mean(inp, _all_of(inp, dim), correction, keepdim)


def _batch_norm(fd: Any, inp: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float) -> Any:
    return fd.ops.batch_norm(inp, weight, bias, running_mean, running_var, momentum, eps, training)


def _full(fd: Any, shape: Any, fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
    import torch

    return fd.ops.full(shape, fill_value, dtype or (torch.get_default_dtype() if isinstance(fill_value, float) else torch.tensor(fill_value).dtype))


def _all_of(inp: Any, dims: Any) -> Any:
    return list(range(inp.ndim)) if dims is None or list(dims) == [] else dims


def _reduction(name: str) -> Implementation:
    def implementation(fd: Any, inp: Any, dims: Any = None, *, output_dtype: Any = None) -> Any:
        return getattr(fd.ops, name)(inp, _all_of(inp, dims), False, output_dtype)

    return implementation


_OTHERS: dict[str, Implementation] = {
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "broadcast_in_dim": lambda fd, a, shape, broadcast_dimensions: fd.ops.broadcast_in_dim(a, shape, broadcast_dimensions),
    "clone": lambda fd, a, **_: fd.ops.set(a),
    "convert_element_type": lambda fd, a, dtype: fd.ops.cast(a, dtype),
    "full": _full,
    "native_batch_norm": _batch_norm,
    "rand_like": lambda fd, a, **_: fd.ops.rand_like(a),
    "squeeze": _squeeze,
    "sum": _reduction("sum"),
    "transpose": lambda fd, a, permutation: fd.ops.permute(a, permutation),
    "var": _var,
    "var_mean": _var_mean,
    "view": _view,
    "view_of": lambda fd, a: fd.ops.set(a),
}


def implementation(name: str) -> Implementation:
    """What writes an nvprim into a definition: ``implementation("sin")(fd, x)`` is ``fd.ops.sin(x)``."""
    return _OTHERS.get(name) or (lambda fd, *args: getattr(fd.ops, name)(*args))
