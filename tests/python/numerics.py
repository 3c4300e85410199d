"""The acceptance rule for numbers: at most 1.1 times eager's own error against a float64 reference, or one unit in the last
place of the result's dtype; integers, booleans, NaN and infinities exactly."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

# torch.testing's defaults, for a single op against eager.
TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
}


def widened(value: Any) -> Any:
    """Floating tensors in float64."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    return value


def ulp(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """One unit in the last place of `dtype` at each element (float64)."""
    info = torch.finfo(dtype)
    magnitude = value.abs().clamp(min=info.tiny)
    return torch.exp2(torch.floor(torch.log2(magnitude))) * info.eps


def check_against_reference(ours: torch.Tensor, eager: torch.Tensor, reference: torch.Tensor, name: str) -> None:
    """Asserts the rule; `reference` is float64."""
    same_layout(ours, eager, name)
    if not eager.is_floating_point():
        assert torch.equal(ours, eager), f"{name}: integers and booleans must be exact"
        return
    ours64, eager64 = ours.double(), eager.double()
    finite = torch.isfinite(eager64) & torch.isfinite(reference)
    special = ~torch.isfinite(eager64)
    assert torch.equal(torch.isnan(ours64[special]), torch.isnan(eager64[special])), f"{name}: NaN differs from eager"
    if not finite.any():
        return
    ours_error = (ours64 - reference).abs()[finite]
    eager_error = (eager64 - reference).abs()[finite]
    one = ulp(reference, ours.dtype)[finite]
    # Where values are sums, the largest of many errors varies by chance: then their root mean square decides, and no element
    # may be twice as bad.
    if float(ours_error.square().mean()) <= 1.21 * float(eager_error.square().mean()) and bool((ours_error <= torch.maximum(2 * eager_error.max(), one)).all()):
        return
    bad = (ours_error > torch.maximum(1.1 * eager_error.max().expand_as(one), one)) | torch.isnan(ours_error)
    assert not bad.any(), f"{name}: error {ours_error[bad].max():.3e}, eager's {eager_error.max():.3e}, one ulp there {one[bad].max():.3e}"


def same_layout(ours: torch.Tensor, eager: torch.Tensor, name: str) -> None:
    assert ours.dtype == eager.dtype, f"{name}: dtype {ours.dtype}, eager {eager.dtype}"
    assert ours.shape == eager.shape, f"{name}: shape {tuple(ours.shape)}, eager {tuple(eager.shape)}"
    assert ours.stride() == eager.stride() or eager.numel() == 0, f"{name}: strides {ours.stride()}, eager {eager.stride()}"
    assert ours.device == eager.device, f"{name}: device {ours.device}, eager {eager.device}"


def check_close(ours: Any, eager: Any, name: str) -> None:
    """torch.testing's defaults against eager, layouts included."""
    left, right = pytree.tree_leaves(ours), pytree.tree_leaves(eager)
    assert len(left) == len(right), f"{name}: {len(left)} results, eager {len(right)}"
    for index, (a, b) in enumerate(zip(left, right, strict=True)):
        if isinstance(b, torch.Tensor):
            same_layout(a, b, f"{name}[{index}]")
            rtol, atol = TOLERANCES.get(b.dtype, (0.0, 0.0))
            torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True, msg=lambda text, i=index: f"{name}[{i}]: {text}")
        else:
            assert a == b, f"{name}[{index}]: {a!r}, eager {b!r}"
