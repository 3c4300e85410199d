"""A slow first call shows a bar at a terminal and nothing in a log."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import torch, fxfuser
from torch.fx.experimental.proxy_tensor import make_fx
x = [torch.randn(8, 8) for _ in range(6)]
gm = make_fx(lambda *x: (x[0].sin(), x[1].sum(0), x[2].softmax(1), x[3].t().exp(), x[4].cos() * 2, x[5].amax(1)))(*x)
fxfuser.execute(gm, *x)
assert fxfuser.stats()["compiles"] > 2
"""


def run(folder: Path, terminal: bool) -> str:
    compiler = folder / "slow"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] || sleep 2.2\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    environment = {**os.environ, "CXX": str(compiler), "FXFUSER_CACHE_DIR": str(folder / "cache")}
    if not terminal:
        done = subprocess.run([sys.executable, "-c", SCRIPT], stderr=subprocess.PIPE, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stderr
    reader, writer = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=writer, env=environment)
    os.close(writer)
    text = b""
    while True:
        try:
            piece = os.read(reader, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text += piece
    assert process.wait() == 0, text
    return text.decode(errors="replace")


def test_bar_at_a_terminal(tmp_path: Path) -> None:
    assert "fxfuser: compiling kernels [" in run(tmp_path, terminal=True)


def test_no_line_in_a_log(tmp_path: Path) -> None:
    assert "compiling" not in run(tmp_path, terminal=False)
