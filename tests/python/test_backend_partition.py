"""What the forward graph saves for the backward graph: bytes beside torch's own partition function, the cut itself, and the option."""

from __future__ import annotations

import copy
import inspect
import random
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import networkx
import pytest
import torch
from fxfuser import _C
from fxfuser.backend import partition_fn
from model_table import build, result
from torch._functorch import partitioners

MODELS = ("bert", "gpt2", "llama", "resnet", "unet", "convnext")
UNBOUNDED = 1 << 60


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def saved_bytes(forward: torch.fx.GraphModule, outputs: int, static: list[int]) -> int:
    """Bytes of what a forward graph returns beyond its outputs, parameters and buffers left out."""
    placeholders = list(forward.graph.find_nodes(op="placeholder"))
    kept = {placeholders[at] for at in static}
    return sum(partitioners._size_of(node) for node in forward.graph.output_node().args[0][outputs:] if node not in kept)


@pytest.mark.parametrize("name", MODELS)
def test_no_more_bytes_are_saved_than_by_torch(name: str, launches: Callable[[], int]) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("timm")
    found: list[tuple[int, int]] = []

    def both(joint: torch.fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, static_lifetime_input_indices: list[int] | None = None, **more: Any) -> Any:
        counts = []
        for function in (partitioners.min_cut_rematerialization_partition, partition_fn.partition):
            made = function(copy.deepcopy(joint), inputs, num_fwd_outputs=num_fwd_outputs, static_lifetime_input_indices=static_lifetime_input_indices, **more)
            counts.append(saved_bytes(made[0], num_fwd_outputs, static_lifetime_input_indices or []))
        found.append((counts[0], counts[1]))
        return made

    model, args, kwargs = build(name)
    with mock.patch.dict(partition_fn.PARTITIONS, {"bytes": both}):
        result(torch.compile(model, backend="fxfuser")(*args, **kwargs)).square().mean().backward()
    assert found and launches() >= 2
    for by_torch, ours in found:
        assert ours <= by_torch


def pointwise(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.exp(torch.sin(torch.tanh(x) * 2) + 1) @ w


@pytest.mark.parametrize("name", ["bytes", "torch"])
def test_the_option_chooses_and_gradients_are_eagers(name: str, launches: Callable[[], int]) -> None:
    compiled = torch.compile(pointwise, backend="fxfuser", options={"partition": name})
    start = torch.randn(7, 9), torch.randn(9, 3)
    found = []
    for call in (pointwise, compiled):
        x, w = (t.clone().requires_grad_() for t in start)
        y = call(x, w)
        y.square().sum().backward()
        found.append((y.detach(), x.grad, w.grad))
    torch.testing.assert_close(found[1], found[0])
    assert launches() >= 2


def test_an_unknown_partition_lists_the_known() -> None:
    with pytest.raises(Exception, match="bytes, torch"):
        torch.compile(pointwise, backend="fxfuser", options={"partition": "other"})(torch.ones(2, 2), torch.ones(2, 2))


def chain(x: torch.Tensor) -> torch.Tensor:
    for _ in range(6):
        x = torch.sin(x) * torch.cos(x + 1)
    return x


def test_a_chain_of_pointwise_ops_saves_its_input_alone(launches: Callable[[], int]) -> None:
    saved: list[torch.Tensor] = []
    x = torch.randn(50, 40, requires_grad=True)
    compiled = torch.compile(chain, backend="fxfuser")
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        y = compiled(x)
    assert [tuple(t.shape) for t in saved] == [(50, 40)]
    (ours,) = torch.autograd.grad(y.sum(), x)
    (eager,) = torch.autograd.grad(chain(x).sum(), x)
    torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5)
    assert launches() == 2


def test_what_a_cut_costs_is_the_least() -> None:
    choose = random.Random(0)
    for _ in range(60):
        count = choose.randrange(2, 14)
        edges = [(choose.randrange(count), choose.randrange(count), choose.choice((0, 1, 5, 9, UNBOUNDED))) for _ in range(choose.randrange(1, 40))]
        edges = [edge for edge in edges if edge[0] != edge[1]]
        graph = networkx.DiGraph()
        graph.add_nodes_from(range(count))
        for start, end, capacity in edges:
            held = graph.get_edge_data(start, end, {"capacity": 0})["capacity"]
            graph.add_edge(start, end, capacity=min(held + capacity, UNBOUNDED))
        cost = networkx.maximum_flow_value(graph, 0, count - 1)
        if cost >= UNBOUNDED:
            with pytest.raises(ValueError, match="finite"):
                _C.min_cut(count, edges, 0, count - 1)
            continue
        beyond = _C.min_cut(count, edges, 0, count - 1)
        assert not beyond[0] and beyond[count - 1]
        assert sum(capacity for start, end, capacity in edges if not beyond[start] and beyond[end]) == cost


@pytest.mark.parametrize(
    "edges, source, sink, text",
    [([(0, 5, 1)], 0, 1, "network of 2 nodes"), ([(0, 1, -1)], 0, 1, "capacity -1"), ([], 0, 0, "a cut between"), ([], 0, 7, "a cut between")],
)
def test_networks_that_are_none(edges: list[tuple[int, int, int]], source: int, sink: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        _C.min_cut(2, edges, source, sink)


def test_a_long_network_is_cut_quickly() -> None:
    choose = random.Random(1)
    count = 10_000
    edges = [(at, at + 1, choose.randrange(1, 1 << 24)) for at in range(count - 1)]
    edges += [(at, min(at + choose.randrange(1, 300), count - 1), choose.choice((choose.randrange(1, 1 << 24), UNBOUNDED))) for at in range(count - 400)]
    start = time.perf_counter()
    beyond = _C.min_cut(count, edges, 0, count - 1)
    assert time.perf_counter() - start < 2
    assert not beyond[0] and beyond[count - 1]


def test_torchs_signatures_are_those_we_lean_on() -> None:
    def names(function: Callable[..., Any]) -> list[str]:
        return list(inspect.signature(function).parameters)

    assert names(partitioners.min_cut_rematerialization_partition) == ["joint_module", "_joint_inputs", "compiler", "num_fwd_outputs", "static_lifetime_input_indices"]
    assert names(partitioners._extract_fwd_bwd_modules) == ["joint_module", "saved_values", "saved_sym_nodes", "num_fwd_outputs", "static_lifetime_input_nodes"]
    assert names(partitioners.classify_nodes) == ["joint_module", "static_lifetime_input_indices", "num_fwd_outputs"]
    assert {"required_bw_nodes", "tangents_closure", "static_lifetime_input_nodes"} <= set(names(partitioners.NodeInfo))
    for function in (partitioners.force_save_collectives, partitioners.force_save_effectful_ops, partitioners.force_save_bw_mutation_src):
        assert names(function) == ["joint_module"]
