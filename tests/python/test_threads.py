"""Many threads on one module, and what the GIL is held for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import fxfuser
import torch
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx


def test_eight_threads_on_one_module(launches: Callable[[], int]) -> None:
    fxfuser.clear_caches(disk=True)
    gm = make_fx(lambda x: torch.digamma(torch.tanh(x * 1.125) + 2.5) * x)(torch.randn(4, 4))
    inputs = [torch.randn(3 + index % 5, 4 + index % 3) for index in range(160)]
    expected = [gm(x) for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda x: execute(gm, x, executor_parameters={"on_error": "raise"}), inputs))
    for index, (ours, eager) in enumerate(zip(results, expected, strict=True)):
        check_close(ours, eager, f"call {index}")
    assert launches() == 2 * len(inputs)


def steps_meanwhile(work: Callable[[], object]) -> tuple[int, float]:
    """How often another thread ran Python in millisecond steps while `work` ran here, and the seconds of `work`."""
    steps = 0
    done = threading.Event()

    def count() -> None:
        nonlocal steps
        while not done.is_set():
            time.sleep(0.001)
            steps += 1

    thread = threading.Thread(target=count)
    thread.start()
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    return steps, seconds


def test_the_gil_is_not_held_while_a_kernel_compiles(launches: Callable[[], int]) -> None:
    fxfuser.clear_caches(disk=True)
    x = torch.randn(64, 64)
    gm = make_fx(lambda x: torch.tanh(x * 1.0625).softmax(-1) + 0.375)(x)
    compiles = fxfuser.stats()["compiles"]
    steps, seconds = steps_meanwhile(lambda: execute(gm, x))
    assert fxfuser.stats()["compiles"] == compiles + 1 and launches() == 1
    assert seconds > 0.05 and steps > 10, f"{steps} steps in {seconds:.3f} s"


def test_the_gil_is_not_held_while_a_large_kernel_runs(launches: Callable[[], int]) -> None:
    x = torch.randn(1 << 22)
    gm = make_fx(lambda x: torch.erf(torch.tanh(torch.sin(x)).exp()))(x)
    execute(gm, x)
    steps, seconds = steps_meanwhile(lambda: [execute(gm, x) for _ in range(20)])
    assert launches() == 21
    assert steps > 5, f"{steps} steps in {seconds:.3f} s"
