"""Whole models on the GPU, in three dtypes, against float64."""

from __future__ import annotations

import sys
from pathlib import Path

import fxfuser
import pytest
import torch
from torch.utils import _pytree as pytree

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from model_graphs import MODELS  # noqa: E402


def norm(error: torch.Tensor) -> float:
    return float(error.double().square().mean().sqrt())


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.bfloat16), ids=str)
@pytest.mark.parametrize("name", sorted(MODELS))
def test_model(name: str, dtype: torch.dtype) -> None:
    """The error is measured over the whole output (root of the mean square): single elements of a deep model vary by chance."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model = model.eval().requires_grad_(False).cuda()
    reference = pytree.tree_leaves(model.double()(*(x.cuda().double() if x.is_floating_point() else x.cuda() for x in inputs)))[0]
    model = model.to(dtype)
    inputs = tuple(x.cuda().to(dtype) if x.is_floating_point() else x.cuda() for x in inputs)
    with torch.no_grad():
        gm = torch.export.export(model, inputs).module()
        before = fxfuser.stats()["launches"]["cuda"]
        ours = pytree.tree_leaves(fxfuser.execute(gm, *inputs, executor_parameters={"on_error": "raise"}))[0]
        assert fxfuser.stats()["launches"]["cuda"] > before
        eager = pytree.tree_leaves(gm(*inputs))[0]
    unit = float(reference.abs().max()) * torch.finfo(dtype).eps
    eager_error, ours_error = norm(eager - reference), norm(ours - reference)
    assert ours_error <= max(1.1 * eager_error, unit / 4), f"ours {ours_error:.3e}, eager {eager_error:.3e}"
