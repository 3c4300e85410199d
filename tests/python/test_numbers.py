"""Numbers among the arguments, in every dtype: rounded to the tensor's dtype where eager does, special ones as eager takes them, and
errors where eager has them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute, explain
from number_samples import CALLS, NUMBERS
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

FLOATING = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
DTYPES = (*FLOATING, torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool)
# What a kernel may be off by, relative to eager.
NEAR = {torch.float64: 1e-13, torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
Launches = Callable[[], int]


def values(dtype: torch.dtype) -> torch.Tensor:
    """Ordinary and special ones; a remainder's quotients stay finite, since eager's vector code and the rest of its loops differ beyond."""
    if dtype == torch.bool:
        return torch.tensor([True, False] * 8)
    if not dtype.is_floating_point:
        return torch.tensor([0, 1, 2, 3, 5, 7, 100, 127] if dtype == torch.uint8 else [0, 1, -1, 3, -5, 7, 100, -128]).to(dtype).repeat(2)
    found = [0.0, -0.0, 1, -1, 0.5, 3, -3.7, 100.3, float("inf"), float("-inf"), 0.25, 65504, 0.1, 2.7, -0.3, -40]
    return torch.tensor(found, dtype=torch.float64).to(dtype)


def is_known(name: str, number: Any, dtype: torch.dtype) -> bool:
    """Where eager's own answer depends on the place of an element, or is that of another formula at a parameter without meaning."""
    if name.startswith(("fmod", "remainder")):
        return isinstance(number, float) and number < 1e-30
    odd = number != number or abs(number) >= 1e39 or 0 < abs(number) < 1e-30
    if name in ("huber_loss", "var.correction", "addcdiv value", "hardtanh_backward"):
        return odd or number == 0
    if name == "smooth_l1_loss" and dtype == torch.float16 and abs(number) > 65504:
        return True  # eager computes it in float16
    return dtype in (torch.float16, torch.bfloat16) and odd and "alpha" in name


def taken(name: str, number: Any, dtype: torch.dtype) -> bool:
    if is_known(name, number, dtype):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            CALLS[name](values(dtype), number)
    except Exception:
        return False
    return True


def all_of(cases: list[tuple[str, Any]], x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(CALLS[name](x, number) for name, number in cases)


def check(ours: torch.Tensor, eager: torch.Tensor, name: str) -> None:
    assert (ours.dtype, ours.shape, ours.stride()) == (eager.dtype, eager.shape, eager.stride()), name
    same = (ours == eager) | (ours != ours) & (eager != eager)
    if eager.is_floating_point():
        least = 1.0 if "alpha" in name else torch.finfo(eager.dtype).tiny  # a difference may cancel
        same |= (ours.double() - eager.double()).abs() <= NEAR[eager.dtype] * eager.double().abs().clamp(min=least)
    assert same.all(), f"{name}: {ours[~same][:4]}, eager {eager[~same][:4]}"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_call_with_a_number(dtype: torch.dtype, launches: Launches) -> None:
    x = values(dtype)
    cases = [(name, number) for name in CALLS for number in NUMBERS if taken(name, number, dtype)]
    assert len(cases) > (900 if dtype.is_floating_point else 300)
    problems, fused = [], set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start in range(0, len(cases), 80):
            part = cases[start : start + 80]
            gm = make_fx(partial(all_of, part))(x)
            for (name, number), a, b in zip(part, execute(gm, x, executor_parameters={"on_error": "raise"}), gm(x), strict=True):
                try:
                    check(a, b, f"{name} with {number!r}")
                except AssertionError as error:
                    problems.append(str(error))
            fused |= {node["target"] for node in fxfuser.explain(gm, x).nodes() if node["status"] == "fused"}
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems[:40])
    assert launches() >= len(cases) // 80
    assert len(fused) >= (50 if dtype.is_floating_point else 25), fused


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.bfloat16), ids=str)
@pytest.mark.parametrize("name", ("clamp.default", "leaky_relu.default", "elu.default", "add.Tensor alpha", "addcmul value", "threshold", "masked_fill.Scalar", "constant_pad_nd", "full_like"))
def test_a_number_beyond_the_dtype_raises_as_in_eager(name: str, dtype: torch.dtype) -> None:
    x, call = values(dtype), CALLS[name]
    with pytest.raises(RuntimeError, match="without overflow") as eager:
        call(x, 1e39)
    gm = make_fx(lambda x: call(x, 0.5) * 2)(x)
    for node in gm.graph.nodes:
        if node.op == "call_function" and not str(node.target).startswith("aten.mul."):
            node.args = tuple(1e39 if arg == 0.5 else arg for arg in node.args)
            node.kwargs = {key: 1e39 if arg == 0.5 else arg for key, arg in node.kwargs.items()}
    gm.recompile()
    with pytest.raises(RuntimeError) as ours:
        execute(gm, x)
    assert str(eager.value).split("\n")[0] in str(ours.value)


