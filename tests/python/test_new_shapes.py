"""A new shape costs a plan, not a compile, and equal groups are planned once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import fxfuser
import torch
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from shapes import block, sizes


def test_shapes_of_a_transformer_block(launches: Callable[[], int]) -> None:
    fxfuser.clear_caches()
    gm, model = block()
    pairs = sizes(60)
    assert {1, 2, 40} <= {batch for batch, _ in pairs} and 1 in {length for _, length in pairs}
    with torch.no_grad():
        execute(gm, torch.randn(3, 7, 64))
        start = fxfuser.stats()
        for batch, length in pairs:
            x = torch.randn(batch, length, 64)
            check_close(execute(gm, x, executor_parameters={"on_error": "raise"}), model(x), f"batch {batch}, length {length}")
    known = fxfuser.stats()
    assert known["compiles"] + known["kernel_disk_hits"] - start["compiles"] - start["kernel_disk_hits"] <= 8
    assert launches() >= 4 * len(pairs)
    with torch.no_grad():
        for batch, length in [(41, 3), (5, 100), (1, 77)]:
            execute(gm, torch.randn(batch, length, 64))
    after = fxfuser.stats()
    assert after["compiles"] + after["kernel_disk_hits"] == known["compiles"] + known["kernel_disk_hits"]
    assert after["plan_misses"] == known["plan_misses"] + 3


def test_equal_groups_are_planned_once_a_call(launches: Callable[[], int]) -> None:
    def layers(x: torch.Tensor) -> torch.Tensor:
        for _ in range(12):
            x = torch.digamma(torch.tanh(x * 1.5) + 2.5)
        return torch.tanh(x * 1.5 + 1)

    gm = make_fx(layers)(torch.rand(4, 5))
    execute(gm, torch.rand(4, 5))
    before = fxfuser.stats()["kernel_memory_hits"]
    x = torch.rand(6, 7)
    check_close(execute(gm, x), gm(x), "a new shape")
    assert launches() == 26
    assert fxfuser.stats()["kernel_memory_hits"] == before + 2, "twelve equal groups and one other"
