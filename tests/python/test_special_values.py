"""Powers and remainders at special values: NaN, infinities and the sign of zero are eager's, errors no greater than eager's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import fxfuser
import pytest
import torch
from fxfuser import execute
from torch.fx.experimental.proxy_tensor import make_fx

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SMALL = [0.0, 1.0, 2.0, 3.0, 0.5, 1 / 3, float("inf"), float("nan"), 1e-4, 100.0, 6e4, 5e-8, 7.5, 2.5]
LARGE = [1e30, 1e-30, 3e38, 1e20, 7e15, 123456789.0]
EXPONENTS = (0.3, -0.3, 4.0, -3.0, 5.0, 1.5, 0.5, -0.5, 2, 3, -2, -1, 0, 0.25, 7, float("inf"), float("-inf"), float("nan"))


def values(dtype: torch.dtype) -> torch.Tensor:
    found = SMALL if dtype == torch.float16 else SMALL + LARGE
    return torch.tensor(found + [-value for value in found], dtype=torch.float64).to(dtype)


def pairs(dtype: torch.dtype) -> list[torch.Tensor]:
    return [part.reshape(-1).contiguous() for part in torch.meshgrid(values(dtype), values(dtype), indexing="ij")]


def spread(arg: torch.Tensor) -> torch.Tensor:
    """The same values where eager has no vector loop: that one's remainders are NaN where the quotient is too large for the type."""
    return torch.stack([arg, arg], 1)[:, 0]


def check(fn: Callable[..., torch.Tensor], args: list[torch.Tensor], name: str, plain: bool = False) -> None:
    gm = make_fx(fn)(*args)
    before = fxfuser.stats()["launches"]["host"]
    ours, eager = execute(gm, *args, executor_parameters={"on_error": "raise"}), gm(*(spread(arg) if plain else arg for arg in args)).contiguous()
    assert fxfuser.stats()["launches"]["host"] > before
    special = ~torch.isfinite(eager) | ~torch.isfinite(ours) | (eager == 0)
    wrong = special & ~((ours == eager) & (torch.signbit(ours) == torch.signbit(eager)) | ours.isnan() & eager.isnan())
    # A sum of roundings may pass the border of infinity or of zero on either side.
    edge = torch.nextafter(torch.full_like(eager, torch.inf), torch.zeros_like(eager)).abs()
    wrong &= ~((eager.abs() == edge) | (ours.abs() == edge)) & ~((eager.abs() < torch.finfo(eager.dtype).tiny) & (ours.abs() < torch.finfo(eager.dtype).tiny) & (eager != ours))
    assert not wrong.any(), f"{name}: at {[arg[wrong][:4] for arg in args]}: {ours[wrong][:4]}, eager {eager[wrong][:4]}"
    if args[0].dtype != torch.float64:
        reference = fn(*(arg.double() for arg in args))
        sure = torch.isfinite(eager) & torch.isfinite(ours) & torch.isfinite(reference)
        scale = reference.abs().clamp(min=torch.finfo(eager.dtype).tiny)[sure]  # each element counts alike
        error, others = (((value.double() - reference).abs()[sure]) / scale for value in (ours, eager))
        assert float(error.max()) <= max(1.1 * float(others.max()), torch.finfo(eager.dtype).eps), f"{name}: error {error.max()}, eager's {others.max()}"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_powers(dtype: torch.dtype) -> None:
    x = values(dtype)
    for exponent in EXPONENTS:
        check(partial(torch.pow, exponent=exponent), [x], f"pow {exponent} of {dtype}")
    check(lambda x, y: torch.pow(x, y), pairs(dtype), f"pow of {dtype}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_remainders(dtype: torch.dtype) -> None:
    check(lambda x, y: torch.fmod(x, y), pairs(dtype), f"fmod of {dtype}", plain=True)
    check(lambda x, y: torch.remainder(x, y), pairs(dtype), f"remainder of {dtype}", plain=True)
