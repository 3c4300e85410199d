"""Python's loggers: a line for each compile, cache event and plan miss, advice after eight of a kind, nothing on a hit."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from torch.fx.experimental.proxy_tensor import make_fx

Launches = Callable[[], int]


class Lines(logging.Handler):
    """Keeps what comes, as (logger, level, text)."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append((record.name, record.levelno, record.getMessage()))

    def take(self, topic: str, level: int = logging.INFO) -> list[str]:
        out = [text for name, number, text in self.records if name == f"fxfuser.{topic}" and number == level]
        self.records = [record for record in self.records if record[:2] != (f"fxfuser.{topic}", level)]
        return out


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, logger = Lines(), logging.getLogger("fxfuser")
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before[0])
    logger.propagate = before[1]


def chain(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x) * 2 + 0.8125


def module(x: torch.Tensor) -> torch.fx.GraphModule:
    return make_fx(chain)(x)


def test_a_compile_and_what_the_folder_gives_are_lines(lines: Lines, launches: Launches) -> None:
    fxfuser.clear_caches(disk=True)
    x = torch.rand(3, 4)
    execute(module(x), x)
    (compiled,) = lines.take("compile")
    assert re.fullmatch(r"compiled fxfuser_pointwise_\w+ for the host in \d+\.\d{3} s", compiled), compiled
    assert lines.take("cache") == []
    fxfuser.clear_caches()
    execute(module(x), x)
    (loaded,) = lines.take("cache")
    assert loaded == f"loaded {compiled.split()[1]} from {fxfuser._C.cache_folder()}"
    assert lines.take("compile") == []
    assert launches() == 2


def grad_off(gm: Any, x: torch.Tensor) -> None:
    with torch.no_grad():
        execute(gm, x)


def inference(gm: Any, x: torch.Tensor) -> None:
    with torch.inference_mode():
        execute(gm, x)


# what is changed about the second call: how it is made, and what the line says
CHANGES: dict[str, tuple[Callable[[Any, torch.Tensor], Any], str]] = {
    "sizes": (lambda gm, x: execute(gm, torch.rand(5, 4)), r"input 0 \(\w+\): sizes \[3, 4\] -> \[5, 4\]"),
    "strides": (lambda gm, x: execute(gm, torch.rand(4, 3).t()), r"input 0 \(\w+\): strides \[4, 1\] -> \[1, 3\]"),
    "dtype": (lambda gm, x: execute(gm, x.double()), r"input 0 \(\w+\): dtype Float -> Double"),
    "alignment": (lambda gm, x: execute(gm, torch.rand(13)[1:].view(3, 4)), r"input 0 \(\w+\): alignment 16 -> 4"),
    "grad mode": (grad_off, "grad mode true -> false"),
    "inference mode": (inference, r"dispatch state .*; grad mode true -> false; inference mode false -> true"),
    "option rounding": (lambda gm, x: execute(gm, x, executor_parameters={"rounding": "eager"}), "option rounding 0 -> 1"),
    "option skip_ops": (lambda gm, x: execute(gm, x, executor_parameters={"skip_ops": ["mul"]}), r"option skip_ops \[\] -> \[mul\]"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_miss_names_the_field_and_both_values(change: str, lines: Lines, launches: Launches) -> None:
    call, pattern = CHANGES[change]
    x = torch.rand(3, 4)
    gm = module(x)
    execute(gm, x)
    (first,) = lines.take("guard")
    assert "planned anew: first call" in first
    call(gm, x)
    (line,) = lines.take("guard")
    assert re.search(f"planned anew: {pattern}", line), line
    assert launches() >= 2


def test_several_fields_and_whole_numbers(lines: Lines, launches: Launches) -> None:
    graph = torch.fx.Graph()
    x, scale = graph.placeholder("x"), graph.placeholder("scale")
    graph.output(graph.call_function(torch.ops.aten.mul.Tensor, (x, scale)))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    for args in ((torch.rand(3), 2), (torch.rand(4), 3), (torch.rand(4), 0.5)):
        execute(gm, *args)
    _, second, third = lines.take("guard")
    assert "input 0 (x): sizes [3] -> [4]; input 1 (scale): value 2 -> 3" in second
    assert "input 1 (scale): kind an integer -> a float" in third
    assert launches() == 3


def test_a_hit_says_nothing(lines: Lines, launches: Launches) -> None:
    x = torch.rand(3, 4)
    gm = module(x)
    execute(gm, x)
    lines.records.clear()
    for _ in range(20):
        execute(gm, x)
    assert lines.records == []
    assert launches() == 21


def test_eight_of_a_kind_bring_one_advice(lines: Lines, launches: Launches) -> None:
    gm = module(torch.rand(3, 4))
    for rows in range(1, 30):
        execute(gm, torch.rand(rows, 4))
    (advice,) = lines.take("guard", logging.WARNING)
    assert "planned anew 8 times because of the sizes" in advice and "padding" in advice and "\n" not in advice
    assert len(lines.take("guard")) == 29
    assert launches() == 29


def test_advice_is_all_that_comes_unasked(lines: Lines) -> None:
    logging.getLogger("fxfuser").setLevel(logging.WARNING)
    gm = module(torch.rand(3, 4))
    for rows in range(1, 12):
        execute(gm, torch.rand(rows, 4))
    assert [(name, level) for name, level, _ in lines.records] == [("fxfuser.guard", logging.WARNING)]


def test_a_handler_that_raises_does_not_end_the_call(lines: Lines, launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(record: logging.LogRecord) -> None:
        raise RuntimeError("the disk is full")

    told: list[Any] = []
    monkeypatch.setattr(lines, "emit", fails)
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    x = torch.rand(3, 4)
    torch.testing.assert_close(execute(module(x), x), chain(x))
    assert launches() == 1
    assert "the disk is full" in str(told[0].exc_value)
