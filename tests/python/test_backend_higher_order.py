"""Higher-order ops under the backend: what they call runs in generated kernels too, forward and backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import fxfuser
import pytest
import torch
from numerics import check_close
from torch._higher_order_ops import scan, while_loop
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

Launches = Callable[[], int]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", fxfuser.FallbackWarning)
        yield


def compiled(function: Callable[..., Any], **keywords: Any) -> Callable[..., Any]:
    made: Callable[..., Any] = torch.compile(function, backend="fxfuser", fullgraph=True, **keywords)
    return made


def test_a_loop_and_its_body_are_fused(launches: Launches) -> None:
    def function(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        _, y = while_loop(lambda i, y: i < turns, lambda i, y: (i + 1, torch.sin(y) * 2), (torch.zeros((), dtype=torch.int64), torch.exp(x)))
        return torch.tanh(y) + 1

    x, call = torch.randn(9, 5), compiled(function)
    for turns in (0, 1, 4):
        y, before = torch.exp(x), launches()
        for _ in range(turns):
            y = torch.sin(y) * 2
        check_close(call(x, torch.tensor(turns)), torch.tanh(y) + 1, f"{turns} turns")
        assert launches() - before >= 2 + turns  # exp, the body each time, tanh


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_both_branches_are_fused_and_trained(sign: float, launches: Launches) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda t: (torch.sin(t) * 2 + 1).exp(), lambda t: (torch.cos(t) - 1) * 3, (x * 2,))

    found = []
    for call in (function, compiled(function)):
        x = (sign * torch.rand(9, 5, generator=torch.Generator().manual_seed(1))).requires_grad_()
        y = call(x)
        y.sum().backward()
        found.append((y.detach(), x.grad))
    check_close(found[1], found[0], "cond")
    assert launches() >= 4  # before the branch, in it, and both again backward


def test_a_scan_is_fused(launches: Launches) -> None:
    def function(x: torch.Tensor) -> Any:
        return scan(lambda carry, row: (torch.sin(carry) * 0.5 + row, torch.cos(carry) * row), x.new_zeros(5), x)

    x = torch.randn(7, 5)
    carry, rows = torch.zeros(5), []
    for row in x:
        rows.append(torch.cos(carry) * row)
        carry = torch.sin(carry) * 0.5 + row
    check_close(compiled(function)(x), [carry, torch.stack(rows)], "scan")
    assert launches() >= 7


def test_a_region_compiled_once_is_fused(launches: Launches) -> None:
    @torch.compiler.nested_compile_region
    def block(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) * 2 + x

    def function(x: torch.Tensor) -> torch.Tensor:
        return block(block(x)) * 2

    x = torch.randn(7, 5)
    inner = torch.sin(x) * 2 + x
    check_close(compiled(function)(x), (torch.sin(inner) * 2 + inner) * 2, "region")
    assert launches() == 3


def test_flex_attention_is_opened_and_fused(launches: Launches) -> None:
    places = torch.arange(16)

    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        past = create_block_mask(lambda b, h, i, j: i >= j, None, None, 16, 16, device="cpu")
        return torch.tanh(flex_attention(torch.sin(q), k, v, score_mod=lambda score, b, h, i, j: score + (i - j) * 0.1, block_mask=past)) * 2

    q, k, v = (torch.randn(1, 2, 16, 8) for _ in range(3))
    scores = torch.sin(q) @ k.transpose(-1, -2) / 8**0.5 + (places[:, None] - places) * 0.1
    scores = scores.masked_fill(places[:, None] < places, -torch.inf)
    torch.testing.assert_close(compiled(function)(q, k, v), torch.tanh(scores.softmax(-1) @ v) * 2, rtol=1e-5, atol=1e-5)
    assert launches() >= 3


def test_a_function_with_its_own_backward(launches: Launches) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return torch.sin(x) * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return grad * torch.cos(x) * 2

    x = torch.randn(7, 5, requires_grad=True)
    compiled(lambda x: Twice.apply(x).exp())(x).sum().backward()
    assert x.grad is not None
    check_close(x.grad, torch.exp(torch.sin(x) * 2).detach() * torch.cos(x).detach() * 2, "grad")
    assert launches() == 2


def test_bodies_of_a_module_of_ones_own_are_fused(launches: Launches) -> None:
    """The same for `execute` on a graph that holds a cond."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda t: torch.sin(t) * 2 + 1, lambda t: torch.cos(t) * 3 - 1, (x,))

    x = torch.rand(6, 4)
    gm = make_fx(function, tracing_mode="symbolic")(x)
    for at in (x, -x):
        before = launches()
        check_close(fxfuser.execute(gm, at), torch.sin(at) * 2 + 1 if at is x else torch.cos(at) * 3 - 1, "cond")
        assert launches() > before


def branches(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(torch.cond(x.sum() > 0, lambda t: torch.sin(t) * 2 + 1, lambda t: torch.cos(t) * 3 - 1, (x,)))


BODY_OPS = ["sin", "mul", "add", "cos", "sub"]


@pytest.mark.parametrize("skipped, count", [([], 1), (BODY_OPS, 0)])
def test_bodies_have_the_options_of_the_call(skipped: list[str], count: int, launches: Launches) -> None:
    """A call without options after one with them has its own again."""
    x = torch.rand(6, 4) + 0.123
    options = {"skip_ops": ["sum", "gt", *skipped]}
    expected = torch.exp(torch.sin(x) * 2 + 1)
    check_close(compiled(branches, options=options)(x), expected, "cond")
    assert launches() == 1 + count
    gm = make_fx(branches, tracing_mode="symbolic")(x)
    for parameters, more in ((options, 1 + count), (None, 3)):
        before = launches()
        check_close(fxfuser.execute(gm, x, executor_parameters=parameters), expected, "execute")
        assert launches() - before == more


def test_a_body_draws_by_the_options_of_the_call(launches: Launches) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda t: torch.nn.functional.dropout(t, 0.5) * 2, lambda t: t - 1, (x,))

    x = torch.ones(40, 30)
    eager, ours = [], []
    for found, call in ((eager, compiled(function)), (ours, compiled(function, options={"fused_rng": True}))):
        torch._dynamo.reset()
        for _ in range(2):
            torch.manual_seed(2)
            found.append(call(x))
    torch.manual_seed(2)
    assert torch.equal(eager[0], function(x)) and torch.equal(eager[0], eager[1])
    assert torch.equal(ours[0], ours[1]) and not torch.equal(ours[0], eager[0])
    assert 0.4 < float((ours[0] == 0).double().mean()) < 0.6
    assert launches() >= 4
