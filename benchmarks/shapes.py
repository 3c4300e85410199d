"""New shapes: one model at a thousand batch sizes and sequence lengths, and what a shape costs that was not seen before."""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import time
from typing import Any

import fxfuser
import torch
from timing import facts, synchronize
from torch.fx.experimental.proxy_tensor import make_fx


class Block(torch.nn.Module):
    """A pre-norm transformer block of `width` with `heads` heads, attention written out."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)])
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5, -1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norms[1](x))))


def block(device: str = "cpu") -> tuple[torch.fx.GraphModule, torch.nn.Module]:
    """The block as a graph with symbolic batch and length, and the module."""
    model = Block().eval().requires_grad_(False).to(device)
    gm = make_fx(model, tracing_mode="symbolic", _allow_non_fake_inputs=True)(torch.randn(3, 7, 64, device=device))
    return gm, model


def sizes(count: int) -> list[tuple[int, int]]:
    """`count` distinct pairs (batch, length), batch 1 first, in a fixed order."""
    pairs = [(batch, length) for batch in range(1, 41) for length in range(1, 65)]
    chosen = random.Random(0).sample(pairs, count - 8)
    return list(dict.fromkeys([(1, length) for length in (1, 2, 8, 33)] + [(batch, 1) for batch in (2, 3, 8, 40)] + chosen))


def _long_chain(nodes: int) -> torch.fx.GraphModule:
    """A graph of `nodes` calls, every sixth through ATen."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        for index in range(nodes):
            x = torch.digamma(x) if index % 6 == 5 else torch.tanh(x) if index % 2 else x * 1.5
        return x

    with torch.no_grad():
        return make_fx(fn)(torch.rand(5, 6))


def _resident_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def _seconds(run: Any, device: str) -> float:
    start = time.perf_counter()
    run()
    synchronize(device)
    return time.perf_counter() - start


def _many_shapes(device: str, count: int) -> dict[str, Any]:
    gm, model = block(device)
    rows: list[tuple[float, float]] = []
    with torch.no_grad():
        fxfuser.execute(gm, torch.randn(3, 7, 64, device=device))
        start = fxfuser.stats()["compiles"]
        compiles = []
        memory = 0.0
        for index, (batch, length) in enumerate(sizes(count)):
            x = torch.randn(batch, length, 64, device=device)
            first, again = (_seconds(lambda x=x: fxfuser.execute(gm, x), device) for _ in range(2))
            compiles.append(fxfuser.stats()["compiles"] - start)
            rows.append((first, again))
            if index == 99:
                memory = _resident_mb()
    later = rows[100:]
    return {
        "name": f"{count} shapes of a transformer block", "nodes": len(gm.graph.nodes), "compiles_beyond_first_call": compiles[-1],
        "compiles_after_100_shapes": compiles[-1] - compiles[min(99, len(compiles) - 1)], "resident_growth_MB": round(_resident_mb() - memory, 1),
        "new_shape_ms": round(statistics.median(first for first, _ in later) * 1e3, 3), "hit_ms": round(statistics.median(again for _, again in later) * 1e3, 3),
        "on_top_of_a_hit_ms": round(statistics.median(first - again for first, again in later) * 1e3, 3),
    }


def _peer(device: str, count: int) -> dict[str, Any]:
    model = Block().eval().requires_grad_(False).to(device)
    torch._dynamo.reset()
    compiled = torch.compile(model, dynamic=True)
    with torch.no_grad():
        times = [_seconds(lambda x=x: compiled(x), device) for x in (torch.randn(b, n, 64, device=device) for b, n in sizes(count))]
    return {"name": f"torch.compile(dynamic=True), {count} shapes", "first_call_s": round(times[0], 2), "slowest_later_s": round(max(times[1:]), 3), "new_shape_ms": round(statistics.median(times[1:]) * 1e3, 3)}


def _long(device: str) -> dict[str, Any]:
    gm = _long_chain(600)
    with torch.no_grad():
        fxfuser.execute(gm, torch.rand(5, 6, device=device))
        times = []
        for size in range(7, 47):
            x = torch.rand(size, 6, device=device)
            times.append([_seconds(lambda x=x: fxfuser.execute(gm, x), device) for _ in range(2)])
    return {"name": "new shape of a graph of 600 nodes", "new_shape_ms": round(statistics.median(first for first, _ in times) * 1e3, 3),
            "hit_ms": round(statistics.median(again for _, again in times) * 1e3, 3), "on_top_of_a_hit_ms": round(statistics.median(a - b for a, b in times) * 1e3, 3)}


def shapes(options: argparse.Namespace) -> dict[str, Any]:
    rows = [_many_shapes(options.device, 1000), _long(options.device)]
    if not options.no_peer:
        rows.append(_peer(options.device, 20))
    for row in rows:
        print(row, flush=True)
    return {**facts(options.device), "set": "shapes", "rows": rows}
