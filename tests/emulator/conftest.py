"""CUDA kernels on the CPU under AddressSanitizer and UndefinedBehaviorSanitizer; tests/run.py preloads their runtimes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

# Integer overflow wraps in rows, as in PyTorch, so it is no finding.
FLAGS = ["-x", "c++", "-std=c++17", "-O1", "-fPIC", "-shared", "-w", "-fno-threadsafe-statics", "-fsanitize=address,undefined",
         "-fno-sanitize=signed-integer-overflow", "-fno-sanitize-recover=all"]


@pytest.fixture(autouse=True, scope="session")
def machine() -> None:
    import fxfuser
    from machine import machine_text

    assert "libasan" in os.environ.get("LD_PRELOAD", ""), "run these tests through tests/run.py, which preloads the sanitizers"
    fxfuser._C.emulate_cuda(machine_text(), FLAGS)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)
