"""Shared by the CPU tests: our errors raise, kernels are recorded, coverage is written where run.py reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def launches() -> Callable[[], int]:
    """Generated kernels launched since the fixture was made, on all targets."""
    import fxfuser

    def total() -> int:
        return sum(fxfuser.stats()["launches"].values())

    start = total()
    return lambda: total() - start


@pytest.fixture
def kernels() -> Iterator[Callable[[], dict[str, int]]]:
    """Launches by kernel name since the fixture was made."""
    import fxfuser

    fxfuser.record_kernels(True)
    before = dict(fxfuser.stats()["kernels"])
    yield lambda: {name: count - before.get(name, 0) for name, count in fxfuser.stats()["kernels"].items() if count > before.get(name, 0)}
    fxfuser.record_kernels(False)
