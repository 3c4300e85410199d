"""Benchmarks beside eager and torch.compile, in one process: ratios and the share of the measured copy ceiling.

    python benchmarks/run.py cpu|cpu-models|seed|rows|models|compile|shapes|partition|trace|fx|memory [--filter TEXT] [--part K/N] [--folder DIR] [--out FILE] [--quick] [--no-peer]

`rows` is the sum of cells, fusions, layouts, reductions and small; `--part 2/3` runs the second third of a set, and
`benchmarks/join.py` makes one file of the parts.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from pathlib import Path
from typing import Any

import cpu_rows
import fxfuser
import gpu_fusions
import gpu_layouts
import gpu_reductions
import gpu_rows
import torch
import workloads
from timing import Ceilings, device_ms, facts, host_us, interleaved_ms, replayed_ms, wall_ms
from torch.fx.experimental.proxy_tensor import make_fx
from workloads import Workload

# The sets that are lists of workloads; "rows" are all tables of the GPU.
TABLES = {"cells": gpu_rows.rows, "fusions": gpu_fusions.fusions, "layouts": gpu_layouts.layouts, "reductions": gpu_reductions.reductions, "small": gpu_reductions.small}
SETS = {"seed": workloads.seed, "cpu": cpu_rows.rows, **TABLES, "rows": lambda: [row for table in TABLES.values() for row in table()]}
RESULTS = Path(__file__).parent / "results"
CEILINGS = Ceilings()


def measure(workload: Workload, device: str, peer: bool, quick: bool = False) -> dict[str, Any]:
    args = workload.args(device)
    with torch.no_grad():
        start = time.perf_counter()
        gm = make_fx(workload.fn)(*args)
        traced = time.perf_counter() - start
        before = fxfuser.stats()
        start = time.perf_counter()
        out = fxfuser.execute(gm, *args)
        first = time.perf_counter() - start
        after = fxfuser.stats()
        row: dict[str, Any] = {
            "name": workload.name,
            "trace_s": round(traced, 3),
            "first_call_s": round(first, 3),
            "kernels": sum(after["launches"].values()) - sum(before["launches"].values()),
            "aten_steps": after["aten_steps"] - before["aten_steps"],
        }
        expected = workload.fn(*args)
        pairs = zip(torch.utils._pytree.tree_leaves(out), torch.utils._pytree.tree_leaves(expected), strict=True)
        row["largest_difference"] = max(float((a.float() - b.float()).abs().max()) for a, b in pairs)
        del out, expected
        runs = {"ours": lambda: fxfuser.execute(gm, *args), "eager": lambda: workload.fn(*args)}
        if peer:
            torch._dynamo.reset()
            compiled = torch.compile(workload.fn)
            start = time.perf_counter()
            compiled(*args)
            row["compile_first_call_s"] = round(time.perf_counter() - start, 3)
            runs["compile"] = lambda: compiled(*args)
        cuda, large = device == "cuda", workload.bytes > 2**20
        times = {} if cuda else interleaved_ms(runs, 0.3 if quick else 1.5)
        for name, run in runs.items():
            if cuda:
                times[name] = replayed_ms(run) if workload.resident else device_ms(run) if large else wall_ms(run, device)
            ms = times[name]
            row[f"{name}_ms"] = round(ms, 5)
            if cuda and not large and not workload.resident:
                row[f"{name}_host_us"] = round(host_us(run, device), 2)
            row[f"{name}_GBps"] = round(workload.bytes / ms / 1e6, 1)
        row["vs_eager"] = round(row["eager_ms"] / row["ours_ms"], 3)
        if peer:
            row["vs_compile"] = round(row["compile_ms"] / row["ours_ms"], 3)
        if cuda and large and not workload.resident:
            row["mix"] = f"{workload.mix[0]}R{workload.mix[1]}W"
            row["ceiling_GBps"] = round(CEILINGS.of(workload.mix, workload.bytes), 1)
            row["of_ceiling"] = round(row["ours_GBps"] / row["ceiling_GBps"], 4)
        row["of_best"] = round(row["ours_ms"] / min(times[name] for name in runs if name != "ours"), 6)
        return row


def print_row(row: dict[str, Any], ceiling: float) -> None:
    share = row["of_ceiling"] if "of_ceiling" in row else row["ours_GBps"] / ceiling
    peers = f"eager {row['vs_eager']:6.2f} x" + (f"  torch.compile {row['vs_compile']:6.2f} x" if "vs_compile" in row else "")
    print(f"{row['name']:<42} {row['ours_ms']:10.4f} ms {row['ours_GBps']:8.1f} GB/s ({100 * share:5.1f} %)  {row['of_best']:5.2f} of the best peer  {peers}  "
          f"first {row['first_call_s']:.2f} s  {row['kernels']} kernels", flush=True)


def run_workloads(name: str, options: argparse.Namespace, device: str) -> dict[str, Any]:
    where = facts(device)
    print(where)
    rows = []
    part, parts = map(int, options.part.split("/"))
    every = SETS[name]()
    for workload in every[len(every) * (part - 1) // parts : len(every) * part // parts]:
        if not re.search(options.filter, workload.name):
            continue
        try:
            rows.append(measure(workload, device, not options.no_peer, options.quick))
            print_row(rows[-1], where["copy_GBps"])
        except Exception as error:  # one row must not end the table
            rows.append({"name": workload.name, "error": f"{type(error).__name__}: {error}"[:300]})
            print(rows[-1], flush=True)
        if device == "cuda":
            torch.cuda.empty_cache()
    ratios = [row["of_best"] for row in rows if "of_best" in row]
    if ratios:
        print(f"{len(rows)} rows, geometric mean {statistics.geometric_mean(ratios):.3f} of the best peer's time; above 0.9: {sum(r > 0.9 for r in ratios)}")
    return {**where, "set": name, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set")
    parser.add_argument("--filter", default="", help="rows whose name matches this expression")
    parser.add_argument("--part", default="1/1", help="K/N: the K-th of N parts of the set")
    parser.add_argument("--folder", default="")
    parser.add_argument("--out", default="")
    parser.add_argument("--quick", action="store_true", help="fewer rounds a row")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    if options.set in SETS:
        result = run_workloads(options.set, options, options.device)
    else:
        import special

        if options.set not in special.SETS:
            raise SystemExit(f"unknown set {options.set!r}: {', '.join([*SETS, *special.SETS])}")
        result = special.SETS[options.set](options)
    out = Path(options.out) if options.out else RESULTS / f"{options.set}-{options.device}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    print("written:", out)


if __name__ == "__main__":
    main()
