"""The rows of the host target: what `make bench SET=cpu` times beside eager and torch.compile, large ones and small ones."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from makers import positive, randint, randn, with_
from workloads import Workload, gelu_sigmoid, layer_norm, layer_norm_backward, rms

N = 4096
SQUARE = N * N
FLAT = 2**24
BF16, FP16 = torch.bfloat16, torch.float16


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def _sum_of(dim: int | list[int], x: torch.Tensor) -> torch.Tensor:
    return x.sum(dim)


def _batch_norm(training: bool, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
    out: torch.Tensor = torch.ops.aten._native_batch_norm_legit_no_training(x, w, b, mean, var, 0.1, 1e-5)[0]
    if training:
        out = torch.ops.aten._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5)[0]
    return torch.relu(out)


def pointwise() -> list[Workload]:
    x, half, brain = randn(FLAT), randn(FLAT, dtype=FP16), randn(FLAT, dtype=BF16)
    i32, i64, i8 = (randint(FLAT, dtype=d) for d in (torch.int32, torch.int64, torch.int8))
    return [
        Workload("gelu(1.5x+0.5)*sigmoid(x) 2^24", gelu_sigmoid, with_(x), 8 * FLAT),
        Workload("relu(x+y) 2^24", lambda x, y: torch.relu(x + y), with_(x, x), 12 * FLAT),
        Workload("tanh(x)*exp(-x*x)+log(1+x*x) 2^24", lambda x: torch.tanh(x) * torch.exp(-x * x) + torch.log(1 + x * x), with_(x), 8 * FLAT),
        Workload("gelu tanh 2^24", lambda x: F.gelu(x, approximate="tanh"), with_(x), 8 * FLAT),
        Workload("silu(x)*y 2^24", lambda x, y: F.silu(x) * y, with_(x, x), 12 * FLAT),
        Workload("sin(x)*cos(y) 2^24", lambda x, y: torch.sin(x) * torch.cos(y), with_(x, x), 12 * FLAT),
        Workload("gelu(1.5x+0.5)*sigmoid(x) fp16 2^24", gelu_sigmoid, with_(half), 4 * FLAT),
        Workload("relu(x+y) fp16 2^24", lambda x, y: torch.relu(x + y), with_(half, half), 6 * FLAT),
        Workload("relu(x+y) bf16 2^24", lambda x, y: torch.relu(x + y), with_(brain, brain), 6 * FLAT),
        Workload("gelu(x+b) bf16 4096^2", lambda x, b: F.gelu(x + b), with_(randn(N, N, dtype=BF16), randn(N, dtype=BF16)), 4 * SQUARE),
        Workload("clamp(3x+y) int32 2^24", lambda x, y: (3 * x + y).clamp(-100, 100), with_(i32, i32), 12 * FLAT),
        Workload("where(x>y, x, 2y) int64 2^24", lambda x, y: torch.where(x > y, x, 2 * y), with_(i64, i64), 24 * FLAT),
        Workload("x+y int8 2^24", lambda x, y: x + y * 3, with_(i8, i8), 3 * FLAT),
        Workload("to(bf16) of 2x+1 2^24", lambda x: (2 * x + 1).to(BF16), with_(x), 6 * FLAT),
    ]


def norms() -> list[Workload]:
    x, brain, half, v = randn(N, N), randn(N, N, dtype=BF16), randn(N, N, dtype=FP16), randn(N)
    image, c = randn(32, 64, 56, 56), randn(64)
    pixels = 32 * 64 * 56 * 56
    rows = [
        Workload("layer_norm 4096^2", partial(layer_norm, N), with_(x, v, v), 8 * SQUARE),
        Workload("layer_norm bf16 4096^2", partial(layer_norm, N), with_(brain, randn(N, dtype=BF16), randn(N, dtype=BF16)), 4 * SQUARE),
        Workload("layer_norm fp16 4096^2", partial(layer_norm, N), with_(half, randn(N, dtype=FP16), randn(N, dtype=FP16)), 4 * SQUARE),
        Workload("layer_norm 65536x256", partial(layer_norm, 256), with_(randn(65536, 256), randn(256), randn(256)), 8 * SQUARE),
        Workload("layer_norm backward 4096^2", partial(layer_norm_backward, N), with_(x, x, randn(N, 1), positive(N, 1), v, v), 12 * SQUARE),
        Workload("rms_norm 4096^2", rms, with_(x, v), 8 * SQUARE),
        Workload("softmax 4096^2", _softmax, with_(x), 8 * SQUARE),
        Workload("softmax bf16 4096^2", _softmax, with_(brain), 4 * SQUARE),
        Workload("softmax 131072x128", _softmax, with_(randn(131072, 128)), 8 * SQUARE),
        Workload("softmax of columns 4096^2", lambda x: torch.softmax(x, 0), with_(x), 8 * SQUARE),
        Workload("softmax backward 4096^2", lambda dy, y: torch._softmax_backward_data(dy, y, -1, torch.float32), with_(x, x), 12 * SQUARE),
        Workload("log_softmax 4096^2", lambda x: torch.log_softmax(x, -1), with_(x), 8 * SQUARE),
        Workload("batch_norm relu inference 32x64x56x56", partial(_batch_norm, False), with_(image, c, c, c, positive(64)), 8 * pixels),
        Workload("batch_norm relu training 32x64x56x56", partial(_batch_norm, True), with_(image, c, c, c, positive(64)), 8 * pixels),
        Workload("group_norm 32x64x56x56", lambda x, w, b: F.group_norm(x, 8, w, b), with_(image, c, c), 8 * pixels),
    ]
    return rows


def reductions() -> list[Workload]:
    x, brain, cube = randn(N, N), randn(N, N, dtype=BF16), randn(64, 512, 512)
    return [
        Workload("column sum of 2x+1, 4096^2", lambda x: (2 * x + 1).sum(0), with_(x), 4 * SQUARE),
        Workload("column sum bf16 4096^2", partial(_sum_of, 0), with_(brain), 2 * SQUARE),
        Workload("column max 4096^2", lambda x: x.amax(0), with_(x), 4 * SQUARE),
        Workload("row sum of 2x+1, 4096^2", lambda x: (2 * x + 1).sum(1), with_(x), 4 * SQUARE),
        Workload("row argmax 4096^2", lambda x: x.argmax(1), with_(x), 4 * SQUARE),
        Workload("full sum of squares, 4096^2", lambda x: (x * x).sum(), with_(x), 4 * SQUARE),
        Workload("full sum int64 2^24", lambda x: (x * 3).sum(), with_(randint(FLAT, dtype=torch.int64)), 8 * FLAT),
        Workload("middle sum 64x512x512", partial(_sum_of, 1), with_(cube), 4 * SQUARE),
        Workload("sum of dims 0 and 2, 64x512x512", partial(_sum_of, [0, 2]), with_(cube), 4 * SQUARE),
        Workload("column sum 2^18 x 64", partial(_sum_of, 0), with_(randn(2**18, 64)), 4 * SQUARE),
        Workload("variance of rows 4096^2", lambda x: x.var(1), with_(x), 4 * SQUARE),
    ]


def transposes() -> list[Workload]:
    x, brain = randn(N, N), randn(N, N, dtype=BF16)
    heads, image = randn(16, 512, 16, 128), randn(32, 64, 64, 128)
    return [
        Workload("relu(x.t()+y) 4096^2", lambda x, y: torch.relu(x.t() + y), with_(x, x), 12 * SQUARE),
        Workload("relu(x.t()+y) bf16 4096^2", lambda x, y: torch.relu(x.t() + y), with_(brain, brain), 6 * SQUARE),
        Workload("(2x).t() made contiguous 4096^2", lambda x: (2 * x).t().contiguous(), with_(x), 8 * SQUARE),
        Workload("permute of heads 16x512x16x128", lambda x: (2 * x).permute(0, 2, 1, 3).contiguous(), with_(heads), 8 * SQUARE),
        Workload("NCHW to NHWC 32x64x64x128", lambda x: torch.relu(x).permute(0, 2, 3, 1).contiguous(), with_(image), 8 * SQUARE),
        Workload("NHWC to NCHW 32x64x64x128", lambda x: torch.relu(x).permute(0, 3, 1, 2).contiguous(), with_(image), 8 * SQUARE),
    ]


def small() -> list[Workload]:
    rows = [Workload("sigmoid 3x3", torch.sigmoid, with_(randn(3, 3)), 72), Workload("relu(x+y) 3x3", lambda x, y: torch.relu(x + y), with_(randn(3, 3), randn(3, 3)), 108)]
    for kib in (1, 4, 16, 64):
        n = kib * 256
        rows += [
            Workload(f"relu(x+y) {kib} KiB", lambda x, y: torch.relu(x + y), with_(randn(n), randn(n)), 12 * n),
            Workload(f"gelu(x+y) {kib} KiB", lambda x, y: F.gelu(x + y), with_(randn(n), randn(n)), 12 * n),
            Workload(f"softmax {kib} KiB", _softmax, with_(randn(n // 64, 64)), 8 * n),
            Workload(f"layer_norm {kib} KiB", partial(layer_norm, 128), with_(randn(n // 128, 128), randn(128), randn(128)), 8 * n),
            Workload(f"column sum {kib} KiB", partial(_sum_of, 0), with_(randn(n // 64, 64)), 4 * n),
            Workload(f"relu(x.t()) {kib} KiB", lambda x: torch.relu(x.t()).contiguous(), with_(randn(n // 16, 16)), 8 * n),
        ]
    return rows


def rows() -> list[Workload]:
    return pointwise() + norms() + reductions() + transposes() + small()
