"""The approximations of 16-bit results, where they could go wrong: special values, subnormal ones, the ends of the range."""

from __future__ import annotations

import math
from collections.abc import Callable

import fxfuser
import pytest
import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx

VALUES = [0.0, 1e-40, 1e-38, 5e-7, 6e-5, 0.25, 0.5, 1.0, 1.5, 3.0, 5.5, 8.0, 12.0, 13.25, 14.0, 60.0, 86.0, 88.0, 89.0, 96.0, 104.0, 130.0, 6e4, 1e38, 3e38, float("inf")]

CASES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "exp": lambda x, y: torch.exp(x),
    "exp2": lambda x, y: torch.exp2(x),
    "sigmoid": lambda x, y: torch.sigmoid(x),
    "silu": lambda x, y: F.silu(x),
    "silu_backward": lambda x, y: torch.ops.aten.silu_backward(y, x),
    "sqrt": lambda x, y: torch.sqrt(x),
    "reciprocal": lambda x, y: torch.reciprocal(x),
    "div": lambda x, y: x / y,
    "gelu": lambda x, y: F.gelu(x),
    "gelu_tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "gelu_backward": lambda x, y: torch.ops.aten.gelu_backward(y, x),
    "softmax": lambda x, y: torch.softmax(torch.stack([x, y]), 0),
}

# Where the formula cancels in float64 too.
REFERENCES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "gelu_tanh": lambda x, y: x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
    "gelu": lambda x, y: 0.5 * x * torch.erfc(-x * math.sqrt(0.5)),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_narrow(name: str, dtype: torch.dtype) -> None:
    values = torch.tensor(VALUES + [-value for value in VALUES] + [float("nan")]).to(dtype)
    x, y = (part.reshape(-1).contiguous() for part in torch.meshgrid(values, values, indexing="ij"))
    fn = CASES[name]
    gm = make_fx(fn)(x, y)
    kernels = fxfuser.explain(gm, x, y, target="cuda").data["kernels"]
    assert any("fxf_narrow_" in kernel["source"] for kernel in kernels), name
    before = fxfuser.stats()["launches"]["cuda"]
    ours = fxfuser.execute(gm, x, y, executor_parameters={"on_error": "raise"})
    assert fxfuser.stats()["launches"]["cuda"] > before
    eager, exact = fn(x, y), REFERENCES.get(name, fn)(x.double(), y.double())
    # The bfloat16 GELU of PyTorch's CPU is NaN or infinite at the end of the range, its CUDA one is not: either is right.
    for kind in (torch.isnan, torch.isinf):
        wrong = (kind(ours) != kind(eager)) & (kind(ours) != kind(exact.to(dtype)))
        assert not wrong.any(), f"{name}: {kind.__name__} at {x[wrong][:4]}, {y[wrong][:4]}: {ours[wrong][:4]}, not {eager[wrong][:4]}"
    sure = eager.isfinite() & ours.isfinite()
    # One unit of the last place, the smallest subnormal number's at least; or no further off than eager.
    error, others = (ours.double() - exact).abs()[sure], (eager.double() - exact).abs()[sure]
    unit = torch.maximum(eager.double().abs()[sure] * torch.finfo(dtype).eps, torch.tensor(torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps, dtype=torch.float64))
    worse = error > torch.maximum(1.1 * others, unit)
    assert not worse.any(), f"{name}: {x[sure][worse][:4]} {y[sure][worse][:4]} gives {ours[sure][worse][:4]}, not {eager[sure][worse][:4]}"


def test_what_is_seen_exactly_is_computed_exactly() -> None:
    """A float32 result, a comparison and a rounding to integers see the value itself."""
    x = torch.randn(64).bfloat16()
    for fn in (lambda x: torch.exp(x.float()), lambda x: torch.floor(x / 3), lambda x: (x / 3 > 1).to(torch.bfloat16), lambda x: torch.exp(x).to(torch.int64)):
        gm = make_fx(fn)(x)
        for kernel in fxfuser.explain(gm, x, target="cuda").data["kernels"]:
            assert "fxf_narrow_" not in kernel["source"], kernel["source"]
