"""Rows and columns: ten patterns over row lengths from 256 to 131072, bf16 and fp32, odd lengths, and fewer rows than SMs."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from makers import indices, positive, randn, with_
from workloads import Workload, layer_norm, layer_norm_backward

LENGTHS = (256, 1024, 4096, 8192, 32768, 131072)
SHORT = {torch.bfloat16: "", torch.float32: " fp32", torch.float16: " fp16"}


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def softmax_backward(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch._softmax_backward_data(dy, y, -1, y.dtype)


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def rms_norm_backward(n: int, dy: torch.Tensor, x: torch.Tensor, rstd: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.ops.aten._fused_rms_norm_backward(dy, x, [n], rstd, w, [True, True])


def cross_entropy(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x, target, reduction="none")


def cross_entropy_backward(dloss: torch.Tensor, log_probabilities: torch.Tensor, target: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    scattered = torch.ops.aten.nll_loss_backward(dloss, log_probabilities, target, None, 0, -100, total)
    return torch.ops.aten._log_softmax_backward_data(scattered, log_probabilities, 1, log_probabilities.dtype)


def gelu_times(x: torch.Tensor, b: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return F.gelu(x + b) * dy


def of_length(n: int, m: int, dtype: torch.dtype, tag: str) -> list[Workload]:
    x, v, target = randn(m, n, dtype=dtype), randn(n, dtype=dtype), indices(m, below=n)
    full = dtype.itemsize * m * n
    read, copy, two = (1, 0), (1, 1), (2, 1)
    return [
        Workload(f"softmax N={tag}", softmax, with_(x), 2 * full, copy),
        Workload(f"softmax backward N={tag}", softmax_backward, with_(x, x), 3 * full, two),
        Workload(f"layer_norm N={tag}", partial(layer_norm, n), with_(x, v, v), 2 * full, copy),
        Workload(f"layer_norm backward N={tag}", partial(layer_norm_backward, n), with_(x, x, randn(m, 1), positive(m, 1), v, v), 3 * full, two),
        Workload(f"rms_norm N={tag}", rms_norm, with_(x, v), 2 * full, copy),
        Workload(f"rms_norm backward N={tag}", partial(rms_norm_backward, n), with_(x, x, positive(m, 1), v), 3 * full, two),
        Workload(f"cross_entropy N={tag}", cross_entropy, with_(x, target), full, read),
        Workload(f"cross_entropy backward N={tag}", cross_entropy_backward, with_(randn(m, dtype=dtype), x, target, positive()), 2 * full, copy),
        Workload(f"column sum N={tag}", lambda x: x.sum(0, dtype=torch.float32), with_(x), full, read),
        Workload(f"gelu(x+b)*dy N={tag}", gelu_times, with_(x, v, x), 3 * full, two),
    ]


def rows() -> list[Workload]:
    """bf16: 2^28 elements each; fp32: half as many, so as many bytes."""
    bf16, fp32 = torch.bfloat16, torch.float32
    out = [row for n in LENGTHS for row in of_length(n, 2**28 // n, bf16, f"{n}")]
    out += [row for n in LENGTHS for row in of_length(n, 2**27 // n, fp32, f"{n} fp32")]
    for n in (4095, 50257):
        out += of_length(n, 2**28 // n, bf16, f"{n}")
    return out + of_length(2**21, 64, bf16, "2097152, 64 rows")


def first_rows() -> list[Workload]:
    """The lengths whose sum is 2^28 in bf16: the cells that other projects publish."""
    return [row for n in LENGTHS for row in of_length(n, 2**28 // n, torch.bfloat16, f"{n}")]
