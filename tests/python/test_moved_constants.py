"""A constant that is elsewhere in its module than it was at the import: the module is read anew and fuses as before."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fxfuser import FallbackWarning, execute, explain, prepare
from numerics import check_close

Launches = Callable[[], int]


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(8), requires_grad=False)


class Scaled(torch.nn.Module):
    """A parameter, a buffer and a parameter of a submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(8), requires_grad=False)
        self.register_buffer("shift", torch.randn(8))
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x * self.scale + self.shift) * self.inner.scale


def exported() -> tuple[torch.fx.GraphModule, torch.Tensor]:
    x = torch.randn(3, 8)
    return torch.export.export(Scaled(), (x,)).module(), x


def parameter_to_buffer(module: Any, name: str) -> None:
    value = getattr(module, name).detach() * 2
    delattr(module, name)
    module.register_buffer(name, value)


def buffer_to_parameter(module: Any, name: str) -> None:
    value = getattr(module, name) * 2
    delattr(module, name)
    module.register_parameter(name, torch.nn.Parameter(value, requires_grad=False))


def to_attribute(module: Any, name: str) -> None:
    value = getattr(module, name).detach() * 2
    delattr(module, name)
    module.__dict__[name] = value


MOVES: list[tuple[str, Callable[[Any], None]]] = [
    ("a parameter becomes a buffer", lambda gm: parameter_to_buffer(gm, "scale")),
    ("a buffer becomes a parameter", lambda gm: buffer_to_parameter(gm, "shift")),
    ("a parameter becomes an attribute", lambda gm: to_attribute(gm, "scale")),
    ("one of a submodule moves", lambda gm: parameter_to_buffer(gm.inner, "scale")),
    ("a buffer becomes an attribute of a submodule", lambda gm: to_attribute(gm.inner, "scale")),
]


@pytest.mark.parametrize(("what", "move"), MOVES, ids=[case[0] for case in MOVES])
@pytest.mark.parametrize("executor", ["nvfuser", "strictly_nvfuser"])
def test_a_constant_that_moved_is_found(what: str, move: Callable[[Any], None], executor: str, launches: Launches) -> None:
    gm, x = exported()
    check_close(execute(gm, x), gm(x), "as traced")
    move(gm)
    for calls in (2, 3):
        check_close(execute(gm, x, executor=executor), gm(x), what)
        assert launches() == calls
    assert explain(gm, x).fused_share == 1.0


@pytest.mark.parametrize("wrapped", [False, True])
def test_all_ways_to_call_find_it(wrapped: bool, launches: Launches) -> None:
    gm, x = exported()
    compiled = prepare(gm)
    given: Any = [x] if wrapped else x
    check_close(compiled(given), gm(x), "as traced")
    parameter_to_buffer(gm, "scale")
    check_close(compiled(given), gm(x), "prepared")
    parameter_to_buffer(gm.inner, "scale")
    assert compiled.report().fused_share == 1.0
    check_close(execute(gm, given), gm(x), "executed")
    assert launches() == 3


def test_a_moved_parameter_that_requires_grad_says_so(launches: Launches) -> None:
    gm, x = exported()
    execute(gm, x)
    value = gm.shift * 2
    del gm.shift
    gm.shift = torch.nn.Parameter(value)
    with pytest.warns(FallbackWarning, match="requires grad"):
        out = execute(gm, x)
    out.sum().backward()
    assert gm.shift.grad is not None and launches() == 1
    with torch.no_grad():
        check_close(execute(gm, x), gm(x), "without gradients")
    assert launches() == 2


def test_a_constant_that_is_gone_raises_as_eager_does_until_it_is_back(launches: Launches) -> None:
    gm, x = exported()
    execute(gm, x)
    value = gm.scale.detach()
    del gm.scale
    with pytest.raises(AttributeError, match="scale"), pytest.warns(FallbackWarning, match="the constant scale"):
        execute(gm, x)
    with pytest.raises(AttributeError, match="scale"):
        execute(gm, x)
    with pytest.raises(ValueError, match="the constant scale is no parameter, buffer or attribute"):
        execute(gm, x, executor="strictly_nvfuser")
    gm.register_buffer("scale", value)
    check_close(execute(gm, x), gm(x), "back")
    assert launches() == 2


class Choice(torch.nn.Module):
    def forward(self, x: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        return torch.cond(first, lambda x: (x + 1).tanh(), lambda x: (x * 2).tanh(), (x,)).exp()


def test_the_body_of_a_branch_that_was_swapped_is_seen(launches: Launches) -> None:
    x, first = torch.randn(8), torch.tensor(True)
    gm = torch.export.export(Choice(), (x, first)).module()
    check_close(execute(gm, x, first), gm(x, first), "as traced")
    assert launches() == 2, "the branch and what follows"
    gm.true_graph_0, gm.false_graph_0 = gm.false_graph_0, gm.true_graph_0
    check_close(execute(gm, x, first), gm(x, first), "swapped")
    assert launches() == 4


def test_a_module_whose_submodules_were_swapped_dies(launches: Launches) -> None:
    x, first = torch.randn(8), torch.tensor(True)
    gm = torch.export.export(Choice(), (x, first)).module()
    execute(gm, x, first)
    gm.true_graph_0, gm.false_graph_0 = gm.false_graph_0, gm.true_graph_0
    execute(gm, x, first)
    assert launches() == 4
    dead = weakref.ref(gm)
    del gm
    gc.collect()
    assert dead() is None
