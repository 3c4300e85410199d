"""The workloads by set. A workload is a function with its inputs and the bytes that it must move; shapes and dtypes are those
that docs/performance.md quotes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Workload:
    name: str
    fn: Callable[..., Any]
    args: Callable[[str], tuple[Any, ...]]  # device -> inputs
    bytes: int  # tensors that must be read or written, each once


def _randn(*shape: int, dtype: torch.dtype = torch.float32) -> Callable[[str], torch.Tensor]:
    return lambda device: torch.randn(*shape, device=device, dtype=dtype)


def _positive(*shape: int) -> Callable[[str], torch.Tensor]:
    return lambda device: torch.rand(*shape, device=device) + 0.5


def _with(*makers: Callable[[str], torch.Tensor]) -> Callable[[str], tuple[Any, ...]]:
    return lambda device: tuple(make(device) for make in makers)


def _gelu_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(1.5 * x + 0.5) * torch.sigmoid(x)


def _layer_norm(n: int, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (n,), w, b)


def _layer_norm_backward(n: int, dy: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.ops.aten.native_layer_norm_backward(dy, x, [n], mean, rstd, w, b, [True, True, True])


def _rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def cpu() -> list[Workload]:
    n = 4096
    square = n * n
    return [
        Workload("gelu(1.5x+0.5)*sigmoid(x) 2^24", _gelu_sigmoid, _with(_randn(2**24)), 8 * 2**24),
        Workload("relu(x+y) 2^24", lambda x, y: torch.relu(x + y), _with(_randn(2**24), _randn(2**24)), 12 * 2**24),
        Workload("layer_norm 4096^2", lambda x, w, b: F.layer_norm(x, (n,), w, b), _with(_randn(n, n), _randn(n), _randn(n)), 8 * square),
        Workload("rms_norm 4096^2", _rms, _with(_randn(n, n), _randn(n)), 8 * square),
        Workload("softmax 4096^2", lambda x: torch.softmax(x, -1), _with(_randn(n, n)), 8 * square),
        Workload("log_softmax 4096^2", lambda x: torch.log_softmax(x, -1), _with(_randn(n, n)), 8 * square),
        Workload("relu(x.t()+y) 4096^2", lambda x, y: torch.relu(x.t() + y), _with(_randn(n, n), _randn(n, n)), 12 * square),
        Workload("column sum of 2x+1, 4096^2", lambda x: (2 * x + 1).sum(0), _with(_randn(n, n)), 4 * square),
        Workload("full sum of squares, 4096^2", lambda x: (x * x).sum(), _with(_randn(n, n)), 4 * square),
        Workload("layer_norm bf16 4096^2", lambda x, w, b: F.layer_norm(x, (n,), w, b),
                 _with(*(_randn(*s, dtype=torch.bfloat16) for s in ((n, n), (n,), (n,)))), 4 * square),
        Workload("gelu(x+b) bf16 4096^2", lambda x, b: F.gelu(x + b), _with(_randn(n, n, dtype=torch.bfloat16), _randn(n, dtype=torch.bfloat16)), 4 * square),
        Workload("sigmoid 3x3", torch.sigmoid, _with(_randn(3, 3)), 72),
        Workload("gelu(x+y) 64 KiB", lambda x, y: F.gelu(x + y), _with(_randn(16384), _randn(16384)), 3 * 65536),
    ]


def seed() -> list[Workload]:
    s, d = torch.sigmoid, torch.digamma
    half = torch.float16
    return [
        Workload("sigmoid 3x3 fp32", s, _with(_randn(3, 3)), 72),
        Workload("sigmoid/digamma chain [3,2] fp16", lambda t: s(d(s(d(s(d(s(t))))))), _with(_randn(3, 2, dtype=half)), 24),
        Workload("native_layer_norm 10x512x1024 fp16", lambda t: torch.native_layer_norm(t, (1024,), None, None, 1e-6),
                 _with(_randn(10, 512, 1024, dtype=half)), 4 * 10 * 512 * 1024 + 8 * 5120),
    ]


def rows() -> list[Workload]:
    out: list[Workload] = []
    bf16 = torch.bfloat16
    for n in (256, 1024, 4096, 8192, 32768, 131072):
        m = 2**28 // n
        x, v = _randn(m, n, dtype=bf16), _randn(n, dtype=bf16)
        full = 2 * m * n
        out += [
            Workload(f"softmax N={n}", lambda x: torch.softmax(x, -1), _with(x), 2 * full),
            Workload(f"softmax backward N={n}", lambda dy, y: torch._softmax_backward_data(dy, y, -1, torch.bfloat16), _with(x, x), 3 * full),
            Workload(f"layer_norm N={n}", partial(_layer_norm, n), _with(x, v, v), 2 * full),
            Workload(f"layer_norm backward N={n}", partial(_layer_norm_backward, n),
                     _with(x, x, _randn(m, 1), _positive(m, 1), v, v), 3 * full),
            Workload(f"rms_norm N={n}", lambda x, w: (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(bf16) * w, _with(x, v), 2 * full),
            Workload(f"column sum N={n}", lambda x: x.sum(0, dtype=torch.float32), _with(x), full),
            Workload(f"gelu(x+b)*dy N={n}", lambda x, b, dy: F.gelu(x + b) * dy, _with(x, v, x), 3 * full),
        ]
    out += [
        Workload("gelu(1.5x+0.5)*sigmoid(x) 1 GiB fp32", _gelu_sigmoid, _with(_randn(2**28)), 8 * 2**28),
        Workload("relu(x.t()+y) 16384^2 fp32", lambda x, y: torch.relu(x.t() + y), _with(_randn(16384, 16384), _randn(16384, 16384)), 12 * 2**28),
        Workload("full sum of squares 1 GiB fp32", lambda x: (x * x).sum(), _with(_randn(2**28)), 4 * 2**28),
        Workload("sum [7, 2^25] bf16", lambda x: x.sum(1), _with(_randn(7, 2**25, dtype=bf16)), 14 * 2**25),
    ]
    return out


SETS: dict[str, Callable[[], list[Workload]]] = {"cpu": cpu, "seed": seed, "rows": rows}
