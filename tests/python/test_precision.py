"""Inside a fusion a 16-bit value keeps the precision that it was computed in, whichever op made it; explicit casts round."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fxfuser import execute
from numerics import check_against_reference
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

RAISE = {"on_error": "raise"}
FLOATS16 = (torch.bfloat16, torch.float16)


class Reference(torch.fx.Interpreter):
    """A graph of 16-bit values in float64; explicit casts to 16 bits round."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target is torch.ops.aten._to_copy.default and kwargs.get("dtype") in FLOATS16:
            return args[0].to(kwargs["dtype"]).double()
        return super().call_function(target, args, kwargs)


def centred(x: torch.Tensor, dim: int) -> torch.Tensor:
    s = torch.sigmoid(x)
    variance, mean = torch.var_mean(s, dim, keepdim=True, correction=0)
    return (s - mean) * torch.rsqrt(variance + 1e-5)


def cases() -> dict[str, Callable[[torch.Tensor, int], Any]]:
    return {
        "var_mean": centred,
        "mean": lambda x, dim: torch.sin((x * 3 - 2 - (x * 3 - 2).mean(dim, keepdim=True)) * 50),
        "layer_norm statistics": lambda x, dim: (torch.tanh(x) - torch.native_layer_norm(torch.tanh(x), x.shape[-1:], None, None, 1e-5)[1]) * 100,
        "logsumexp": lambda x, dim: (x * 1.5 - torch.logsumexp(x * 1.5, dim, keepdim=True)) * 4,
        "softmax": lambda x, dim: (torch.softmax(x * 1.5, dim) * x.shape[dim] - 1) * 60,
        "log_softmax": lambda x, dim: torch.exp(torch.log_softmax(x * 4, dim)) * 8,
        "std": lambda x, dim: torch.tanh(x) - torch.tanh(x).std(dim, keepdim=True, correction=0),
        "norm": lambda x, dim: torch.tanh(x) / torch.linalg.vector_norm(torch.tanh(x), 2, dim, keepdim=True),
        "layer_norm then sums": lambda x, dim: torch.layer_norm(x * x, x.shape[-1:]).sum(0),
        "cast kept": lambda x, dim: (torch.sigmoid(x).to(x.dtype).float() - torch.sigmoid(x).float().mean(dim, keepdim=True)) * 10,
    }


@pytest.mark.parametrize("dtype", FLOATS16, ids=str)
@pytest.mark.parametrize("name", cases())
def test_what_composite_ops_return_is_not_rounded_inside(name: str, dtype: torch.dtype, launches: Callable[[], int]) -> None:
    fn = cases()[name]
    ran = 0
    for shape in ((24, 16), (3, 40), (7, 1), (1, 9), (2, 5, 33)):
        for dim in (0, -1):
            for spread in (0.0, 0.02, 1.0):  # values of a row that are equal, nearly equal, and not
                x = (1.3 + spread * torch.randn(shape)).to(dtype)
                gm = make_fx(functools.partial(fn, dim=dim))(x)
                ours, eager = execute(gm, x, executor_parameters=RAISE), gm(x)
                reference = Reference(gm).run(x.double())
                for a, b, c in zip(*map(pytree.tree_leaves, (ours, eager, reference)), strict=True):
                    # A float32 statistic of equal values may be off by its own last bit.
                    close = (a.double() - c.double()).abs().max() < 1e-3 if spread == 0.0 else False
                    if not close:
                        check_against_reference(a, b, c.double(), f"{name} {dtype} {shape} dim {dim} spread {spread}")
                ran += 1
    assert launches() >= ran


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (1, 2), (0, 1, 2)], ids=str)
def test_variances_are_as_exact_as_eagers(dims: tuple[int, ...], launches: Callable[[], int]) -> None:
    """Eager's CPU kernels accumulate float32 in float64: each result is the nearest float32 to the exact one, or next to it."""
    x = torch.randn(7, 65, 33) * torch.logspace(-3, 3, 33) + 0.3
    ran = 0
    for fn in (torch.var, torch.std, torch.var_mean, torch.std_mean):
        gm = make_fx(functools.partial(fn, dim=dims))(x)
        ours, eager, reference = execute(gm, x, executor_parameters=RAISE), gm(x), fn(x.double(), dim=dims)
        for a, b, c in zip(*map(pytree.tree_leaves, (ours, eager, reference)), strict=True):
            unit = torch.finfo(torch.float32).eps * c.abs()
            error, others = ((a.double() - c).abs() / unit).max(), ((b.double() - c).abs() / unit).max()
            assert error <= max(1.1 * float(others), 0.51), f"{fn.__name__} over {dims}: {error} units, eager's {others}"
        ran += 1
    assert launches() >= ran