REFUSED: list[tuple[str, Callable[[torch.Tensor, float], torch.Tensor], list[float]]] = [
    ("celu", torch.ops.aten.celu.default, [0.0]),
    ("huber_loss mean", lambda x, n: torch.ops.aten.huber_loss.default(x, x + 1, 1, n), [0.0, -1.0, float("nan")]),
    ("huber_loss none", lambda x, n: torch.ops.aten.huber_loss.default(x, x + 1, 0, n), [0.0, -1.0, float("nan")]),
    ("smooth_l1_loss", lambda x, n: torch.ops.aten.smooth_l1_loss.default(x, x + 1, 1, n), [-1.0, float("nan")]),
    ("softshrink", torch.ops.aten.softshrink.default, [-1.0, float("nan")]),
]


@pytest.mark.parametrize(("name", "call", "numbers"), REFUSED, ids=[case[0] for case in REFUSED])
def test_a_number_that_eager_refuses_raises(name: str, call: Callable[[torch.Tensor, float], torch.Tensor], numbers: list[float], launches: Launches) -> None:
    x = torch.randn(5, 7)
    for number in numbers:
        gm = make_fx(lambda x: call(x, 0.25) * 2)(x)
        check_close(execute(gm, x, executor="strictly_nvfuser"), gm(x), name)
        for node in gm.graph.nodes:  # 0.25 is nobody's default, which would not be in the graph
            node.args = tuple(number if arg == 0.25 else arg for arg in node.args)
        gm.recompile()
        with pytest.raises(RuntimeError) as eager:
            gm(x)
        with pytest.raises(RuntimeError) as ours:
            execute(gm, x)
        assert str(eager.value).split("\n")[0] in str(ours.value)
        assert any("eager asks that it is" in node["reason"] for node in explain(gm, x).nodes())
    assert launches() >= len(numbers)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_limits_that_are_nan(dtype: torch.dtype, launches: Launches) -> None:
    """A single number leaves x as it is; two numbers, clamp_min and tensors hand the NaN on."""
    nan, x = float("nan"), torch.cat([values(dtype), torch.tensor([float("nan")], dtype=dtype)])
    limit = torch.full_like(x, nan)

    def function(x: torch.Tensor, limit: torch.Tensor) -> tuple[torch.Tensor, ...]:
        aten = torch.ops.aten
        return (aten.clamp.default(x, nan), aten.clamp.default(x, None, nan), aten.clamp.default(x, nan, 1), aten.clamp.default(x, -1, nan), aten.clamp_min.default(x, nan),
                aten.clamp_max.default(x, nan), aten.clamp.Tensor(x, limit), aten.clamp.Tensor(x, None, limit), aten.hardtanh.default(x, nan, 1), aten.hardtanh.default(x, -1, nan),
                *aten._foreach_clamp_min.Scalar([x], nan), *aten._foreach_clamp_max.ScalarList([x], [nan]), *aten._foreach_clamp_min.List([x], [limit]))

    gm = make_fx(function)(x, limit)
    for ours, eager in zip(execute(gm, x, limit, executor="strictly_nvfuser"), gm(x, limit), strict=True):
        torch.testing.assert_close(ours, eager, rtol=0, atol=0, equal_nan=True)
    assert launches() >= 1


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16), ids=str)
def test_operands_of_other_dtypes_are_rounded_to_the_common_one(dtype: torch.dtype, launches: Launches) -> None:
    """Integers and 0-dim tensors of a wider dtype, as eager's iterator converts them; a single divisor or factor is taken as it is."""
    x, whole, one = torch.linspace(-3, 3, 64).to(dtype), torch.arange(64) * 37 + 1, torch.tensor(0.1, dtype=torch.float64)

    def function(x: torch.Tensor, whole: torch.Tensor, one: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (x + whole, x - whole, x * whole, torch.maximum(x, whole), x < whole, x + one, x * one, x / one, one - x, x < one, torch.logical_xor(x, one * 1e-44), torch.fmod(x, one),
                torch.where(x > 0, x, one))

    gm = make_fx(function)(x, whole, one)
    for index, (ours, eager) in enumerate(zip(execute(gm, x, whole, one, executor_parameters={"on_error": "raise"}), gm(x, whole, one), strict=True)):
        assert torch.equal(ours, eager), (index, ours, eager)
    assert launches() >= 1
