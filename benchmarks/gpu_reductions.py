"""Full and partial reductions, pointwise streams, and sizes that live in the L2."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from makers import randn, with_
from workloads import Workload, gelu_sigmoid, seed

BF16 = torch.bfloat16


def sum_of(dims: tuple[int, ...], x: torch.Tensor) -> torch.Tensor:
    return x.sum(dims)


def reductions() -> list[Workload]:
    read = (1, 0)
    cases: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
        ("full sum 2^29", (2**29,), (0,)),
        ("sum of rows [1, 2^28]", (1, 2**28), (1,)),
        ("sum of rows [2^28, 1]", (2**28, 1), (1,)),
        ("sum of rows [7, 2^25]", (7, 2**25), (1,)),
        ("sum of columns [2^25, 7]", (2**25, 7), (0,)),
        ("sum of the middle axis 512x512x1024", (512, 512, 1024), (1,)),
        ("sum of axes 0, 2 of 64x64x256x256", (64, 64, 256, 256), (0, 2)),
        ("sum of axes 0, 2, 3 of 64x64x256x256", (64, 64, 256, 256), (0, 2, 3)),
        ("sum of axes 1, 3 of 64x64x256x256", (64, 64, 256, 256), (1, 3)),
    ]
    out = []
    for name, shape, dims in cases:
        count = 2 * torch.Size(shape).numel()
        out.append(Workload(name, partial(sum_of, dims), with_(randn(*shape, dtype=BF16)), 2 * count if shape[-1] == 1 else count, (1, 1) if shape[-1] == 1 else read))
    return [
        *out,
        Workload("full sum of squares 1 GiB fp32", lambda x: (x * x).sum(), with_(randn(2**28)), 4 * 2**28, read),
        Workload("maximum of rows 16384x16384 fp32", lambda x: x.amax(1), with_(randn(16384, 16384)), 4 * 2**28, read),
        Workload("argmax of rows 16384x16384", lambda x: x.argmax(1), with_(randn(16384, 16384, dtype=BF16)), 2 * 2**28, read),
        Workload("variance of rows 16384x16384", lambda x: x.var(1), with_(randn(16384, 16384, dtype=BF16)), 2 * 2**28, read),
        Workload("gelu(1.5x+0.5)*sigmoid(x) 1 GiB fp32", gelu_sigmoid, with_(randn(2**28)), 8 * 2**28),
        Workload("x*y+z 2^28", lambda x, y, z: x * y + z, with_(*[randn(2**28, dtype=BF16)] * 3), 8 * 2**28, (3, 1)),
        Workload("2x+1 2^28", lambda x: 2 * x + 1, with_(randn(2**28, dtype=BF16)), 4 * 2**28),
    ]


def small() -> list[Workload]:
    """Device time in the L2, by replays of a graph."""
    out = []
    for power in (10, 12, 14, 17, 20, 22):
        n = 2**power
        square = (2 ** (power // 2), 2 ** (power - power // 2))
        out += [
            Workload(f"gelu+1 fp32 2^{power}", lambda x: F.gelu(x) + 1, with_(randn(n)), 8 * n, resident=True),
            Workload(f"sum fp32 2^{power}", lambda x: x.sum(), with_(randn(n)), 4 * n, (1, 0), resident=True),
            Workload(f"row sum fp32 2^{power}", partial(sum_of, (1,)), with_(randn(*square)), 4 * n, (1, 0), resident=True),
            Workload(f"column sum fp32 2^{power}", partial(sum_of, (0,)), with_(randn(*square)), 4 * n, (1, 0), resident=True),
            Workload(f"softmax fp32 2^{power}", lambda x: torch.softmax(x, -1), with_(randn(*square)), 8 * n, resident=True),
            Workload(f"relu(x.t()+1) fp32 2^{power}", lambda x: torch.relu(x.t() + 1).contiguous(), with_(randn(*square)), 8 * n, resident=True),
        ]
    norm = seed()[2]
    return [*out, Workload(norm.name, norm.fn, norm.args, norm.bytes, resident=True)]
