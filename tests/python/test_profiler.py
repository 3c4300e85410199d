"""torch.profiler sees each step of a plan by name: generated kernels with the nodes that they compute, ATen calls as themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from torch.fx.experimental.proxy_tensor import make_fx
from torch.profiler import ProfilerActivity, profile
from traces import inside_execute, python_frames

RAISE = {"on_error": "raise"}


def ranges(run: Callable[[], Any]) -> list[Any]:
    with profile(activities=[ProfilerActivity.CPU]) as trace:
        run()
    return list(trace.events())


@pytest.fixture
def module() -> torch.fx.GraphModule:
    return make_fx(lambda x: torch.digamma(torch.sigmoid(x) * 2 + 0.5).exp().sum(1))(torch.rand(5, 7))


def test_kernels_and_their_nodes(module: torch.fx.GraphModule, launches: Callable[[], int]) -> None:
    x = torch.rand(5, 7)
    for call in ("the first", "a later"):
        names = [event.name for event in ranges(lambda: execute(module, x, executor_parameters=RAISE))]
        kernels = [name for name in names if name.startswith("fxfuser_")]
        assert [name.split(" ", 1)[1] for name in kernels] == ["[sigmoid, mul, add]", "[exp, sum_1]"], f"{call} call: {names}"
        assert names.count("aten::digamma") == 1
    assert launches() == 4


def test_many_nodes_are_shortened(launches: Callable[[], int]) -> None:
    def long(x: torch.Tensor) -> torch.Tensor:
        for i in range(12):
            x = (x * (1 + i / 16)).sin()
        return x

    x = torch.rand(9)
    gm = make_fx(long)(x)
    (name,) = (event.name for event in ranges(lambda: execute(gm, x, executor_parameters=RAISE)) if event.name.startswith("fxfuser_"))
    assert name.endswith("[mul, sin, mul_1, sin_1, mul_2, sin_2, mul_3, sin_3 and 16 more]")
    assert launches() == 1


def test_no_python_runs_inside_a_call(module: torch.fx.GraphModule) -> None:
    x = torch.rand(5, 7)
    execute(module, x, executor_parameters=RAISE)
    before = fxfuser.stats()
    names = inside_execute(lambda: execute(module, x, executor_parameters=RAISE))
    after = fxfuser.stats()
    assert after["launches"]["host"] == before["launches"]["host"] + 2 and after["aten_steps"] == before["aten_steps"] + 1
    assert sum(name.startswith("fxfuser_") for name in names) == 2 and names.count("aten::digamma") == 1, names
    assert not python_frames(names), names


def test_nvtx_ranges_have_the_same_names(module: torch.fx.GraphModule) -> None:
    """emit_nvtx turns the same ranges into NVTX ones. Without a GPU it can't start; that it listens to RecordFunction shows in
    the ranges that its sibling, the legacy profiler, makes of them."""
    x = torch.rand(5, 7)
    with torch.autograd.profiler_legacy.profile() as legacy:
        execute(module, x, executor_parameters=RAISE)
    names = [event.name for event in legacy.function_events]
    assert sum(name.startswith("fxfuser_") for name in names) == 2, names
