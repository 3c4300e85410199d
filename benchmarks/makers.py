"""Functions that make a workload's inputs on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Maker = Callable[[str], torch.Tensor]


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> Maker:
    return lambda device: torch.randn(*shape, device=device, dtype=dtype)


def positive(*shape: int) -> Maker:
    return lambda device: torch.rand(shape, device=device) + 0.5


def randint(*shape: int, dtype: torch.dtype) -> Maker:
    return lambda device: torch.randint(-100, 100, shape, device=device, dtype=dtype)


def indices(*shape: int, below: int) -> Maker:
    return lambda device: torch.randint(0, below, shape, device=device)


def chance(*shape: int) -> Maker:
    """True for nine of ten elements."""
    return lambda device: torch.rand(*shape, device=device) < 0.9


def causal(n: int) -> Maker:
    """True above the diagonal."""
    return lambda device: torch.ones(n, n, dtype=torch.bool, device=device).triu(1)


def channels_last(maker: Maker) -> Maker:
    return lambda device: maker(device).to(memory_format=torch.channels_last)


def foreach(count: int, makers: list[Maker]) -> Callable[[str], tuple[Any, ...]]:
    """`count` tensors of the first maker, then as many of the next, and so on."""
    return lambda device: tuple(make(device) for make in makers for _ in range(count))


def with_(*makers: Maker) -> Callable[[str], tuple[Any, ...]]:
    return lambda device: tuple(make(device) for make in makers)
