"""How a row is timed: every peer in one process, in turn, median of many; on CUDA device time by events with the L2 cleared."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

import fxfuser
import torch
from torch.fx.experimental.proxy_tensor import make_fx

Run = Callable[[], Any]


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def wall_ms(run: Run, device: str, budget_s: float = 0.6, least: int = 7) -> float:
    """Median wall time of a call with a synchronise after each, in milliseconds."""
    run()
    synchronize(device)
    times: list[float] = []
    end = time.perf_counter() + budget_s
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        synchronize(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def interleaved_ms(runs: dict[str, Run], budget_s: float = 1.5, least: int = 5) -> dict[str, float]:
    """Wall time of a call of each on the CPU, in milliseconds: the lower quartile over rounds. A round times every peer once, in
    turn, so that what else the machine does hits all alike; a short call is repeated until a turn takes some 0.3 ms. Not the
    median: on a shared machine more than half the turns may wait for a core, which says nothing of the peer."""
    repeats: dict[str, int] = {}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for name, run in runs.items():
        run()
        start = time.perf_counter()
        run()
        repeats[name] = max(1, min(200, int(3e-4 / (time.perf_counter() - start))))
    end = time.perf_counter() + budget_s
    while min(map(len, times.values())) < least or time.perf_counter() < end:
        for name, run in runs.items():
            run()  # the caches hold this peer's data, not the one before's
            start = time.perf_counter()
            for _ in range(repeats[name]):
                run()
            times[name].append((time.perf_counter() - start) / repeats[name])
    return {name: sorted(taken)[len(taken) // 4] * 1e3 for name, taken in times.items()}


def device_ms(run: Run, repeat: int = 30) -> float:
    """Median device time of a call in milliseconds, by CUDA events, with 256 MB written before each (a cold L2)."""
    flush = torch.empty(256 * 2**20, dtype=torch.int8, device="cuda")
    for _ in range(3):
        run()
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeat)]
    for start, end in pairs:
        flush.zero_()
        start.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in pairs)


def replayed_ms(run: Run, calls: int = 20) -> float:
    """Device time of a call in milliseconds without its host time: `calls` of them in one CUDA graph, replayed; the L2 stays warm."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            run()
    times = []
    for _ in range(15):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        graph.replay()
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / calls)
    return statistics.median(times)


def host_us(run: Run, device: str, calls: int = 200) -> float:
    """Median over batches of the host time of one call in microseconds, not waiting for the device (short queue)."""
    times = []
    for _ in range(15):
        synchronize(device)
        start = time.perf_counter()
        for _ in range(calls // 10):
            run()
        times.append((time.perf_counter() - start) / (calls // 10))
        synchronize(device)
    return statistics.median(times) * 1e6


def copy_ceiling(device: str) -> float:
    """GB/s of a large copy, bytes read plus bytes written."""
    size = 2**29 if device == "cuda" else 2**25
    source = torch.randn(size // 4, device=device)
    target = torch.empty_like(source)
    ms = device_ms(lambda: target.copy_(source)) if device == "cuda" else wall_ms(lambda: target.copy_(source), device)
    return 2 * size / ms / 1e6


class Ceilings:
    """GB/s of plain streams on this device by how many tensors they read and write and how many bytes they move: what a kernel of
    that mix and size could reach. The streams are ours, torch's copy for one read and one write where it is faster."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], float] = {}

    def of(self, mix: tuple[int, int], size: int) -> float:
        reads, writes = mix
        key = (reads, writes, max(size, 2**26).bit_length())
        if key not in self._known:
            count = 2 ** (key[2] - 1) // (4096 * (reads + writes)) * 1024  # whole vectors
            args = [torch.randn(count, device="cuda") for _ in range(max(reads, 1))]
            gm = make_fx(_stream(reads, writes))(*args)
            ms = [device_ms(lambda: fxfuser.execute(gm, *args))]
            if mix == (1, 1):
                target = torch.empty_like(args[0])
                ms.append(device_ms(lambda: target.copy_(args[0])))
            self._known[key] = 4 * count * (reads + writes) / min(ms) / 1e6
        return self._known[key]


def _stream(reads: int, writes: int) -> Callable[..., Any]:
    def run(*args: torch.Tensor) -> Any:
        total = args[0]
        for value in args[1:]:
            total = total + value
        return tuple(total * (2.0 + k) for k in range(writes)) if writes else total.amax()

    return run


def facts(device: str) -> dict[str, Any]:
    """What a result file says of where it was measured."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    name = torch.cuda.get_device_name() if device == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    return {"commit": commit, "torch": torch.__version__, "device": name, "copy_GBps": round(copy_ceiling(device), 1)}
