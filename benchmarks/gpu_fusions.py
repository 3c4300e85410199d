"""Fusions of models and their backwards: batch and group norms, gated activations, masked softmax, rotary embedding, Adam."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from makers import Maker, causal, chance, channels_last, foreach, positive, randn, with_
from workloads import Workload

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
IMAGES = ((64, 256, 56, 56), (32, 64, 112, 112))


def batch_norm_relu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y, mean, rstd = torch.ops.aten._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5)
    return torch.relu(y), mean, rstd


def batch_norm_backward(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.ops.aten.native_batch_norm_backward(dy, x, w, None, None, mean, rstd, True, 1e-5, [True, True, True])


def group_norm_silu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.silu(F.group_norm(x, 32, w, b))


def dropout_residual_norm(x: torch.Tensor, bias: torch.Tensor, mask: torch.Tensor, residual: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    hidden = (x + bias) * mask * (1 / 0.9) + residual
    return hidden, F.layer_norm(hidden, (x.shape[-1],), w, b)


def residual_norm(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    hidden = x + bias + residual
    return hidden, F.layer_norm(hidden, (x.shape[-1],), w, b)


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return F.silu(gate) * up


def geglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return F.gelu(gate) * up


def swiglu_backward(dy: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ops.aten.silu_backward(dy * up, gate), dy * F.silu(gate)


def geglu_backward(dy: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ops.aten.gelu_backward(dy * up, gate), dy * F.gelu(gate)


def masked_softmax(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.softmax((x * 0.125).masked_fill(mask, float("-inf")), -1)


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def adam(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    m = m * 0.9 + g * 0.1
    v = v * 0.999 + g * g * 0.001
    return p - 1e-3 * (m / (1 - 0.9**3)) / ((v / (1 - 0.999**3)).sqrt() + 1e-8), m, v


def adam_of_many(*tensors: torch.Tensor) -> list[torch.Tensor]:
    count = len(tensors) // 4
    out: list[torch.Tensor] = []
    for index in range(count):
        out += adam(*tensors[index::count])
    return out


def norms() -> list[Workload]:
    out = []
    for shape in IMAGES:
        for dtype in (FP16, FP32):
            c, images = randn(shape[1], dtype=FP32), "x".join(map(str, shape))
            count = shape[0] * shape[1] * shape[2] * shape[3] * dtype.itemsize
            for layout in ("NCHW", "channels-last"):
                x: Maker = randn(*shape, dtype=dtype)
                if layout != "NCHW":
                    x = channels_last(x)
                name = f"{images} {'fp16' if dtype == FP16 else 'fp32'} {layout}"
                out.append(Workload(f"batch norm training + relu {name}", batch_norm_relu, with_(x, c, c), 2 * count))
                out.append(Workload(f"batch norm backward {name}", batch_norm_backward, with_(x, x, c, randn(shape[1]), positive(shape[1])), 3 * count, (2, 1)))
    x, v = randn(32, 512, 64, 64, dtype=BF16), randn(512, dtype=BF16)
    return [*out, Workload("group norm (32) + silu 32x512x64x64", group_norm_silu, with_(x, v, v), 4 * 32 * 512 * 4096)]


def models() -> list[Workload]:
    h, w, x, v = 16384, 4096, randn(16384, 4096, dtype=BF16), randn(4096, dtype=BF16)
    gate = randn(16384, 8192, dtype=BF16)
    full, wide = 2 * h * w, 2 * h * 8192
    scores, heads = randn(64, 16, 1024, 1024, dtype=BF16), randn(8, 2048, 32, 128, dtype=BF16)
    angle = randn(1, 2048, 1, 128, dtype=BF16)
    many = 64
    return [
        Workload("bias + dropout + residual + layer norm 16384x4096", dropout_residual_norm, with_(x, v, chance(h, w), x, v, v), 4 * full + full // 2, (2, 2)),
        Workload("bias + residual + layer norm 16384x4096", residual_norm, with_(x, v, x, v, v), 4 * full, (2, 2)),
        Workload("SwiGLU 16384x8192", swiglu, with_(gate, gate), 3 * wide, (2, 1)),
        Workload("GEGLU 16384x8192", geglu, with_(gate, gate), 3 * wide, (2, 1)),
        Workload("SwiGLU backward 16384x8192", swiglu_backward, with_(gate, gate, gate), 5 * wide, (3, 2)),
        Workload("GEGLU backward 16384x8192", geglu_backward, with_(gate, gate, gate), 5 * wide, (3, 2)),
        Workload("masked, scaled softmax 64x16x1024x1024", masked_softmax, with_(scores, causal(1024)), 4 * 2**30),
        Workload("RoPE 8x2048x32x128", rope, with_(heads, angle, angle), 4 * 2**26),
        Workload("Adam 2^27 fp32", adam, with_(*[randn(2**27)] * 3, positive(2**27)), 7 * 4 * 2**27, (4, 3)),
        Workload("Adam over 64 tensors of 2^20 fp32", adam_of_many, foreach(many, [randn(2**20)] * 3 + [positive(2**20)]), 7 * 4 * many * 2**20, (4, 3)),
    ]


def fusions() -> list[Workload]:
    return norms() + models()
