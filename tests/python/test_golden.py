"""Kernel text equals the files in tests/golden: a change of a kernel is seen in review. FXF_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from golden_graphs import GRAPHS, kernels_of

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"


def text_of(name: str, target: str) -> str:
    parts = [f"// {kernel['schedule']}\n{kernel['source']}" for kernel in kernels_of(name, target)]
    # The number of threads of this machine is no part of the text, only of the schedule's line.
    return "\n".join(parts)


@pytest.mark.parametrize("target", ["cuda", "host"])
@pytest.mark.parametrize("name", GRAPHS)
def test_golden_text(name: str, target: str) -> None:
    file = GOLDEN / f"{name}.{'cu' if target == 'cuda' else 'cpp'}"
    text = text_of(name, target)
    if os.environ.get("FXF_UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text(), f"{file.name} differs; look at the change, then FXF_UPDATE_GOLDEN=1"


@pytest.mark.parametrize("name", ["pointwise_bfloat16", "layer_norm_residual", "sum_all", "sum_columns", "argmax", "transpose"])
def test_golden_compiles_with_nvcc(name: str, tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not Path(nvcc).exists():
        pytest.skip("no CUDA toolkit here")
    prelude = "".join(file.read_text() for file in sorted((ROOT / "codegen" / "cuda" / "device").glob("*.cuh")))
    source = tmp_path / f"{name}.cu"
    source.write_text(prelude + (GOLDEN / f"{name}.cu").read_text())
    done = subprocess.run([nvcc, "-std=c++17", "-arch=sm_90", "-cubin", "-o", str(tmp_path / "out.cubin"), str(source)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
