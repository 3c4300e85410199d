"""Sets that are not a list of kernels: whole models, first calls, partitioning, and replays of saved graphs."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fxfuser
import fxfuser.fx_import
import memory
import torch
import torch.fx
from cpu_models import cpu_models
from model_graphs import MODELS, load_graph, save_all
from shapes import shapes
from timing import facts, wall_ms
from torch.utils import _pytree as pytree
from tracing import trace


def models(options: argparse.Namespace) -> dict[str, Any]:
    """Forward passes, steady state and first call, beside eager and torch.compile."""
    device = options.device
    where = facts(device)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    rows = []
    for name, make in MODELS.items():
        if options.filter and options.filter not in name:
            continue
        torch.manual_seed(0)
        model, inputs = make()
        model = model.eval().requires_grad_(False).to(device=device, dtype=dtype)
        inputs = tuple(value.to(device=device, dtype=dtype if value.is_floating_point() else None) for value in inputs)
        with torch.no_grad():
            gm = torch.export.export(model, inputs).module()
            start = time.perf_counter()
            ours = fxfuser.execute(gm, *inputs)
            first = time.perf_counter() - start
            eager = model(*inputs)
            runs: dict[str, Callable[[], Any]] = {"ours": lambda: fxfuser.execute(gm, *inputs), "eager": lambda: model(*inputs)}
            row: dict[str, Any] = {"name": name, "first_call_s": round(first, 3)}
            if not options.no_peer:
                torch._dynamo.reset()
                compiled = torch.compile(model)
                start = time.perf_counter()
                compiled(*inputs)
                row["compile_first_call_s"] = round(time.perf_counter() - start, 3)
                runs["compile"] = lambda: compiled(*inputs)
            for peer, run in runs.items():
                row[f"{peer}_ms"] = round(wall_ms(run, device), 4)
            left, right = pytree.tree_leaves(ours), pytree.tree_leaves(eager)
            row["largest_difference"] = max(float((a.float() - b.float()).abs().max()) for a, b in zip(left, right, strict=True) if isinstance(b, torch.Tensor))
            report = fxfuser.explain(gm, *inputs)
            row |= {key: report.totals[key] for key in ("nodes", "partitions", "kernels", "distinct_kernels", "aten_nodes", "fused_share")}
        rows.append(row)
        print(row, flush=True)
    return {**where, "set": "models", "dtype": str(dtype), "rows": rows}


def replay(options: argparse.Namespace) -> dict[str, Any]:
    """Any folder of saved graphs: nodes, groups, kernels, fused share, first and steady call, largest error."""
    folder = Path(options.folder or Path(tempfile.gettempdir()) / f"fxfuser-graphs-{os.getuid()}")
    if not options.folder:
        save_all(folder)
    rows = []
    for path in sorted(folder.glob("*.pt*")):
        gm, inputs = load_graph(path)
        with torch.no_grad():
            expected = gm(*inputs)
            start = time.perf_counter()
            fxfuser.execute(gm, *inputs)  # a saved graph without forecasts records its first call through ATen
            out = fxfuser.execute(gm, *inputs)
            first = time.perf_counter() - start
            pairs = [(a, b) for a, b in zip(pytree.tree_leaves(out), pytree.tree_leaves(expected), strict=True) if isinstance(b, torch.Tensor) and b.numel()]
            totals = fxfuser.explain(gm, *inputs).totals
            rows.append({
                "name": path.stem, **totals, "first_call_s": round(first, 3),
                "steady_ms": round(wall_ms(lambda g=gm, i=inputs: fxfuser.execute(g, *i), "cpu"), 4),
                "eager_ms": round(wall_ms(lambda g=gm, i=inputs: g(*i), "cpu"), 4),
                "largest_error": max((float((a.double() - b.double()).abs().max()) for a, b in pairs), default=0.0),
            })
            print(rows[-1], flush=True)
    return {**facts("cpu"), "set": "fx", "rows": rows}


def _chain(nodes: int, wide: bool) -> torch.fx.GraphModule:
    """A graph of `nodes` calls, every 20th one without a row; deep, or eight independent branches."""
    graph = torch.fx.Graph()
    value = torch.empty(8)
    x = graph.placeholder("x")
    x.meta["val"] = value
    heads = [x] * (8 if wide else 1)
    for index in range(nodes):
        slot = index % len(heads)
        supported = index % 20 != 19
        target = torch.ops.aten.mul.Tensor if supported else torch.ops.aten.digamma.default
        node = graph.call_function(target, (heads[slot], 1.5) if supported else (heads[slot],))
        node.meta["val"] = value
        heads[slot] = node
    graph.output(tuple(heads))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def partition(options: argparse.Namespace) -> dict[str, Any]:
    """Import and partition time over the number of nodes."""
    rows = []
    for nodes in (1000, 5000, 10000, 20000, 40000):
        for wide in (False, True):
            gm = _chain(nodes, wide)
            start = time.perf_counter()
            fxfuser.fx_import.import_graph(gm)
            imported = time.perf_counter() - start
            totals = fxfuser.explain(gm).totals
            rows.append({"nodes": nodes, "wide": wide, "import_us_per_node": round(imported / nodes * 1e6, 2), "partition_s": totals["partition_seconds"], "partitions": totals["partitions"]})
            print(rows[-1], flush=True)
    return {**facts("cpu"), "set": "partition", "rows": rows}


_FIRST_CALL = """
import json, sys, time, torch, fxfuser
from torch.fx.experimental.proxy_tensor import make_fx
device = sys.argv[1]
x = torch.randn(64, 256, device=device)
gm = make_fx(lambda x: torch.softmax(torch.nn.functional.gelu(x) * 2, -1))(x)
gm(x)
start = time.perf_counter(); fxfuser.execute(gm, x)
if device == "cuda": torch.cuda.synchronize()
print(json.dumps({"seconds": time.perf_counter() - start, **fxfuser.stats()["launches"]}))
"""


def compile_times(options: argparse.Namespace) -> dict[str, Any]:
    """The first call of a fresh process, with an empty and with a filled disk cache."""
    rows = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            for state in ("empty", "filled"):
                environment = {**os.environ, "FXFUSER_CACHE_DIR": folder}
                done = subprocess.run([sys.executable, "-c", _FIRST_CALL, options.device], env=environment, capture_output=True, text=True, check=True)
                rows.append({"cache": state, **json.loads(done.stdout.splitlines()[-1])})
                print(rows[-1], flush=True)
    return {**facts(options.device), "set": "compile", "rows": rows}


def memory_growth(options: argparse.Namespace) -> dict[str, Any]:
    """Resident memory over 100,000 different graphs, each run once and dropped."""
    return {**facts("cpu"), "set": "memory", **memory.measure()}


SETS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {"models": models, "fx": replay, "partition": partition, "compile": compile_times, "shapes": shapes, "trace": trace,
                                                                    "memory": memory_growth, "cpu-models": cpu_models}
