"""Thousands of partitions and thousands of graphs: nothing is made twice, and what is gone leaves nothing behind."""

from __future__ import annotations

import gc
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import fxfuser
import pytest
import torch
from fxfuser import FusionCache, FusionDefinition, execute
from torch.fx.experimental.proxy_tensor import make_fx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import memory  # noqa: E402

PARTITIONS = 3000
RAISE = {"on_error": "raise"}


@pytest.fixture(scope="module")
def chain() -> torch.fx.GraphModule:
    """sin, +, digamma (which has no row), over and over: equal groups of two ops with an ATen call between."""
    x = torch.rand(4, 6)
    graph = torch.fx.Graph()
    value = graph.placeholder("x")
    value.meta["val"] = x
    for _ in range(PARTITIONS):
        for op, more in ((torch.ops.aten.sin.default, ()), (torch.ops.aten.add.Tensor, (1.5,)), (torch.ops.aten.digamma.default, ())):
            value = graph.call_function(op, (value, *more))
            value.meta["val"] = x
    graph.output(value)
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def test_equal_partitions_share_one_kernel_and_nothing_is_made_twice(chain: torch.fx.GraphModule, kernels: Callable[[], dict[str, int]]) -> None:
    fxfuser.clear_caches(disk=True)
    inputs = [torch.rand(4, 6) for _ in range(4)]
    before = fxfuser.stats()
    torch.testing.assert_close(execute(chain, inputs[0], executor_parameters=RAISE), chain(inputs[0]))
    first = fxfuser.stats()
    assert first["compiles"] - before["compiles"] == 1
    assert list(kernels().values()) == [PARTITIONS]
    for x in inputs[1:]:
        torch.testing.assert_close(execute(chain, x, executor_parameters=RAISE), chain(x))
    after = fxfuser.stats()
    assert after["compiles"] == first["compiles"] and after["plan_misses"] == first["plan_misses"] == before["plan_misses"] + 1
    assert after["plan_hits"] == first["plan_hits"] + 3
    assert list(kernels().values()) == [4 * PARTITIONS]
    assert after["aten_steps"] - before["aten_steps"] == 4 * PARTITIONS


def test_another_size_is_one_plan_and_no_compile(chain: torch.fx.GraphModule) -> None:
    execute(chain, torch.rand(4, 6), executor_parameters=RAISE)
    before = fxfuser.stats()
    for _ in range(2):
        x = torch.rand(7, 5)
        torch.testing.assert_close(execute(chain, x, executor_parameters=RAISE), chain(x))
    after = fxfuser.stats()
    assert after["compiles"] == before["compiles"] and after["plan_misses"] == before["plan_misses"] + 1
    assert after["launches"]["host"] - before["launches"]["host"] == 2 * PARTITIONS


