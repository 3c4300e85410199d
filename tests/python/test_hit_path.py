"""What a call costs that a plan takes, in instructions: callgrind counts them, so that the number does not depend on the machine's load."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "tests" / "fxfuser_hit_path"
# One Program::run of sigmoid 3 x 3 on the host target, allocation of the result and the kernel included. Only falls.
CEILING = 4800


def test_instructions_of_a_hit(tmp_path: Path) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind (apt-get install valgrind)")
    if not PROGRAM.exists():
        pytest.skip("needs the C++ tests (FXFUSER_TORCH_FREE_ONLY is off)")
    # Valgrind knows no AVX-512; one thread, so that no pool is made.
    environment = {**os.environ, "CXX": os.environ.get("CXX", "g++") + " -mno-avx512f", "OMP_NUM_THREADS": "1", "FXFUSER_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([str(PROGRAM), "fill"], env=environment, check=True, timeout=120)
    out = tmp_path / "callgrind.out"
    command = ["valgrind", "--tool=callgrind", "--toggle-collect=fxfuser_measured_calls", f"--callgrind-out-file={out}", str(PROGRAM)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    calls = int(re.search(r"calls (\d+)", done.stdout)[1])  # type: ignore[index]
    total = int(re.search(r"Collected : (\d+)", done.stderr)[1])  # type: ignore[index]
    each = total / calls
    print(f"{each:.0f} instructions a call")
    assert 100 < each < CEILING, f"{each:.0f} instructions a call, the ceiling is {CEILING}: callgrind_annotate {out} says where they go"
