"""What a plan assumed is checked, and nothing else: one thing changes at a time, and it is a miss with eager's answer or a hit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

Change = Callable[[torch.Tensor], tuple[torch.Tensor, Any]]


def fn(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * 1.5) + x


def base() -> torch.Tensor:
    return torch.randn(8, 16)


def offset(elements: int) -> torch.Tensor:
    """The base's shape at an address that is off by some elements from one that is aligned to 16 bytes."""
    return torch.randn(8 * 16 + elements)[elements:].view(8, 16)


INPUTS: dict[str, tuple[Callable[[], torch.Tensor], bool]] = {
    "values": (base, True),
    "another address, as aligned": (lambda: offset(4), True),
    "nan and infinities": (lambda: torch.full((8, 16), float("nan")), True),
    "requires grad, which no_grad hides": (lambda: base().requires_grad_(), True),
    "a parameter": (lambda: torch.nn.Parameter(base(), requires_grad=False), True),
    "dtype": (lambda: base().double(), False),
    "rank": (lambda: torch.randn(2, 8, 16), False),
    "a size": (lambda: torch.randn(8, 17), False),
    "an empty dim": (lambda: torch.randn(0, 16), False),
    "strides": (lambda: torch.randn(16, 8).t(), False),
    "padded rows": (lambda: torch.randn(8, 20)[:, :16], False),
    "a broadcast": (lambda: torch.randn(1, 16).expand(8, 16), False),
    "alignment": (lambda: offset(1), False),
}


@pytest.fixture
def gm() -> torch.fx.GraphModule:
    module = make_fx(fn)(base())
    with torch.no_grad():
        execute(module, base())
    return module


def outcome(call: Callable[[], Any]) -> tuple[Any, int, int, int]:
    """The result, and how many hits, misses and launches it took."""
    before = fxfuser.stats()
    result = call()
    after = fxfuser.stats()
    return result, *(after[name] - before[name] for name in ("plan_hits", "plan_misses")), after["launches"]["host"] - before["launches"]["host"]


@pytest.mark.parametrize("name", INPUTS)
def test_an_input(gm: torch.fx.GraphModule, name: str) -> None:
    make, hit = INPUTS[name]
    x = make()
    with torch.no_grad():
        result, hits, misses, launched = outcome(lambda: execute(gm, x))
        check_close(result, gm(x), name)
        assert (hits, misses) == ((1, 0) if hit else (0, 1))
        assert launched == (0 if x.numel() == 0 else 1) or name == "an empty dim"
        assert outcome(lambda: execute(gm, x))[1:3] == (1, 0), "the second time it is known"
        assert outcome(lambda: execute(gm, base()))[1:3] == (1, 0), "what was known stays known"


def test_conjugate_and_negative_bits(gm: torch.fx.GraphModule) -> None:
    negative = torch.randn(8, 16, dtype=torch.complex64).conj().imag
    assert negative.is_neg()
    number = torch.randn(8, 16, dtype=torch.complex64)
    for module, x in ((gm, negative), (make_fx(lambda x: x * 2)(number), number.conj())):
        before = fxfuser.stats()["fallbacks"]
        check_close(execute(module, x), module(x), "a lazy bit")
        assert fxfuser.stats()["fallbacks"] == before + 1, "a plan doesn't carry it: the module runs"


STATES: dict[str, tuple[Callable[[], Any], str]] = {
    "the same": (torch.no_grad, "hit"),
    "grad mode": (torch.enable_grad, "miss"),
    "inference mode": (torch.inference_mode, "miss"),
    "autocast": (lambda: torch.autocast("cpu"), "fallback"),
    "deterministic algorithms": (contextlib.nullcontext, "hit"),
}


@pytest.mark.parametrize("name", STATES)
def test_the_threads_state(gm: torch.fx.GraphModule, name: str) -> None:
    state, wanted = STATES[name]
    x = base()
    before = fxfuser.stats()
    with torch.no_grad(), state():
        if name == "deterministic algorithms":
            torch.use_deterministic_algorithms(True)
        try:
            result = execute(gm, x)
        finally:
            torch.use_deterministic_algorithms(False)
        eager = gm(x)
    after = fxfuser.stats()
    counted = {"hit": "plan_hits", "miss": "plan_misses", "fallback": "fallbacks"}[wanted]
    assert {key: after[key] - before[key] for key in ("plan_hits", "plan_misses", "fallbacks")} == {key: int(key == counted) for key in ("plan_hits", "plan_misses", "fallbacks")}
    check_close(result, eager, name)
    assert result.is_inference() == eager.is_inference() and result.requires_grad == eager.requires_grad


def test_options(gm: torch.fx.GraphModule) -> None:
    x = base()
    with torch.no_grad():
        for options in ({"rounding": "eager"}, {"skip_ops": ["tanh"]}, {"on_error": "raise"}, {"deterministic": True}):
            assert outcome(lambda options=options: execute(gm, x, executor_parameters=options))[1:3] == (0, 1), options
            assert outcome(lambda options=options: execute(gm, x, executor_parameters=dict(options)))[1:3] == (1, 0), "an equal dictionary"
        for options in ({}, None, "default"):
            assert outcome(lambda options=options: execute(gm, x, executor="nvfuser", executor_parameters=options))[1:3] == (1, 0), options


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.randn(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * self.scale)


