"""The cost of a trace under the capability mode, over the length of a function and over how deep its calls nest."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import torch
from fxfuser import TorchRefsNvfuserCapabilityMode
from timing import facts
from torch.fx.experimental.proxy_tensor import make_fx

F = torch.nn.functional
LENGTHS = (4, 8, 16, 32, 64, 128)


def _pointwise(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x) * 2 - 1


def _nested(x: torch.Tensor) -> torch.Tensor:
    """References that call references: layer norm, softmax, gelu, losses."""
    return F.layer_norm(F.gelu(torch.softmax(x, -1)), (x.shape[-1],)) + F.smooth_l1_loss(x, x * 2)


def _mixed(x: torch.Tensor) -> torch.Tensor:
    """Half of the calls can't be lowered as a whole: their attempts are taken back."""
    return torch.softmax(torch.acosh(F.softplus(x) + 1), -1) + torch.digamma(x.abs() + 1)


STEPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"pointwise": _pointwise, "nested": _nested, "mixed": _mixed}


def _trace_ms(step: Callable[[torch.Tensor], torch.Tensor], length: int, lower: bool, repeat: int = 3) -> tuple[float, int]:
    """Least time of a few traces in milliseconds, and the ops of the graph."""
    x = torch.rand(4, 8) + 0.5

    def fn(x: torch.Tensor) -> torch.Tensor:
        for _ in range(length):
            x = step(x)
        return x

    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        if lower:
            with TorchRefsNvfuserCapabilityMode():
                gm = make_fx(fn)(x)
        else:
            gm = make_fx(fn)(x)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3, sum(node.op == "call_function" for node in gm.graph.nodes)


def trace(options: argparse.Namespace) -> dict[str, Any]:
    """Trace time beside a plain make_fx; ``exponent`` 1 is linear in the length."""
    rows = []
    for name, step in STEPS.items():
        if options.filter and options.filter not in name:
            continue
        _trace_ms(step, 2, lower=True)
        row: dict[str, Any] = {"name": name, "steps": list(LENGTHS), "ms": [], "plain_ms": [], "ops": []}
        for length in LENGTHS:
            ms, ops = _trace_ms(step, length, lower=True)
            plain, _ = _trace_ms(step, length, lower=False)
            row["ms"].append(round(ms, 2))
            row["plain_ms"].append(round(plain, 2))
            row["ops"].append(ops)
        row["us_per_op"] = round(row["ms"][-1] * 1e3 / row["ops"][-1], 1)
        row["exponent"] = round(math.log(row["ms"][-1] / row["ms"][1]) / math.log(LENGTHS[-1] / LENGTHS[1]), 3)
        rows.append(row)
        print(row, flush=True)
    return {**facts("cpu"), "set": "trace", "rows": rows}
