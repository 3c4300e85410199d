"""Forms of host kernels that sizes pick: inputs turned by squares, reductions in lanes, copies that border a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
import torch.nn.functional as F
from fxfuser import execute
from torch.fx.experimental.proxy_tensor import make_fx

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.int16, torch.int8, torch.bool]


def check(fn: Callable[..., Any], *args: torch.Tensor, views: int = 0, rtol: float = 0, atol: float = 0) -> None:
    """One generated kernel, as many ATen calls as views enter it, eager's values and strides."""
    gm, before = make_fx(fn)(*args), fxfuser.stats()
    out, right, after = execute(gm, *args, executor_parameters={"on_error": "raise"}), fn(*args), fxfuser.stats()
    assert after["launches"]["host"] == before["launches"]["host"] + 1 and after["aten_steps"] == before["aten_steps"] + views
    torch.testing.assert_close(out, right, rtol=rtol, atol=atol, equal_nan=True)
    assert out.stride() == right.stride()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(16, 16), (64, 128), (70, 131), (17, 200)], ids=str)
def test_turned_inputs(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    x, y = (torch.randn(shape) * 50).to(dtype), torch.zeros(shape[::-1], dtype=dtype)
    check(lambda x, y: torch.where(x.t() != y, x.t(), y), x, y, views=2)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (4, 513), (2, 3, 1000)], ids=str)
def test_first_of_equals_and_nan_in_lanes(shape: tuple[int, ...]) -> None:
    x = torch.randint(-4, 5, shape).float()
    for fn in (lambda x: x.argmax(-1), lambda x: x.argmin(-1), lambda x: x.argmax()):
        check(fn, x)
        holed = x.clone()
        holed.view(-1)[x.numel() // 2] = float("nan")
        check(fn, holed)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 7), (5, 700), (1, 200000), (2, 3, 300)], ids=str)
def test_the_first_position_where_nothing_exceeds_the_start_value(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    low, high = (-torch.inf, torch.inf) if dtype.is_floating_point else (False, True) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    least = [lambda x: x.max(-1).indices, *([] if dtype == torch.bool else [lambda x: x.argmax(-1), lambda x: x.argmax()])]  # eager has no argmax of booleans
    most = [lambda x: x.min(-1).indices, *([] if dtype == torch.bool else [lambda x: x.argmin(-1), lambda x: x.argmin()])]
    for start, other, fns in ((low, high, least), (high, low, most)):
        for fn in fns:
            x = torch.full(shape, start, dtype=dtype)
            check(fn, x)
            x[..., shape[-1] // 2 :] = other
            check(fn, x)


def test_positions_that_fall_along_the_memory() -> None:
    x = torch.randint(-2, 3, (6, 500, 40)).float()
    x[0, 3, 5] = x[4, 499, 1] = float("nan")
    check(lambda x: x.permute(2, 0, 1).argmax(), x, views=1)
    check(lambda x: x.transpose(0, 1).argmin(), x, views=1)
    check(lambda x: x.flip(1).transpose(1, 2).argmax(-1), x)
    check(lambda x: x.flip(1, 2).flatten(1).argmax(-1), x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int32], ids=str)
@pytest.mark.parametrize("shape", [(1, 300), (3, 1000), (7, 5000), (4, 70, 300), (2, 3, 20000)], ids=str)
def test_long_rows_read_ahead_stay_within_their_values(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x = (torch.randn(shape) * 20).to(dtype)
    outer = list(range(len(shape)))[::2]
    check(lambda x: x.sum(-1), x, rtol=1e-6 if dtype == torch.float32 else 2e-3 if dtype.itemsize == 2 else 1e-12, atol=1e-2 if dtype.itemsize == 2 else 1e-3)
    check(lambda x: x.amax(outer), x)
    if dtype.is_floating_point:
        half = dtype.itemsize == 2
        for fn in (lambda x: x.var(-1), lambda x: torch.softmax(x, -1), lambda x: F.layer_norm(x, shape[-1:])):
            check(fn, x, rtol=1e-2 if half else 1e-5, atol=1e-2 if half else 1e-5)


def test_a_copy_at_the_border_is_written_by_the_kernel() -> None:
    x = torch.randn(2, 24, 20, 36)
    check(lambda x: torch.relu(x).permute(0, 2, 3, 1).contiguous(), x)
    check(lambda x: torch.relu(x.permute(0, 3, 1, 2).contiguous() + 1), x, views=1)
    gm, before = make_fx(lambda x: x.permute(0, 2, 3, 1).contiguous())(x), fxfuser.stats()["launches"]["host"]
    assert torch.equal(execute(gm, x), gm(x)) and fxfuser.stats()["launches"]["host"] == before, "a small one alone stays with ATen"


def test_sine_of_large_angles() -> None:
    x = torch.cat([torch.randn(4000) * scale for scale in (1e-3, 1, 1e3, 1e9, 1e30)] + [torch.tensor([0.0, -0.0, float("inf"), float("nan"), 3.4e38])])
    for fn in (torch.sin, torch.cos):
        check(fn, x, rtol=2e-7, atol=1e-30)
    out = execute(make_fx(torch.sin)(x), x)
    assert torch.equal(torch.signbit(out[-5:-3]), torch.tensor([False, True]))
