"""What a workload is, the functions that several sets time, and the seed's own three."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from makers import randn, with_


@dataclass(frozen=True)
class Workload:
    name: str
    fn: Callable[..., Any]
    args: Callable[[str], tuple[Any, ...]]  # device -> inputs
    bytes: int  # tensors that must be read or written, each once
    mix: tuple[int, int] = (1, 1)  # large tensors read and written: the ceiling is that of a stream of this mix
    resident: bool = False  # lives in the L2: timed by replays of a graph, without a cold cache


def gelu_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(1.5 * x + 0.5) * torch.sigmoid(x)


def layer_norm(n: int, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (n,), w, b)


def layer_norm_backward(n: int, dy: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.ops.aten.native_layer_norm_backward(dy, x, [n], mean, rstd, w, b, [True, True, True])


def rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def seed() -> list[Workload]:
    s, d = torch.sigmoid, torch.digamma
    half = torch.float16
    return [
        Workload("sigmoid 3x3 fp32", s, with_(randn(3, 3)), 72),
        Workload("sigmoid/digamma chain [3,2] fp16", lambda t: s(d(s(d(s(d(s(t))))))), with_(randn(3, 2, dtype=half)), 24),
        Workload("native_layer_norm 10x512x1024 fp16", lambda t: torch.native_layer_norm(t, (1024,), None, None, 1e-6),
                 with_(randn(10, 512, 1024, dtype=half)), 4 * 10 * 512 * 1024 + 8 * 5120),
    ]
