"""explain for inputs that are not those that the graph was traced or called with: every value is where, and as large as, it would be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from fxfuser import execute, explain
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

Launches = Callable[[], int]


def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.relu(x + y) * 2).sigmoid()


def with_a_stop(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(torch.relu(x + y) * 2, 0).sigmoid() + torch.ones_like(x)


class Chosen(torch.nn.Module):
    """What a branch returns no meta kernel tells."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        kept = torch.cond(x.sum() > 0, lambda x: (x + 1).tanh(), lambda x: (x * 2).tanh(), (x,))
        return (kept + y).exp()


class Plain(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return with_a_stop(x, y)


GRAPHS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "a chain": lambda x, y: make_fx(chain)(x, y),
    "with a node that no row names": lambda x, y: make_fx(with_a_stop)(x, y),
    "exported, with its check of the inputs": lambda x, y: torch.export.export(Plain(), (x, y)).module(),
    "with a branch": lambda x, y: torch.export.export(Chosen(), (x, y)).module(),
}


def inputs(dtype: torch.dtype = torch.float32, rows: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, 4).to(dtype), torch.randn(rows, 4).to(dtype)


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("graph", GRAPHS)
def test_all_values_are_where_the_inputs_are(graph: str, called: bool, launches: Launches) -> None:
    x, y = inputs()
    gm = GRAPHS[graph](x, y)
    if called:
        execute(gm, x, y)
        assert launches() >= 1
    with FakeTensorMode():
        given = torch.empty(3, 4, device="cuda"), torch.empty(3, 4, device="cuda")
    here, there = explain(gm, x, y), explain(gm, *given)
    assert there.fused_share == here.fused_share == 1.0
    assert {kernel["target"] for kernel in there.kernels()} == {"cuda"}
    assert [(row["name"], row["status"], row["reason"]) for row in there.nodes()] == [(row["name"], row["status"], row["reason"]) for row in here.nodes()]
    assert {kernel["target"] for kernel in explain(gm, x, y).kernels()} == {"host"}, "the forecast is as it was"


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("graph", list(GRAPHS)[:2])
def test_all_values_are_of_the_inputs_dtype_and_size(graph: str, called: bool, launches: Launches) -> None:
    gm = GRAPHS[graph](*inputs())
    if called:
        execute(gm, *inputs())
        assert launches() >= 1
    traced, halves, longer = (sum(kernel["bytes"] for kernel in explain(gm, *given).kernels()) for given in (inputs(), inputs(torch.bfloat16), inputs(rows=30)))
    assert halves == traced / 2
    assert longer == traced * 10


def test_a_class_that_was_called_is_not_taken_for_another(launches: Launches) -> None:
    x, y = inputs()
    gm = make_fx(with_a_stop)(x, y)
    for given in (inputs(), inputs(torch.float64)):
        execute(gm, *given)
    assert launches() == 4
    assert "double" not in "".join(kernel["source"] for kernel in explain(gm, x, y).kernels())
    assert "double" in "".join(kernel["source"] for kernel in explain(gm, x.double(), y.double()).kernels())