def test_a_long_chain_is_planned_in_near_linear_time(chain: torch.fx.GraphModule) -> None:
    """Ten times the partitions cost at most about ten times the first call."""
    def short(count: int) -> torch.fx.GraphModule:
        graph = torch.fx.Graph()
        copied: dict[torch.fx.Node, torch.fx.Node] = {}
        nodes = list(chain.graph.nodes)[: 1 + 3 * count]
        for node in nodes:
            copied[node] = graph.node_copy(node, lambda old: copied[old])
        graph.output(copied[nodes[-1]])
        return torch.fx.GraphModule(torch.nn.Module(), graph)

    def first_call(gm: torch.fx.GraphModule) -> float:
        start = time.perf_counter()
        execute(gm, torch.rand(4, 6), executor_parameters=RAISE)
        return time.perf_counter() - start

    first_call(short(1))
    small, large = (min(first_call(short(count)) for _ in range(3)) for count in (PARTITIONS // 10, PARTITIONS))
    assert large < 20 * small, f"{small:.3f} s and {large:.3f} s"


def test_a_dead_graph_leaves_nothing(launches: Callable[[], int]) -> None:
    x = torch.rand(4, 6)
    gm = memory.graph(12345, x)
    gm.register_buffer("kept", torch.rand(3))
    dead = weakref.ref(gm.kept), weakref.ref(gm)
    execute(gm, x, executor_parameters=RAISE)
    assert launches() == memory.LENGTH
    gc.collect()
    count = fxfuser._C.handle_count()
    del gm
    gc.collect()
    assert [ref() for ref in dead] == [None, None]
    assert fxfuser._C.handle_count() == count - 1


def test_memory_over_many_different_graphs(launches: Callable[[], int]) -> None:
    """At most 50 MB over 100,000 graphs, from the slope over 2,000; `make bench SET=memory` runs them all."""
    graphs, every = 2500, 500
    grown = list(memory.growth(graphs, every))
    assert launches() == graphs * memory.LENGTH
    slope = grown[-1][1] / (graphs - every)
    assert slope * 100_000 < 50, f"{slope * 100_000:.1f} MB for 100,000 graphs: {grown}"


def test_memory_over_many_different_definitions() -> None:
    """The cache keeps definitions up to its size and programs for the latest: a full one takes at most 50 MB."""
    ops = ("sin", "cos", "exp", "tanh", "relu", "neg", "abs", "sigmoid")
    x, grown = torch.rand(4, 6), []
    FusionCache.reset()
    for number in range(1600):
        with FusionDefinition() as fd:
            value = fd.define_tensor(2)
            for place in range(4):
                value = fd.ops.digamma(getattr(fd.ops, ops[number // 8**place % 8])(value))
            fd.add_output(value)
        fd.execute([x], on_error="raise")
        if number in (50, 800, 1599):
            grown.append(memory.resident())
    capacity = FusionCache.get().stats()["max_fusions"]
    full = grown[1] - grown[0] + (grown[2] - grown[1]) / 800 * capacity
    FusionCache.reset()
    assert full < 50, f"{full:.1f} MB for {capacity} definitions"


def test_a_refused_node_takes_no_other_along() -> None:
    """A node that is refused when it is opened (a 0-dim source of index_select) leaves what it shares nothing with fused."""

    def fn(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.ops.aten.index_select(a, 0, i), torch.full_like(b, 2.0), b + 1, c + 1, torch.sigmoid(c)

    args = (torch.tensor(1.5), torch.tensor(2.5), torch.tensor(3.5), torch.tensor([0]))
    gm = make_fx(fn)(*args)
    before = fxfuser.stats()["launches"]["host"]
    for ours, eager in zip(fxfuser.execute(gm, *args), gm(*args), strict=True):
        torch.testing.assert_close(ours, eager)
    assert fxfuser.stats()["launches"]["host"] > before
    status = {row["target"]: row["status"] for row in fxfuser.explain(gm, *args).nodes()}
    assert status.pop("aten.index_select.default") == "aten"
    assert set(status.values()) == {"fused"}


def test_equal_numbers_share_launches(launches: Callable[[], int]) -> None:
    """Counters of two dtypes; thirty of one are more than a kernel takes. What is made of a result, or has a size, has a kernel of its own."""

    def count(*counters: torch.Tensor) -> list[torch.Tensor]:
        return [counter + 1 for counter in counters]

    for number, kernels in ((5, 2), (30, 4)):
        counters = [torch.tensor(at, dtype=torch.int64) for at in range(number)] + [torch.tensor(0.5 + at) for at in range(3)]
        gm, before = make_fx(count)(*counters), launches()
        assert fxfuser.execute(gm, *counters) == count(*counters)
        assert launches() - before == kernels

    def mixed(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return a + 1, b + 1, x + 1, torch.mm(x, x).sum() + 1

    given, before = (torch.tensor(1.0), torch.tensor(2.0), torch.randn(3, 3)), launches()
    torch.testing.assert_close(fxfuser.execute(make_fx(mixed)(*given), *given), mixed(*given))
    assert launches() - before == 3


def test_counters_are_written_in_order(launches: Callable[[], int]) -> None:
    """A counter that is read by other work after it was raised, and one that is raised twice."""

    def step(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        a.add_(1)
        y = torch.mm(x, x) * a
        b.add_(1)
        a.add_(1)
        return torch.mm(y, x) * b

    ours, eager = ([torch.tensor(1.0), torch.tensor(5.0), torch.ones(3, 3)] for _ in range(2))
    gm = make_fx(step)(*(t.clone() for t in ours))
    for _ in range(2):
        torch.testing.assert_close(fxfuser.execute(gm, *ours), step(*eager))
        torch.testing.assert_close(ours, eager)
    assert launches() >= 4
