"""Calls of every nvprim: one of each by hand, and those of OpInfo's samples of the torch function that it stands for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from samples import Sample, op_database
from torch.fx.experimental.proxy_tensor import make_fx

UNARY = (
    "abs acos asin atan atanh cos cosh bitwise_not ceil erf erfc exp expm1 floor imag isfinite lgamma log log1p log2 log10 reciprocal neg real "
    "round rsqrt sign sin sinh sqrt tan tanh trunc"
).split()
BINARY = "add atan2 bitwise_and bitwise_or bitwise_xor div eq fmod ge gt le lt mul ne pow remainder sub".split()
OTHERS = (
    "where broadcast_in_dim transpose squeeze view_of view clone convert_element_type sum amax amin var var_mean native_batch_norm full rand_like"
).split()

Call = tuple[tuple[Any, ...], dict[str, Any]]


def by_hand() -> dict[str, list[Call]]:
    """Overload -> calls on float32 (integers for bitwise ops, complex numbers for real and imag)."""
    x, y, batch = torch.rand(3, 4) * 0.8 + 0.1, torch.rand(3, 4) + 0.5, torch.randn(4, 3, 2, 2)
    ints, complexes = torch.randint(-9, 9, (3, 4)), torch.randn(3, 4, dtype=torch.complex64)
    first = {"bitwise_not": ints, "real": complexes, "imag": complexes}
    calls: dict[str, list[Call]] = {f"{name}.default": [((first.get(name, x),), {})] for name in UNARY}
    for name in BINARY:
        pair = (ints, ints + 20) if name.startswith("bitwise") else (x, y)
        calls[f"{name}.default"] = [(pair, {}), ((pair[0], 3), {}), ((pair[0], pair[1][0]), {})]
    del calls["atan2.default"][1]  # the meta function of aten.atan2 takes no number
    calls["div.default"] += [((ints, torch.full((3, 4), 4)), {}), ((ints > 0, ints > -99), {})]
    stats = (torch.randn(3), torch.rand(3), torch.zeros(3), torch.ones(3))
    calls |= {
        "where.default": [((x > 0.5, x, y), {})],
        "broadcast_in_dim.default": [((x, [3, 2, 4], [0, 2]), {}), ((x[:1], [5, 4], [0, 1]), {}), ((x[0, 0], [2, 3], []), {})],
        "transpose.default": [((batch, [0, 2, 3, 1]), {})],
        "squeeze.default": [((x[:1], [0]), {})],
        "view_of.default": [((x,), {})],
        "view.default": [((x, [3, 4], [2, 6]), {}), ((x.t(), [4, 3], [12]), {})],
        "view.shape": [((x, [12]), {})],
        "clone.default": [((x.t(),), {}), ((x.t(),), {"memory_format": torch.contiguous_format})],
        "convert_element_type.default": [((x, torch.float64), {}), ((x, torch.float32), {}), ((x, torch.int32), {})],
        "sum.default": [((x, [1]), {}), ((x, None), {}), ((x > 0.5, [0, 1]), {}), ((x, [0]), {"output_dtype": torch.float64})],
        "amax.default": [((x, [0]), {}), ((x, None), {})],
        "amin.default": [((x, [0, 1]), {})],
        "var.default": [((x, [1]), {}), ((x, [1]), {"correction": 0}), ((x, None), {})],
        "var_mean.default": [((x, True), {}), ((x, False), {})],
        "var_mean.main": [((x, [1]), {}), ((x, [1], False, True), {}), ((x, None), {"correction": 2}), ((x,), {})],
        "native_batch_norm.default": [
            ((batch, *stats, False, 0.1, 1e-5), {}),
            ((batch, None, None, None, None, True, 0.1, 1e-5), {}),
            ((batch, *stats, True, 0.1, 1e-5), {}),
        ],
        "full.default": [(([2, 3], 1.5), {}), (([2], 3), {"dtype": torch.float16, "device": torch.device("cpu")})],
        "rand_like.default": [((x,), {}), ((x,), {"dtype": torch.float64})],
    }
    return calls


def _reduced(name: str) -> Callable[[Any, Any], Call | None]:
    """dims of a sample's first argument or `dim`; without keepdim, which the prims don't have."""

    def call(x: torch.Tensor, sample: Any) -> Call | None:
        given = {**dict(zip(("dim",), sample.args, strict=False)), **sample.kwargs}
        dim = given.pop("dim", None)
        if given.pop("keepdim", False) or isinstance(dim, bool) or (given and set(given) != {"correction"}) or dim == ():
            return None
        return (x, [dim] if isinstance(dim, int) else dim), given if name == "var" else {}

    return call


def _opinfo_call(name: str) -> Callable[[Any, Any], Call | None]:
    if name in ("sum", "amax", "amin", "var"):
        return _reduced(name)
    if name == "where":  # OpInfo's input is the first choice, the condition comes second
        return lambda x, sample: ((sample.args[0], x, *sample.args[1:]), {})
    return lambda x, sample: None if sample.kwargs else ((x, *sample.args), {})


def from_opinfo(dtype: torch.dtype, each: int) -> Iterator[tuple[Sample, Any]]:
    """Up to `each` traced calls an nvprim, with what the torch function itself returns."""
    info = {op.name: op for op in op_database() if not op.variant_test_name}
    for name in (*UNARY, *BINARY, "where", "sum", "amax", "amin", "var", "clone"):
        op = info.get("true_divide" if name == "div" and name not in info else name)
        if op is None or dtype not in op.supported_dtypes("cpu") or (name == "div" and not dtype.is_floating_point):
            continue
        made = 0
        for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
            call = _opinfo_call(name)(sample.input, sample)
            if call is None or made == each or not isinstance(sample.input, torch.Tensor) or sample.input.numel() > 5000:
                continue
            args, kwargs = call
            tensors = tuple(arg for arg in args if isinstance(arg, torch.Tensor))
            packet = getattr(torch.ops.nvprims, name)

            def function(*given: torch.Tensor, args: Any = args, kwargs: Any = kwargs, packet: Any = packet) -> Any:
                rest = iter(given)
                return packet(*(next(rest) if isinstance(arg, torch.Tensor) else arg for arg in args), **kwargs)

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = op.op(sample.input, *sample.args, **sample.kwargs)
            made += 1
            yield Sample(name, f"nvprims.{name}.default", dtype, make_fx(function)(*tensors).graph, tensors), expected
