"""Transposes and permutes, alone and with pointwise work; small inner dimensions too."""

from __future__ import annotations

from functools import partial

import torch
from makers import randn, with_
from workloads import Workload

BF16, FP32 = torch.bfloat16, torch.float32


def permuted(dims: tuple[int, ...], plus: float, x: torch.Tensor) -> torch.Tensor:
    out = x.permute(dims)
    return (out + plus if plus else out).contiguous()


def layouts() -> list[Workload]:
    cases = [
        ("transpose 16384^2 fp32", (16384, 16384), (1, 0), 0.0, FP32),
        ("transpose 16384^2", (16384, 16384), (1, 0), 0.0, BF16),
        ("32x4096x1024, last two swapped", (32, 4096, 1024), (0, 2, 1), 0.0, BF16),
        ("32x4096x1024 fp32, last two swapped", (32, 4096, 1024), (0, 2, 1), 0.0, FP32),
        ("NCHW -> NHWC + 1, 64x256x56x56", (64, 256, 56, 56), (0, 2, 3, 1), 1.0, BF16),
        ("NHWC -> NCHW + 1, 64x56x56x256", (64, 56, 56, 256), (0, 3, 1, 2), 1.0, BF16),
        ("NCHW -> NHWC + 1, 64x256x56x56 fp32", (64, 256, 56, 56), (0, 2, 3, 1), 1.0, FP32),
        ("NHWC -> NCHW + 1, 64x56x56x256 fp32", (64, 56, 56, 256), (0, 3, 1, 2), 1.0, FP32),
        ("heads: 0213 of 32x2048x16x64", (32, 2048, 16, 64), (0, 2, 1, 3), 0.0, BF16),
        ("0321 of 32x64x128x256", (32, 64, 128, 256), (0, 3, 2, 1), 0.0, BF16),
        ("[2^25, 4] transposed", (2**25, 4), (1, 0), 1.0, BF16),
        ("[3, 2^25] transposed", (3, 2**25), (1, 0), 1.0, BF16),
        ("NCHW -> NHWC, 256x3x512x512", (256, 3, 512, 512), (0, 2, 3, 1), 1.0, BF16),
    ]
    out = []
    for name, shape, dims, plus, dtype in cases:
        count = torch.Size(shape).numel() * dtype.itemsize
        out.append(Workload(name, partial(permuted, dims, plus), with_(randn(*shape, dtype=dtype)), 2 * count))
    return [*out, Workload("relu(x.t()+y) 16384^2 fp32", lambda x, y: torch.relu(x.t() + y), with_(randn(16384, 16384), randn(16384, 16384)), 12 * 2**28, (2, 1))]
