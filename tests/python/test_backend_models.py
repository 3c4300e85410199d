"""Real models under the backend: forward, gradients and buffers as exact as eager's, nearly all nodes fused, no warnings.

A few models of each kind run by default; FXFUSER_ALL_MODELS=1 runs the whole of model_table.py (about four minutes on two cores).
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable

import pytest
import torch
from model_check import measure
from model_table import ROWS, build, result

QUICK = ("bert", "gpt2", "llama", "t5", "wav2vec2", "beit", "clip", "mamba", "convnext", "resnet", "unet", "lstm")
NAMES = tuple(ROWS) if os.environ.get("FXFUSER_ALL_MODELS") else QUICK


def needs(name: str) -> None:
    source = ROWS[name].source
    if source != "own" and importlib.util.find_spec(source) is None:
        pytest.skip(f"{source} is not installed")


def test_the_table_has_thirty_models() -> None:
    assert len(ROWS) >= 30
    assert sum(row.source != "own" for row in ROWS.values()) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_as_exact_as_eager_and_fused(name: str) -> None:
    needs(name)
    found = measure(name)
    assert not found.wrong
    assert not found.warnings
    assert found.tensors >= 5
    # Two standard errors: what a few inputs can't tell from chance in a model that magnifies roundings.
    assert found.mean_ratio <= 1.1 * found.spread**2, f"errors are {found.mean_ratio:.2f} times eager's in the geometric mean, give or take {found.spread:.2f}"
    assert found.spread <= 1.5
    assert found.worst_ratio <= 8, f"{found.worst_tensor}: error {found.worst_ratio:.1f} times eager's"
    # What explain counts before a run may be a few off, where ATen's results have other strides than their fake ones.
    assert found.graphs >= 2 and found.kernels >= 10 and found.first_launches >= 0.9 * found.kernels
    assert found.fused_share >= 0.95, found.reasons


def test_dropout_is_eagers_under_a_seed(launches: Callable[[], int]) -> None:
    needs("bert")
    model, args, kwargs = build("bert")
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.2
    found = []
    for call in (model, torch.compile(model, backend="fxfuser")):
        model.zero_grad()
        torch.manual_seed(5)
        y = result(call(*args, **kwargs))
        y.square().mean().backward()
        found.append((y.detach(), [parameter.grad for parameter in model.parameters()]))
    (eager, eager_gradients), (ours, gradients) = found
    torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-6)
    for a, b in zip(gradients, eager_gradients, strict=True):  # a compiled graph gives zeros for what the loss leaves out
        torch.testing.assert_close(a, torch.zeros_like(a) if b is None else b, rtol=1e-4, atol=1e-6)
    assert launches() >= 20
