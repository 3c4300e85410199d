"""A module is built once for arguments of a kind; arguments of another kind give the right answer; both call forms for any number
of placeholders; a steady call costs a thousandth of the first."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

Launches = Callable[[], int]
RAISE = {"on_error": "raise"}
X = torch.rand(4, 6)


def fn(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x * 1.5 + 0.25, -1)


def built() -> tuple[int, int, int]:
    stats = fxfuser.stats()
    return stats["plan_misses"], stats["compiles"], fxfuser._C.handle_count()


def test_arguments_of_a_kind_never_rebuild(launches: Launches) -> None:
    gm = make_fx(fn)(X)
    execute(gm, X, executor_parameters=RAISE)
    before = built()
    for _ in range(20):
        x = torch.rand(4, 6)
        check_close(execute(gm, x, executor_parameters=RAISE), fn(x), "again")
    assert built() == before
    assert launches() == 21


OTHERS: dict[str, Callable[[], torch.Tensor]] = {
    "shape": lambda: torch.rand(5, 3),
    "one row": lambda: torch.rand(1, 6),
    "no rows": lambda: torch.rand(0, 6),
    "rank 1": lambda: torch.rand(7),
    "rank 4": lambda: torch.rand(2, 3, 4, 5),
    "float64": lambda: torch.rand(4, 6, dtype=torch.float64),
    "float16": lambda: torch.rand(4, 6).half(),
    "bfloat16": lambda: torch.rand(4, 6).bfloat16(),
    "transposed": lambda: torch.rand(6, 4).t(),
    "expanded": lambda: torch.rand(1, 6).expand(4, 6),
    "strided": lambda: torch.rand(8, 12)[::2, ::2],
    "an offset": lambda: torch.rand(25)[1:].view(4, 6),
    "channels last": lambda: torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
}


def test_arguments_of_other_kinds_give_the_right_answer(launches: Launches) -> None:
    """On one module, in turn and again in another order: each kind is planned once."""
    gm = make_fx(fn)(X)
    execute(gm, X, executor_parameters=RAISE)
    inputs = {name: make() for name, make in OTHERS.items()}
    before = fxfuser.stats()["plan_misses"]
    for name, x in [*inputs.items(), *reversed(inputs.items())]:
        ours, eager = execute(gm, x, executor_parameters=RAISE), gm(x)
        check_close(ours, eager, name)
    assert fxfuser.stats()["plan_misses"] == before + len(OTHERS)
    assert launches() >= 2 * (len(OTHERS) - 1) + 1, "an empty tensor needs no kernel"


def test_another_device_gives_the_right_answer() -> None:
    gm = make_fx(fn)(X)
    check_close(execute(gm, X, executor_parameters=RAISE), fn(X), "cpu")
    out = execute(gm, torch.rand(4, 6, device="meta"))
    assert out.device.type == "meta" and out.shape == (4, 6)
    check_close(execute(gm, X, executor_parameters=RAISE), fn(X), "cpu again")


def summed(*args: torch.Tensor) -> torch.Tensor:
    total = torch.ones(4, 6)
    for i, arg in enumerate(args):
        total = total + arg * (i + 1.5)
    return total.exp()


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_both_call_forms(count: int, launches: Launches) -> None:
    args = [torch.rand(4, 6) for _ in range(count)]
    names = ", ".join(f"x{i}" for i in range(count))
    gm = make_fx(eval(f"lambda {names}: summed({names})", {"summed": summed}))(*args)  # noqa: S307
    assert sum(node.op == "placeholder" for node in gm.graph.nodes) == count
    expected = summed(*args)
    for given in (args, [args], [tuple(args)]):
        check_close(execute(gm, *given, executor_parameters=RAISE), expected, f"{count} as {len(given)}")
        check_close(execute(gm, *given, executor="aten"), expected, f"{count} as {len(given)}")
    assert launches() == 3
    before = built()
    for given in (args, [args], [tuple(args)]):
        execute(gm, *given, executor_parameters=RAISE)
    assert built() == before, "both forms are one plan"


def of_tree(tree: Any) -> dict[str, Any]:
    leaves = pytree.tree_leaves(tree)
    return {"sum": sum(leaf.sin() for leaf in leaves), "parts": [(leaf * 2, None) for leaf in leaves], "first": leaves[0]}


TREES: dict[str, Callable[[], Any]] = {
    "list": lambda: [torch.rand(3, 4), torch.rand(3, 4)],
    "tuple": lambda: (torch.rand(3, 4), torch.rand(3, 4)),
    "dict": lambda: {"a": torch.rand(3, 4), "b": torch.rand(3, 4)},
    "nested": lambda: {"a": [torch.rand(3, 4), (torch.rand(3, 4),)], "b": {"c": torch.rand(3, 4)}},
    "list of one": lambda: [torch.rand(3, 4)],
}


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("exported", [False, True])
def test_pytrees_in_and_out(name: str, exported: bool, launches: Launches) -> None:
    class Tree(torch.nn.Module):
        def forward(self, tree: Any) -> dict[str, Any]:
            return of_tree(tree)

    first = TREES[name]()
    gm = torch.export.export(Tree(), (first,)).module() if exported else make_fx(of_tree)(first)
    for tree in (first, TREES[name]()):
        expected, ours = of_tree(tree), execute(gm, tree, executor_parameters=RAISE)
        assert pytree.tree_structure(ours) == pytree.tree_structure(expected)
        torch.testing.assert_close(ours, expected)
        assert ours["first"] is pytree.tree_leaves(tree)[0]
    assert launches() >= 2
    before = built()
    torch.testing.assert_close(execute(gm, (first,), executor_parameters=RAISE), of_tree(first))  # one tuple of arguments
    assert built() == before


def test_an_exported_module_with_keywords_and_state(launches: Launches) -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.rand(6))
            self.register_buffer("shift", torch.rand(4, 1))

        def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            y = (x + self.shift) * self.weight * scale
            return y.sigmoid(), {"sum": y.sum(0)}

    gm = torch.export.export(Scaled(), (X,), {"scale": torch.rand(6)}).module()
    with torch.no_grad():
        for _ in range(3):
            x, scale = torch.rand(4, 6), torch.rand(6)
            torch.testing.assert_close(execute(gm, x, scale=scale, executor_parameters=RAISE), gm(x, scale=scale))
    assert launches() >= 3


def test_a_steady_call_is_a_thousandth_of_the_first() -> None:
    """The first call imports, plans and compiles (nothing is on disk); later ones look the plan up and launch."""
    fxfuser.clear_caches(disk=True)
    x = torch.rand(3, 3)
    gm = make_fx(lambda x: torch.softmax(torch.sigmoid(x * 1.75) + x, -1))(x)
    before = fxfuser.stats()["compiles"]
    start = time.perf_counter()
    execute(gm, x, executor_parameters="strict")
    first = time.perf_counter() - start
    assert fxfuser.stats()["compiles"] == before + 1
    steady = []
    for _ in range(50):
        start = time.perf_counter()
        for _ in range(20):
            execute(gm, x, executor_parameters="strict")
        steady.append((time.perf_counter() - start) / 20)
    assert first / min(steady) > 1000, f"first {first * 1e3:.1f} ms, steady {min(steady) * 1e6:.1f} us"
