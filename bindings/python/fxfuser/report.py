"""The report: what is fused into which kernel, and why the rest is not."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fxfuser import _C


@dataclass(frozen=True, slots=True)
class Report:
    """What ``explain`` returns. ``print`` fits a screen; ``nodes()`` has everything.

    ``data`` is the report as the native part gives it: ``totals``, ``nodes``, ``partitions``, ``kernels``, ``edges``,
    ``planned_anew`` (None, or what differed in the last call that no plan took).
    """

    data: dict[str, Any]
    notes: tuple[str, ...] = field(default=())

    @property
    def totals(self) -> dict[str, Any]:
        return dict(self.data["totals"])

    @property
    def fused_share(self) -> float:
        """Nodes with a row that are in generated kernels, over all nodes with a row (1.0 when there are none)."""
        return float(self.data["totals"].get("fused_share", 0.0))

    def nodes(self) -> list[dict[str, Any]]:
        """One dict a node: name, target, status, reason, partition, kernel, where."""
        return list(self.data["nodes"])

    def kernels(self) -> list[dict[str, Any]]:
        """One dict a kernel: name, kind, target, partition, nodes, bytes, schedule, source, and where it came from: ``compile_seconds``
        (its share of the compiler's run; None when this process did not compile it) and ``loaded_from`` (a folder, or None)."""
        return list(self.data["kernels"])

    def why(self, node: str) -> str:
        """The verdict on one node, by name. Raises KeyError for a name that the graph doesn't hold."""
        for row in self.data["nodes"]:
            if row["name"] == node:
                return f"{row['name']} ({row['target']}): {row['status']}" + (f", {row['reason']}" if row.get("reason") else "")
        raise KeyError(node)

    @property
    def planned_anew(self) -> str:
        """What differed in the last call that no plan took: "input 0 (x_1): sizes [4, 3] -> [5, 3]"; "" before the first call."""
        miss = self.data.get("planned_anew")
        return str(miss["text"]) if miss else ""

    def source(self, kernel: int | str) -> str:
        """The text of a kernel, by index or name."""
        kernels = self.data["kernels"]
        if isinstance(kernel, int):
            return str(kernels[kernel]["source"])
        for row in kernels:
            if row["name"] == kernel:
                return str(row["source"])
        raise KeyError(kernel)

    def to_json(self) -> str:
        return json.dumps(self.data, indent=1)

    def to_dot(self) -> str:
        """The graph in DOT: one cluster a kernel."""
        return _dot(self.data)

    def to_svg(self) -> str:
        """The graph as a picture, drawn by graphviz. Raises RuntimeError where ``dot`` is not installed, or fails."""
        try:
            done = subprocess.run(["dot", "-Tsvg"], input=self.to_dot(), capture_output=True, text=True)
        except FileNotFoundError:
            raise RuntimeError("to_svg needs graphviz: install it (its program dot must be on PATH), or use to_dot") from None
        if done.returncode != 0:
            raise RuntimeError(f"dot failed: {done.stderr.strip()}")
        return done.stdout

    def __str__(self) -> str:
        return _text(self.data, self.notes)


def _text(data: Mapping[str, Any], notes: tuple[str, ...]) -> str:
    totals = data["totals"]
    lines = [
        f"{totals['nodes']} nodes, {totals['partitions']} groups, {totals['kernels']} kernels ({totals['distinct_kernels']} distinct), "
        f"{totals['aten_nodes']} ATen calls",
        f"fused share {100 * totals['fused_share']:.1f} % of the {totals['row_nodes']} nodes that have a row",
    ]
    if "cuda_graph" in totals:
        lines.append(f"CUDA graph: {totals['cuda_graph']}")
    if (anew := data.get("planned_anew")) and anew["differences"]:
        lines.append(f"last planned anew: {anew['text']}")
    lines += list(notes)
    largest = sorted(data["kernels"], key=lambda row: -row["nodes"])[:8]
    if largest:
        lines.append("largest kernels:")
        lines += [f"  {row['name']}  {row['kind']:<13} {row['nodes']:>3} nodes  {row['bytes'] / 1e6:9.3f} MB" for row in largest]
    if made := _origins(data["kernels"]):
        lines.append(made)
    refused: dict[str, list[Any]] = {}
    for row in data["nodes"]:
        if row["status"] == "aten":
            refused.setdefault(row.get("reason") or "no reason given", []).append(row)
    if refused:
        lines.append("through ATen:")
        for reason, rows in sorted(refused.items(), key=lambda item: -len(item[1]))[:12]:
            targets = Counter(row["target"] for row in rows).most_common(1)[0][0]
            place = f" at {rows[0]['where']}" if rows[0].get("where") else ""
            lines.append(f"  {len(rows):>4} x {reason}  (e.g. {rows[0]['name']}, {targets}{place})")
    return "\n".join(lines)


def _origins(kernels: list[dict[str, Any]]) -> str:
    """How long the kernels took to compile; empty where none is at hand."""
    distinct = {row["name"]: row for row in kernels}.values()
    compiled = [row for row in distinct if row["compile_seconds"] is not None]
    loaded = sum(row["loaded_from"] is not None for row in distinct)
    parts = []
    if compiled:
        slowest = max(compiled, key=lambda row: row["compile_seconds"])
        parts.append(f"{len(compiled)} compiled in {sum(row['compile_seconds'] for row in compiled):.2f} s (longest {slowest['name']}, {slowest['compile_seconds']:.2f} s)")
    if loaded:
        parts.append(f"{loaded} loaded from disk")
    return f"kernels: {', '.join(parts)}" if parts else ""


_COLOURS = {"fused": "palegreen", "aten": "lightsalmon", "view": "lightblue", "scalar": "lightgrey"}


def _dot(data: Mapping[str, Any]) -> str:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines = ["digraph fxfuser {", "  rankdir=TB; node [shape=box, style=filled, fontsize=10];"]
    groups: dict[str, list[str]] = {}
    for row in data["nodes"]:
        label = f"{row['name']}\\n{row['target']}"
        text = f"{quoted(row['name'])} [label=\"{label}\", fillcolor={_COLOURS.get(row['status'], 'white')}];"
        kernel = row.get("kernel")
        groups.setdefault(str(kernel) if kernel else "", []).append(text)
    for kernel, members in groups.items():
        if not kernel:
            lines += [f"  {member}" for member in members]
            continue
        lines += [f"  subgraph {quoted('cluster_' + kernel)} {{ label={quoted(kernel)};", *(f"    {member}" for member in members), "  }"]
    lines += [f"  {quoted(source)} -> {quoted(sink)};" for source, sink in data.get("edges", [])]
    return "\n".join([*lines, "}"])


def explain(
    gm: torch.fx.GraphModule,
    *args: Any,
    executor: str = "nvfuser",
    executor_parameters: Mapping[str, Any] | str | None = None,
    target: str = "",
    **kwargs: Any,
) -> Report:
    """What ``execute`` would fuse. Nothing is run; works on fake tensors and for a target that this machine lacks.

    Args:
        gm: the module.
        *args, **kwargs: inputs to plan for; none to plan for the traced ones.
        executor, executor_parameters: as in ``execute``.
        target: "" (the inputs' device), "host" or "cuda".

    Raises:
        TypeError: ``gm`` is no GraphModule; arguments that don't fit the module; an option of a wrong type.
        ValueError: an unknown executor, option value or target.
    """
    from fxfuser import calls, fx_import, lowering, parameters

    options = parameters.resolve(executor_parameters)
    _C.check_options(executor, options)
    if not isinstance(gm, torch.fx.GraphModule):
        raise TypeError(f"explain takes a torch.fx.GraphModule, not {type(gm).__name__}")
    if _C.has_overrides(gm):
        return _nothing(gm, lowering.HOOKS)
    try:
        if not _C.has_program(gm):  # else says why it has none
            fx_import.import_graph(gm)
        notes = (fx_import.EDITED,) if fx_import.is_edited(gm) else ()
        return Report(json.loads(_C.program_explain(gm, executor, options, calls.example_leaves(gm, args, kwargs), target)), notes)
    except fx_import.NeedsLowering as error:
        if not args and not kwargs:
            raise ValueError(f"this graph is lowered for its inputs ({error}): give explain the arguments too") from None
        args = lowering.reading_of(gm, args, kwargs)
        lowered = lowering.lower(gm, args, kwargs)
        if isinstance(lowered, str):
            return _nothing(gm, f"could not be lowered: {lowered}")
        state = list(lowering.state_of(gm).values())
        report = explain(lowered.module, state, pytree.tree_leaves((args, kwargs)), executor=executor, executor_parameters=options, target=target)
        return Report(report.data, (f"lowered by tracing: {error}",))
    except fx_import.RunsOriginal as error:
        return _nothing(gm, str(error))


def _nothing(gm: torch.fx.GraphModule, reason: str) -> Report:
    nodes = [
        {"name": node.name, "target": str(node.target), "status": "aten", "reason": reason, "partition": -1, "kernel": None, "where": ""}
        for node in gm.graph.nodes
        if node.op.startswith("call_")
    ]
    totals = {
        "nodes": len(nodes), "partitions": 0, "kernels": 0, "distinct_kernels": 0, "aten_nodes": len(nodes), "row_nodes": 0,
        "fused_share": 0.0,
    }
    return Report({"totals": totals, "nodes": nodes, "partitions": [], "kernels": [], "edges": [], "planned_anew": None})
