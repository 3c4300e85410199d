"""Memory over many different graphs: what stays when each graph was run once and is gone.

Graphs differ in the order of their ops, so that kernels are few: each op stands alone between calls that stay with ATen. What
torch.fx itself keeps of a graph (its source, for tracebacks) is cleared, since it is no cache of ours.
"""

from __future__ import annotations

import ctypes
import gc
import linecache
import time
import warnings
from collections.abc import Iterator

import fxfuser
import torch
from fxfuser import execute

OPS = (
    torch.ops.aten.sin.default, torch.ops.aten.cos.default, torch.ops.aten.exp.default, torch.ops.aten.tanh.default, torch.ops.aten.relu.default, torch.ops.aten.neg.default,
    torch.ops.aten.abs.default, torch.ops.aten.sigmoid.default,
)
LENGTH = 6  # 8**6 orders


def graph(number: int, x: torch.Tensor) -> torch.fx.GraphModule:
    """op, digamma, op, digamma, ...: the digits of `number` choose the ops."""
    built = torch.fx.Graph()
    value = built.placeholder("x")
    value.meta["val"] = x
    for _ in range(LENGTH):
        for op in (OPS[number % len(OPS)], torch.ops.aten.digamma.default):
            value = built.call_function(op, (value,))
            value.meta["val"] = x
        number //= len(OPS)
    built.output(value)
    return torch.fx.GraphModule(torch.nn.Module(), built)


def resident() -> float:
    """Resident memory in MB, with what the allocator could give back given back."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def growth(graphs: int, every: int) -> Iterator[tuple[int, float]]:
    """(graphs so far, MB more than after the first `every` of them)."""
    x = torch.rand(4, 6)
    start = 0.0
    warnings.simplefilter("ignore", fxfuser.FallbackWarning)
    for number in range(graphs):
        execute(graph(number, x), x)
        if (number + 1) % every:
            continue
        linecache.cache.clear()
        torch.fx.graph_module._loader.eval_cache.clear()
        if number < every:
            start = resident()
        yield number + 1, resident() - start


def measure(graphs: int = 100_000) -> dict[str, object]:
    begun, rows = time.perf_counter(), []
    before = fxfuser.stats()
    for count, grown in growth(graphs, graphs // 20):
        rows.append({"graphs": count, "grown_mb": round(grown, 2)})
        print(f"{count:>8} graphs  {grown:8.2f} MB", flush=True)
    after = fxfuser.stats()
    return {"seconds": round(time.perf_counter() - begun, 1), "compiles": after["compiles"] - before["compiles"], "launches": after["launches"]["host"] - before["launches"]["host"], "rows": rows}