def test_constants() -> None:
    x = base()
    gm = torch.export.export(Scaled(), (x,)).module()
    execute(gm, x)
    gm.scale.mul_(2)
    for name, value, hit in (("written", gm.scale, True), ("exchanged", torch.randn(16), True), ("another dtype", torch.randn(16).double(), False), ("strided", torch.randn(32)[::2], False)):
        gm.scale = value
        result, hits, misses, _ = outcome(lambda: execute(gm, x))
        check_close(result, gm(x), name)
        assert (hits, misses) == ((1, 0) if hit else (0, 1)), name
        assert outcome(lambda: execute(gm, x))[3] == 1, "by a generated kernel, at the latest once the metas are known"


def test_an_edited_module(gm: torch.fx.GraphModule) -> None:
    x = base()
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.aten.tanh.default:
            node.target = torch.ops.aten.sigmoid.default
    gm.recompile()
    with torch.no_grad():
        result, hits, _, launched = outcome(lambda: execute(gm, x))
        check_close(result, gm(x), "edited")
        check_close(result, torch.sigmoid(x * 1.5) + x, "the new op")
        assert (hits, launched) == (0, 1)
        assert outcome(lambda: execute(gm, x))[1:3] == (1, 0)


@pytest.mark.parametrize("edit", ["added", "erased"])
@pytest.mark.parametrize("trace", [lambda fn, x: make_fx(fn)(x), lambda fn, x: torch.fx.symbolic_trace(fn)], ids=["imported", "lowered"])
def test_a_graph_edited_after_a_call_and_not_recompiled_is_told_once(edit: str, trace: Callable[..., torch.fx.GraphModule], recwarn: pytest.WarningsRecorder) -> None:
    x = torch.randn(8)
    gm = trace(lambda x: torch.tanh(x * 1.5) + 1, x)
    execute(gm, x)
    for count in (1, 1):  # the second edit is no news
        last = next(node for node in reversed(gm.graph.nodes) if node.op == "call_function")
        if edit == "added":
            with gm.graph.inserting_after(last):
                new = gm.graph.call_function(torch.ops.aten.neg.default, (last,))
            last.replace_all_uses_with(new, delete_user_cb=lambda user, new=new: user is not new)
        else:
            last.replace_all_uses_with(last.args[0])
            gm.graph.erase_node(last)
        for _ in range(3):
            result, _, _, launched = outcome(lambda: execute(gm, x))
            check_close(result, torch.tanh(x * 1.5) + 1, "as it was")
            check_close(result, gm(x), "as eager")
            assert launched == 1
        told = [str(item.message) for item in recwarn.list]
        assert len(told) == count and "edited and not recompiled" in told[0] and "gm.recompile()" in told[0]
    assert "edited and not recompiled" in str(fxfuser.explain(gm, x))
    gm.recompile()
    check_close(execute(gm, x), gm(x), "recompiled")
    assert len(recwarn.list) == 1 and "edited" not in str(fxfuser.explain(gm, x))


def test_an_edit_that_is_taken_back_is_no_edit(recwarn: pytest.WarningsRecorder) -> None:
    x = torch.randn(8)
    gm = make_fx(lambda x: torch.tanh(x * 1.5) + 1)(x)
    execute(gm, x)
    gm.graph.erase_node(gm.graph.call_function(torch.ops.aten.neg.default, (next(iter(gm.graph.nodes)),)))
    assert outcome(lambda: execute(gm, x))[3] == 1 and not recwarn.list


def test_numbers() -> None:
    gm = make_fx(lambda x, n: torch.tanh(x * 1.5) + n, tracing_mode="symbolic")(base(), 3)
    x = base()
    with torch.no_grad():
        execute(gm, x, 3)
        for number, hit in ((3, True), (4, False), (4, True), (-5, False)):
            result, hits, misses, _ = outcome(lambda n=number: execute(gm, x, n))
            check_close(result, gm(x, number), str(number))
            assert (hits, misses) == ((1, 0) if hit else (0, 1)), number


def test_metas_of_aten_results() -> None:
    """Sizes that depend on data are no part of the key: what an ATen step returned is compared where a kernel reads it."""
    gm = make_fx(lambda x: torch.tanh(torch.masked_select(x, x > 0) * 1.5) + 1)(base())
    some = torch.randn(8, 16).abs()
    some[0, :8] = -1
    with torch.no_grad():
        for _ in range(2):
            execute(gm, some)
        assert outcome(lambda: execute(gm, some))[1:3] == (1, 0)
        other = some.clone()
        other[1] = -1
        result, hits, misses, launched = outcome(lambda: execute(gm, other))
        check_close(result, gm(other), "fewer elements")
        assert (hits, misses, launched) == (0, 1, 2), "the comparison and what follows the selection"
        assert "a result of another shape" in fxfuser.stats()["miss_reasons"]
        check_close(execute(gm, some), gm(some), "as before")
