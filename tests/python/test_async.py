"""``compile="async"``: calls run through ATen while kernels compile, and fused once they are there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

ASYNC = {"compile": "async"}


def until(call: Callable[[], Any], done: Callable[[], bool], seconds: float = 30) -> int:
    """Calls until `done`; how often."""
    end = time.monotonic() + seconds
    calls = 0
    while not done():
        assert time.monotonic() < end, "it never came to that"
        call()
        calls += 1
        time.sleep(0.01)
    return calls


def test_first_calls_run_through_aten_and_later_ones_fused(launches: Callable[[], int]) -> None:
    fxfuser.clear_caches(disk=True)
    x = torch.randn(32, 48)
    gm = make_fx(lambda x: torch.digamma(torch.tanh(x * 1.375) + 2.5).softmax(-1) * x)(x)
    check_close(execute(gm, x, executor_parameters=ASYNC), gm(x), "the first call")
    assert launches() == 0, "it waits for no compiler"

    def call() -> None:
        check_close(execute(gm, x, executor_parameters=ASYNC), gm(x), "meanwhile")

    until(call, lambda: launches() >= 2)
    before = launches()
    call()
    assert launches() == before + 2, "both kernels"
    hits = fxfuser.stats()["plan_hits"]
    call()
    assert fxfuser.stats()["plan_hits"] == hits + 1
    y = torch.randn(7, 5)
    check_close(execute(gm, y, executor_parameters=ASYNC), gm(y), "a new shape")


def test_strict_waits(launches: Callable[[], int]) -> None:
    fxfuser.clear_caches(disk=True)
    x = torch.randn(8, 8)
    gm = make_fx(lambda x: torch.tanh(x * 1.4375) + 2)(x)
    check_close(execute(gm, x, executor="strictly_nvfuser", executor_parameters=ASYNC), gm(x), "strict")
    assert launches() == 1


FAILING = """
import time, warnings, torch, fxfuser
from torch.fx.experimental.proxy_tensor import make_fx
warnings.simplefilter("always")
x = torch.randn(8, 8)
gm = make_fx(lambda x: torch.tanh(x * 1.4375) + 2)(x)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(100):
        torch.testing.assert_close(fxfuser.execute(gm, x, executor_parameters={"compile": "async"}), gm(x))
        time.sleep(0.01)
texts = [str(item.message) for item in told if item.category is fxfuser.FallbackWarning]
assert len(texts) == 1 and "does not compile" in texts[0], texts
assert fxfuser.stats()["launches"]["host"] == 0
"""

LEAVING = """
import os, sys, time, torch, fxfuser
from torch.fx.experimental.proxy_tensor import make_fx
x = torch.randn(8, 8)
for width in range(6):  # all but the first wait in the queue
    gm = make_fx(lambda x: torch.tanh(x * 1.4375).softmax(-1) + width)(x)
    fxfuser.execute(gm, x, executor_parameters={"compile": "async"})
if sys.argv[1] == "fork":
    child = os.fork()
    out = fxfuser.execute(gm, x)
    torch.testing.assert_close(out, gm(x))
    assert fxfuser.stats()["launches"]["host"] >= 1
    if child == 0:
        fxfuser.reset_stats()
        for _ in range(1000):  # what waited in the parent's queue is asked for again
            torch.testing.assert_close(fxfuser.execute(gm, x, executor_parameters={"compile": "async"}), out)
            if fxfuser.stats()["launches"]["host"] > 0:
                break
            time.sleep(0.01)
        else:
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print("left")
"""


def script(text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


def test_a_kernel_that_does_not_compile_is_told_once(tmp_path: Any) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nfor word in "$@"; do case "$word" in --version|-dumpversion|-dumpmachine) exec g++ "$word";; esac; done\necho "no such luck" >&2\nexit 1\n')
    compiler.chmod(0o700)
    done = script(FAILING, CXX=str(compiler), FXFUSER_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("way", ["exit", "fork"])
def test_leaving_while_kernels_compile(way: str, tmp_path: Any) -> None:
    # A forked child of torch's can't use the OpenMP threads of its parent, so there are none.
    done = script(LEAVING, way, OMP_NUM_THREADS="1", FXFUSER_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0 and "left" in done.stdout, (done.returncode, done.stderr[-2000:])
