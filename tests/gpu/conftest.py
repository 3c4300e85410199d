"""GPU tests: one device, errors raised, floors for what was launched."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))


@pytest.fixture(autouse=True, scope="session")
def device() -> None:
    if not torch.cuda.is_available():
        pytest.exit("the GPU tests need a CUDA device", returncode=1)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def full_precision() -> None:
    """TF32 in what stays with ATen would hide our own errors, or be taken for one."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
