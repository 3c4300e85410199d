"""``cuda_graph``: plans captured and replayed. A returned tensor never changes because of a later call."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute, explain
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

GRAPH = {"cuda_graph": True, "on_error": "raise"}


def chain(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = torch.digamma(torch.sigmoid(x))
    return torch.sigmoid(x)


def traced(fn: Callable[..., Any], *args: torch.Tensor) -> torch.fx.GraphModule:
    with torch.no_grad():
        return make_fx(fn)(*args)


def replays() -> int:
    return int(fxfuser.stats()["graph_replays"])


def warm(gm: torch.fx.GraphModule, *args: torch.Tensor) -> None:
    """Calls until the plan is captured."""
    before = replays()
    for _ in range(3):
        execute(gm, *args, executor_parameters=GRAPH)
    assert replays() > before, note(gm, *args)


def note(gm: torch.fx.GraphModule, *args: torch.Tensor) -> str:
    return str(explain(gm, *args, executor_parameters=GRAPH).totals["cuda_graph"])


def test_five_kept_results_and_moving_inputs() -> None:
    xs = [torch.rand(33, 7, device="cuda") + i for i in range(8)]
    gm = traced(chain, xs[0])
    for x in xs[:3]:
        execute(gm, x, executor_parameters=GRAPH)
    before, launched = replays(), fxfuser.stats()["launches"]["cuda"]
    kept = [execute(gm, x, executor_parameters=GRAPH) for x in xs[3:]]
    assert replays() == before + 5, note(gm, xs[0])
    assert fxfuser.stats()["launches"]["cuda"] - launched == 5 * 4, "the kernels of a replay count"
    for x, out in zip(xs[3:], kept, strict=True):
        check_close(out, gm(x), "kept")
    assert len({out.data_ptr() for out in kept}) == 5
    assert "captured" in note(gm, xs[0])


def test_an_input_at_one_address_is_read_where_it_lies_until_it_moves() -> None:
    x = torch.rand(64, device="cuda")
    gm = traced(chain, x)
    warm(gm, x)
    before = replays()
    for value in (0.5, 1.5, 2.5):
        x.fill_(value)
        check_close(execute(gm, x, executor_parameters=GRAPH), gm(x), "written in place")
    assert replays() == before + 3
    y = torch.rand(64, device="cuda")
    for value in (x, y, x, y, x):
        check_close(execute(gm, value, executor_parameters=GRAPH), gm(value), "moved")
    after = replays()
    assert after > before + 3, "captured anew with a buffer"
    z = torch.rand(64, device="cuda")
    check_close(execute(gm, z, executor_parameters=GRAPH), gm(z), "copied in")
    assert replays() == after + 1


def test_parameters_change_in_place_and_by_exchange() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.LayerNorm(16)).cuda().eval().requires_grad_(False)
    x = torch.randn(4, 16, device="cuda")
    gm = torch.export.export(model, (x,)).module()
    warm(gm, x)
    with torch.no_grad():
        gm.get_parameter("0.weight").mul_(2)
    before = replays()
    check_close(execute(gm, x, executor_parameters=GRAPH), gm(x), "in place")
    assert replays() == before + 1
    layer = gm.get_submodule("0")
    layer.weight = torch.nn.Parameter(torch.randn(16, 16, device="cuda"), requires_grad=False)
    for _ in range(4):
        check_close(execute(gm, x, executor_parameters=GRAPH), gm(x), "exchanged")
    assert replays() > before + 1


def test_two_streams_replay_at_once() -> None:
    x = torch.rand(1 << 16, device="cuda")
    gm = traced(chain, x)
    inputs = [x + i for i in range(20)]
    expected = [gm(value) for value in inputs]
    for value in inputs[:3]:
        execute(gm, value, executor_parameters=GRAPH)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    before = replays()
    outs = []
    for index, value in enumerate(inputs):
        with torch.cuda.stream(streams[index % 2]):
            outs.append(execute(gm, value, executor_parameters=GRAPH))
    torch.cuda.synchronize()
    assert replays() == before + 20
    for out, wanted in zip(outs, expected, strict=True):
        check_close(out, wanted, "on two streams")


def test_a_users_capture_takes_plain_launches() -> None:
    x = torch.rand(128, device="cuda")
    gm = traced(chain, x)
    warm(gm, x)
    before = replays()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = execute(gm, x, executor_parameters=GRAPH)
    assert replays() == before, "a capture holds no replay of ours"
    for value in (0.25, 3.5):
        x.fill_(value)
        graph.replay()
        check_close(out, gm(x), "his graph")
    check_close(execute(gm, x, executor_parameters=GRAPH), gm(x), "ours again")
    assert replays() == before + 1


@pytest.mark.parametrize("options", [{}, {"cuda_graph": True}], ids=["plain", "cuda_graph"])
def test_make_graphed_callables(options: dict[str, bool]) -> None:
    class Runs(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return execute(gm, x, executor_parameters=options)

    x = torch.rand(64, device="cuda")
    gm = traced(chain, x)
    before = fxfuser.stats()["launches"]["cuda"]
    with torch.no_grad():
        graphed = torch.cuda.make_graphed_callables(Runs().eval(), (x.clone(),))
        assert fxfuser.stats()["launches"]["cuda"] > before
        for _ in range(3):
            y = torch.rand(64, device="cuda")
            check_close(graphed(y), gm(y), "graphed")


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "random": (lambda x: torch.rand_like(x) * torch.sigmoid(x), "draws random numbers"),
    "written": (lambda x: x.add_(1).sigmoid(), "writes"),
    "waits": (lambda x: torch.nonzero(torch.sigmoid(x) > 0.5), "waits for the device"),
    "aliased": (lambda x: (torch.sigmoid(x), x.t()), "shares memory|is a view"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_runs_plainly_says_why(name: str) -> None:
    fn, reason = REFUSED[name]
    x = torch.rand(8, 8, device="cuda")
    gm = traced(fn, x.clone())
    before = replays()
    for _ in range(4):
        execute(gm, x, executor_parameters={"cuda_graph": True})
    assert replays() == before
    assert re.search(reason, note(gm, x)), note(gm, x)


def test_graphs_of_dropped_modules_give_their_memory_back() -> None:
    x = torch.rand(1 << 20, device="cuda")
    for _ in range(3):
        gm = traced(chain, x)
        warm(gm, x)
        del gm
    gc.collect()
    torch.cuda.synchronize()
    base = torch.cuda.memory_allocated()
    for _ in range(3):
        gm = traced(chain, x)
        warm(gm, x)
        del gm
    gc.collect()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= base + (1 << 20)
