"""A call that has its plan runs in C++ from end to end: generated kernels and ATen calls, no Python between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import TorchRefsNvfuserCapabilityMode, execute, prepare
from torch.fx import symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx
from traces import inside_execute, python_frames

RAISE = {"on_error": "raise"}


def chain(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = torch.digamma(torch.sigmoid(x))
    return torch.sigmoid(x)


def nvprims_trace(fn: Callable[..., Any], x: torch.Tensor) -> torch.fx.GraphModule:
    with TorchRefsNvfuserCapabilityMode():
        return make_fx(fn)(x)


TRACES: dict[str, Callable[[Callable[..., Any], torch.Tensor], torch.fx.GraphModule]] = {
    "aten": lambda fn, x: make_fx(fn)(x),
    "nvprims": nvprims_trace,
    "exported": lambda fn, x: torch.export.export(Called(fn), (x,)).module(check_guards=False),  # guards are a Python function
}


class Called(torch.nn.Module):
    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fn(x)


@pytest.mark.parametrize("trace", TRACES)
def test_the_chain_is_four_kernels_and_three_calls(trace: str) -> None:
    x = torch.rand(3, 3)
    gm = TRACES[trace](chain, x)
    execute(gm, x, executor_parameters=RAISE)
    before = fxfuser.stats()
    results: list[torch.Tensor] = []
    names = inside_execute(lambda: results.append(execute(gm, x, executor_parameters=RAISE)))
    after = fxfuser.stats()
    torch.testing.assert_close(results[0], chain(x))
    assert after["launches"]["host"] - before["launches"]["host"] == 4
    assert after["aten_steps"] - before["aten_steps"] == 3 and after["view_steps"] == before["view_steps"]
    order = [name.split("_")[0] for name in names if name.startswith("fxfuser_") or name == "aten::digamma"]
    assert order == ["fxfuser", "aten::digamma"] * 3 + ["fxfuser"], names
    assert not python_frames(names), names


def test_equal_kernels_of_the_chain_are_one(kernels: Callable[[], dict[str, int]]) -> None:
    x = torch.rand(3, 3)
    execute(make_fx(chain)(x), x, executor_parameters={**RAISE, "use_python_fusion_cache": False})
    # A trace knows what sigmoid is made of only under the capability mode; here each is one op, and all four are one kernel.
    assert list(kernels().values()) == [4]


def test_no_fx_interpreter_and_no_forward(monkeypatch: pytest.MonkeyPatch, launches: Callable[[], int]) -> None:
    """Neither the module's own code nor an interpreter runs, on the first call as on later ones."""
    x = torch.rand(3, 3)
    gm = make_fx(chain)(x)
    expected = gm(x)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("Python ran the graph")

    monkeypatch.setattr(torch.fx.Interpreter, "run", refuse)
    monkeypatch.setattr(torch.fx.GraphModule, "__call__", refuse)
    for _ in range(2):
        torch.testing.assert_close(execute(gm, x, executor_parameters=RAISE), expected)
    torch.testing.assert_close(prepare(gm, on_error="raise")(x), expected)
    assert launches() == 12


def test_a_lowered_module_runs_one_python_function(launches: Callable[[], int]) -> None:
    """Modules and torch functions need their arguments read by Python; the steps themselves run without it."""
    x = torch.rand(3, 3)
    gm = symbolic_trace(chain)
    execute(gm, x, executor_parameters=RAISE)
    names = inside_execute(lambda: execute(gm, x, executor_parameters=RAISE))
    steps = [at for at, name in enumerate(names) if name.startswith(("fxfuser_", "aten::digamma"))]
    assert len(steps) == 7 and not python_frames(names[steps[0] : steps[-1] + 1]), names
    assert launches() == 8
