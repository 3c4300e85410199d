"""compute-sanitizer finds nothing in any emitter form."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(280)
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_sanitizer(tool: str) -> None:
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(sanitizer).exists():
        pytest.skip("no compute-sanitizer on this machine")
    script = Path(__file__).with_name("small_forms.py")
    command = [sanitizer, "--tool", tool, "--kernel-regex", "kns=fxfuser", "--error-exitcode", "9", sys.executable, str(script)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if "not supported" in done.stdout and "forms run" not in done.stdout:
        pytest.skip("compute-sanitizer does not work on this machine")
    assert done.returncode == 0 and "forms run" in done.stdout, done.stdout[-3000:]
