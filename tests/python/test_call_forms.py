"""The two readings of a call: execute(gm, *args), and execute(gm, args) where it can mean nothing else."""

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

A, B = torch.randn(3, 4), torch.randn(3, 4)
EXECUTORS = ("nvfuser", "aten")


def graph_of_cat() -> torch.fx.GraphModule:
    """One placeholder that takes a list, without metas."""
    graph = torch.fx.Graph()
    xs = graph.placeholder("xs")
    graph.output(graph.call_function(torch.ops.aten.relu.default, (graph.call_function(torch.ops.aten.cat.default, (xs,)),)))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def graph_of_relu() -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    graph.output(graph.call_function(torch.ops.aten.relu.default, (graph.placeholder("x"),)))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


TAKES_A_LIST: dict[str, Callable[[], torch.fx.GraphModule]] = {
    "imported": graph_of_cat,
    "lowered": lambda: symbolic_trace(lambda xs: torch.cat(xs).relu()),
    "by index": lambda: symbolic_trace(lambda xs: xs[0] * 2 + xs[-1]),
    "with structure": lambda: make_fx(lambda xs: torch.cat(xs).relu())([A, A]),
}
TAKES_A_TENSOR: dict[str, Callable[[], torch.fx.GraphModule]] = {
    "imported": lambda: make_fx(lambda x: torch.relu(x) + 1)(A),
    "without metas": graph_of_relu,
    "lowered": lambda: symbolic_trace(lambda x: torch.relu(x) + 1),
    "method": lambda: symbolic_trace(lambda x: x.relu() + 1),
    "module": lambda: symbolic_trace(torch.nn.Sequential(torch.nn.Tanh())),
    "exported": lambda: torch.export.export(torch.nn.Sequential(torch.nn.Tanh()), (A,)).module(),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", TAKES_A_LIST)
def test_one_placeholder_that_takes_a_list(name: str, executor: str) -> None:
    gm = TAKES_A_LIST[name]()
    for _ in range(2):
        check_close(execute(gm, [A, B], executor=executor), gm([A, B]), "two")
        if name != "with structure":
            check_close(execute(gm, [A], executor=executor), gm([A]), "one")
        if name != "by index":  # [[A, B]] means something to it: two lists are added
            check_close(execute(gm, [[A, B]], executor=executor), gm([A, B]), "a list of arguments")


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", TAKES_A_TENSOR)
def test_one_placeholder_that_takes_a_tensor(name: str, executor: str) -> None:
    gm = TAKES_A_TENSOR[name]()
    for _ in range(2):
        for given in ([A], (A,), A):
            check_close(execute(gm, given, executor=executor), gm(A), str(type(given)))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("trace", [lambda fn: make_fx(fn)(A, B), symbolic_trace], ids=["imported", "lowered"])
def test_two_placeholders(trace: Callable[[Any], torch.fx.GraphModule], executor: str) -> None:
    gm = trace(lambda a, b: a * 2 + b)
    for given in ([A, B], (A, B)):
        check_close(execute(gm, given, executor=executor), gm(A, B), "unpacked")
    for wrong in ([A], [A, B, A]):
        with pytest.raises(TypeError, match=r"takes 2 and was given 1 \(read as execute\(gm, \*args\); a single tuple or list is read as execute\(gm, args\)"):
            execute(gm, wrong, executor=executor)
    with pytest.raises(TypeError, match="takes 2 and was given 3"):
        execute(gm, A, B, A, executor=executor)
    with pytest.raises(TypeError, match="takes 2 and was given 2, by name c"):
        execute(gm, A, c=B, executor=executor)


def test_keywords_and_defaults_of_a_lowered_module() -> None:
    class Scale(torch.nn.Module):
        def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
            return torch.relu(x) * scale

    gm = symbolic_trace(Scale())
    for _ in range(2):
        check_close(execute(gm, A), gm(A), "default")
        check_close(execute(gm, A, scale=3.0), gm(A, scale=3.0), "keyword")
        check_close(execute(gm, [A, 4.0]), gm(A, 4.0), "unpacked")
        check_close(execute(gm, [A]), gm(A), "unpacked with a default")
        check_close(execute(gm, x=A, scale=1.5), gm(A, 1.5), "all by name")


def test_a_wrong_structure_names_both() -> None:
    gm = make_fx(lambda tree: tree["a"] * 2 + tree["b"])({"a": A, "b": B})
    with pytest.raises(TypeError, match="takes 2 in the structure.*'a', 'b'.*was given 1 in"):
        execute(gm, {"a": A})


def test_the_check_of_an_exported_program_is_asked_for_each_kind_of_inputs() -> None:
    """A plan that is found again need not ask it; another size is asked about, and refused as eager refuses it."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(x) * 2

    batch = torch.export.Dim("batch", min=2, max=8)
    gm = torch.export.export(Model(), (torch.randn(4, 8),), dynamic_shapes={"x": {0: batch}}).module()
    for rows in (4, 6, 4, 4):
        x = torch.randn(rows, 8)
        before = fxfuser.stats()["launches"]
        torch.testing.assert_close(fxfuser.execute(gm, x), gm(x))
        assert fxfuser.stats()["launches"]["host"] == before["host"] + 1
    for wrong in (torch.randn(10, 8), torch.randn(4, 9)):
        with pytest.raises(AssertionError) as ours:
            fxfuser.execute(gm, wrong)
        with pytest.raises(AssertionError) as eager:
            gm(wrong)
        assert str(ours.value) == str(eager.value)
