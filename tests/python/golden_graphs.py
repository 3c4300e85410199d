"""The fusions whose kernels are kept as golden text: one of each form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx

Graph = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]


def _t(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


GRAPHS: dict[str, Graph] = {
    "pointwise": (lambda x, y: torch.sigmoid(x) * y + 1, (_t(128, 1024), _t(128, 1024))),
    "pointwise_bfloat16": (lambda x, b: F.gelu(x + b), (_t(64, 256, dtype=torch.bfloat16), _t(256, dtype=torch.bfloat16))),
    "pointwise_strided": (lambda x: x[::2, 1:] * 2, (_t(12, 11),)),
    "dropout": (lambda x, s: torch.ops.fxfuser.seeded_native_dropout(x, 0.1, True, s, 3)[0] * 2, (_t(4096, 1024), torch.zeros((), dtype=torch.int64))),
    "layer_norm_residual": (lambda x, r, w, b: F.layer_norm(x + r, (768,), w, b), (_t(512, 768), _t(512, 768), _t(768), _t(768))),
    "row_columns": (lambda x, w: (torch.softmax(x, -1) * w, torch.softmax(x, -1).sum(0)), (_t(8192, 1024), _t(1024))),
    "softmax_long": (lambda x: torch.softmax(x, -1), (_t(4096, 40000),)),
    "rms_norm_long": (lambda x, w: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w, (_t(4096, 40000), _t(40000))),
    "softmax_columns": (lambda x: torch.softmax(x, 0), (_t(300, 512),)),
    "softmax_shifted": (lambda x, w: torch.softmax(x, -1) * w, (_t(4096, 4095, dtype=torch.bfloat16), _t(4095, dtype=torch.bfloat16))),
    "row_columns_shifted": (lambda x: (torch.softmax(x, -1), torch.softmax(x, -1).sum(0)), (_t(8192, 1025, dtype=torch.bfloat16),)),
    "pointwise_shifted": (lambda x, b: F.gelu(x + b), (_t(4096, 1025, dtype=torch.bfloat16), _t(1025, dtype=torch.bfloat16))),
    "sum_rows": (lambda x: (x * x).sum(-1), (_t(4096, 1000),)),
    "sum_all": (lambda x: x.sum(), (_t(1 << 22),)),
    "sum_columns": (lambda x: x.sum(0), (_t(8192, 1024),)),
    "sum_short_columns": (lambda x, w: (x * w).sum(0), (_t(1 << 20, 7, dtype=torch.bfloat16), _t(7, dtype=torch.bfloat16))),
    "argmax": (lambda x: x.max(-1), (_t(64, 1000),)),
    "transpose": (lambda x: (x.t() * 2).contiguous(), (_t(1024, 2048),)),
    "embedding": (lambda t, i: F.embedding(i, t) * 2, (_t(100, 64), torch.zeros(7, 9, dtype=torch.int64))),
    "cat": (lambda a, b: torch.cat([a, b], 1) * 2, (_t(32, 20), _t(32, 44))),
}


def kernels_of(name: str, target: str) -> list[dict[str, Any]]:
    """The kernels of a golden graph, planned for a target (CUDA: an H200)."""
    fn, args = GRAPHS[name]
    gm = make_fx(fn)(*args)
    kernels = fxfuser.explain(gm, *args, target=target).data["kernels"]
    assert kernels, f"{name} is not fused"
    return list(kernels)
