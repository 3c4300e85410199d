"""The workloads by set. A workload is a function with its inputs and the bytes that it must move; shapes and dtypes are those
that docs/performance.md quotes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from makers import positive, randn, with_


@dataclass(frozen=True)
class Workload:
    name: str
    fn: Callable[..., Any]
    args: Callable[[str], tuple[Any, ...]]  # device -> inputs
    bytes: int  # tensors that must be read or written, each once


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


def rows() -> list[Workload]:
    out: list[Workload] = []
    bf16 = torch.bfloat16
    for n in (256, 1024, 4096, 8192, 32768, 131072):
        m = 2**28 // n
        x, v = randn(m, n, dtype=bf16), randn(n, dtype=bf16)
        full = 2 * m * n
        out += [
            Workload(f"softmax N={n}", lambda x: torch.softmax(x, -1), with_(x), 2 * full),
            Workload(f"softmax backward N={n}", lambda dy, y: torch._softmax_backward_data(dy, y, -1, torch.bfloat16), with_(x, x), 3 * full),
            Workload(f"layer_norm N={n}", partial(layer_norm, n), with_(x, v, v), 2 * full),
            Workload(f"layer_norm backward N={n}", partial(layer_norm_backward, n),
                     with_(x, x, randn(m, 1), positive(m, 1), v, v), 3 * full),
            Workload(f"rms_norm N={n}", lambda x, w: (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(bf16) * w, with_(x, v), 2 * full),
            Workload(f"column sum N={n}", lambda x: x.sum(0, dtype=torch.float32), with_(x), full),
            Workload(f"gelu(x+b)*dy N={n}", lambda x, b, dy: F.gelu(x + b) * dy, with_(x, v, x), 3 * full),
        ]
    out += [
        Workload("gelu(1.5x+0.5)*sigmoid(x) 1 GiB fp32", gelu_sigmoid, with_(randn(2**28)), 8 * 2**28),
        Workload("relu(x.t()+y) 16384^2 fp32", lambda x, y: torch.relu(x.t() + y), with_(randn(16384, 16384), randn(16384, 16384)), 12 * 2**28),
        Workload("full sum of squares 1 GiB fp32", lambda x: (x * x).sum(), with_(randn(2**28)), 4 * 2**28),
        Workload("sum [7, 2^25] bf16", lambda x: x.sum(1), with_(randn(7, 2**25, dtype=bf16)), 14 * 2**25),
    ]
    return out


SETS: dict[str, Callable[[], list[Workload]]] = {"seed": seed, "rows": rows}
