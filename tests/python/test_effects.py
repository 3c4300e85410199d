"""What surrounds a call: hooks, modes, and what is left of a call that raises half-way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from numerics import check_close
from torch.fx import symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.filterwarnings("ignore::fxfuser.FallbackWarning")


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.act = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.first(x)) * 2


KINDS: dict[str, Callable[[torch.Tensor], torch.fx.GraphModule]] = {
    "imported": lambda x: make_fx(lambda x: torch.tanh(x) * 2 + 1)(x),
    "lowered": lambda x: symbolic_trace(Net()),
    "exported": lambda x: torch.export.export(Net(), (x,)).module(),
}


class Functions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


class Calls(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Functions, Calls])
@pytest.mark.parametrize("kind", KINDS)
def test_active_modes_see_every_call(kind: str, mode: type) -> None:
    x = torch.randn(2, 4)
    with torch.no_grad():
        gm = KINDS[kind](x)
        execute(gm, x)
        for warm in (False, True):
            fresh = gm if warm else KINDS[kind](x)
            with mode() as ours:
                result = execute(fresh, x)
            with mode() as eager:
                expected = fresh(x)
            assert ours.seen == eager.seen > 0
            check_close(result, expected, kind)
        before = sum(fxfuser.stats()["launches"].values())
        execute(gm, x)
        assert sum(fxfuser.stats()["launches"].values()) > before, "fused again without the mode"


HOOKS: dict[str, Callable[[torch.nn.Module], Any]] = {
    "forward": lambda module: module.register_forward_hook(lambda *_: torch.full((2, 4), 7.0)),
    "before": lambda module: module.register_forward_pre_hook(lambda module, args: (args[0] + 100,)),
}


@pytest.mark.parametrize("early", [False, True], ids=["after import", "before import"])
@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("kind", KINDS)
def test_hooks_count_as_long_as_they_are_there(kind: str, hook: str, early: bool, launches: Callable[[], int]) -> None:
    x = torch.randn(2, 4)
    with torch.no_grad():
        gm = KINDS[kind](x)
        plain = gm(x)
        if not early:
            check_close(execute(gm, x), plain, "no hook")
        handle = HOOKS[hook](gm)
        expected = gm(x)
        assert not torch.equal(expected, plain)
        for _ in range(2):
            assert torch.equal(execute(gm, x), expected)
        assert fxfuser.explain(gm, x).fused_share == 0
        with pytest.raises(ValueError, match="hooks"):
            execute(gm, x, executor="strictly_nvfuser")
        handle.remove()
        before = launches()
        check_close(execute(gm, x), plain, "hook removed")
        check_close(execute(gm, x), plain, "hook removed")
        assert launches() > before


@pytest.mark.parametrize("path", ["first", "act", "act.0"])
def test_hooks_of_submodules(path: str) -> None:
    x = torch.randn(2, 4)
    with torch.no_grad():
        gm = symbolic_trace(Net())
        execute(gm, x)
        handle = gm.get_submodule(path).register_forward_hook(lambda module, args, result: result + 1)
        assert torch.equal(execute(gm, x), gm(x))
        handle.remove()
        check_close(execute(gm, x), gm(x), "hook removed")


@pytest.mark.parametrize("called", ["cond", "guards"])
def test_hooks_of_submodules_that_an_imported_graph_calls(called: str) -> None:
    class Branch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if called == "guards":
                return torch.tanh(x) * 2
            return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() + 1, (x,)) + 1

    x = torch.randn(2, 4)
    shapes = ({0: torch.export.Dim("n", min=2, max=10)},) if called == "guards" else None
    gm = torch.export.export(Branch(), (x,), dynamic_shapes=shapes).module()
    with torch.no_grad():
        check_close(execute(gm, x), gm(x), "no hook")
        inner = [module for name, module in gm.named_modules() if name]
        if not inner:
            pytest.skip("this torch exports no guards module")
        calls: list[int] = []
        handles = [module.register_forward_hook(lambda *_: calls.append(1)) for module in inner]
        gm(x)
        expected = len(calls)
        calls.clear()
        check_close(execute(gm, x), gm(x), "hook")
        assert len(calls) == 2 * expected
        for handle in handles:
            handle.remove()


def test_hooks_for_all_modules() -> None:
    x = torch.randn(2, 4)
    with torch.no_grad():
        modules = [KINDS[kind](x) for kind in KINDS]
        for gm in modules:
            execute(gm, x)
        handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, result: None if result is None else result + 1)
        try:
            for gm in modules:
                assert torch.equal(execute(gm, x), gm(x))
        finally:
            handle.remove()
        for gm in modules:
            check_close(execute(gm, x), gm(x), "hook removed")


def fails_late(x: torch.Tensor, index: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    y.mul_(x)
    first = torch.take(y, index)  # raises for an index out of range
    x.mul_(2)
    y.add_(3)
    return first + x.sum() + (y * x).sum()


def fails_between(x: torch.Tensor, index: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x * 2 + 1
    x.copy_(z)
    taken = torch.take(x, index)
    w = z * 3 + y
    return w + taken.sum()


def fails_first(x: torch.Tensor, index: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    taken = torch.take(x, index)
    x.add_(1)
    return x * y + taken.sum()


@pytest.mark.parametrize("fn", [fails_late, fails_between, fails_first])
def test_writes_before_an_op_that_raises_are_done(fn: Callable[..., torch.Tensor], launches: Callable[[], int]) -> None:
    good, bad = torch.tensor([1, 2]), torch.tensor([1, 200])
    gm = make_fx(fn)(torch.ones(3, 4), good, torch.ones(3, 4))
    for warm in (False, True, True):
        x, y = torch.randn(3, 4), torch.randn(3, 4)
        if warm:
            execute(gm, x.clone(), good, y.clone())
        ours, eager = [x.clone(), bad, y.clone()], [x.clone(), bad, y.clone()]
        with pytest.raises(IndexError):
            gm(*eager)
        with pytest.raises(IndexError):
            execute(gm, *ours)
        check_close(ours, eager, f"{fn.__name__}, warm {warm}")
    assert launches() > 0
