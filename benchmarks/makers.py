"""Functions that make a workload's inputs on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Maker = Callable[[str], torch.Tensor]


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> Maker:
    return lambda device: torch.randn(*shape, device=device, dtype=dtype)


def positive(*shape: int) -> Maker:
    return lambda device: torch.rand(*shape, device=device) + 0.5


def randint(*shape: int, dtype: torch.dtype) -> Maker:
    return lambda device: torch.randint(-100, 100, shape, device=device, dtype=dtype)


def with_(*makers: Maker) -> Callable[[str], tuple[Any, ...]]:
    return lambda device: tuple(make(device) for make in makers)
