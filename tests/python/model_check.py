"""One model under torch.compile with our backend, forward and backward, beside eager and float64.

    python tests/python/model_check.py [NAME ...] [--peer] [--json FILE] [--page FILE]

prints a line a model: errors against eager's, fused share, launches (ours and, with --peer, those of torch.compile's default
backend), and why nodes with a row are not fused. --page writes the table between the marks of a Markdown page.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import statistics
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import fxfuser
import fxfuser.backend.entry
import torch
import torch._inductor.config
from fxfuser.backend.compiler import Boxed
from launch_count import launched
from model_table import ROWS, build, inputs_of, result
from numerics import widened
from torch import nn
from torch.utils import _pytree as pytree

EPSILON = torch.finfo(torch.float32).eps
# Inputs that errors are averaged over. Deep models with small batch norms make one rounding large: with one input, the ratio of two
# equally exact programs is anything between a half and two.
DRAWS = 8


@dataclass
class Measured:
    """What one model showed. Errors are root mean squares over a tensor against float64, as multiples of eager's; means are geometric."""

    name: str
    tensors: int = 0
    mean_ratio: float = 0.0  # over results, gradients, buffers and draws
    spread: float = 1.0  # the factor that its standard error over draws amounts to
    worst_ratio: float = 0.0  # over draws, of the tensors whose error is above 8 units in the last place
    worst_tensor: str = ""
    wrong: list[str] = field(default_factory=list)  # other tensors, layouts or integers than eager's
    graphs: int = 0
    nodes_with_row: int = 0
    fused_nodes: int = 0
    kernels: int = 0
    first_launches: int = 0  # in the first step, by the counters
    launches: int = 0  # of generated kernels, in a later step, as the profiler sees them
    aten_launches: int = 0  # of ops that compute, in the same step
    peer_launches: int | None = None  # both together, with torch.compile's default backend
    reasons: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def fused_share(self) -> float:
        return self.fused_nodes / self.nodes_with_row if self.nodes_with_row else 1.0


def step(call: Any, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Results, gradients and buffers after one forward and backward pass."""
    model.zero_grad(set_to_none=True)
    y = result(call(*args, **kwargs))
    probe = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(y.dtype)
    (y * probe).sum().backward()
    found = {"result": y.detach()}
    found |= {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return found | {f"{name} (buffer)": buffer.clone() for name, buffer in model.named_buffers()}


def bare_step(call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A forward and backward pass with nothing else around it."""
    y = result(call(*args, **kwargs))
    y.backward(torch.ones_like(y))


class Errors:
    """Errors of ours and of eager's over several draws."""

    def __init__(self) -> None:
        self.ratios: dict[str, list[float]] = {}
        self.large: set[str] = set()
        self.draws: list[list[float]] = []

    def start_draw(self) -> None:
        self.draws.append([])

    def add(self, name: str, ours: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
        error, of_eager, scale = (float(t.double().square().mean().sqrt()) for t in (ours - exact, eager - exact, exact))
        if error > 8 * EPSILON * scale:
            self.large.add(name)
        if (error > 0 and of_eager > 0) or name in self.large:
            ratio = error / of_eager if of_eager > 0 else math.inf
            self.ratios.setdefault(name, []).append(ratio)
            self.draws[-1].append(ratio)

    def settle(self, measured: Measured) -> None:
        means = [math.log(mean(draw)) for draw in self.draws]
        measured.mean_ratio = math.exp(statistics.mean(means))
        measured.spread = math.exp(statistics.stdev(means) / len(means) ** 0.5)
        by_tensor = {name: mean(self.ratios[name]) for name in self.large}
        if by_tensor:
            measured.worst_tensor, measured.worst_ratio = max(by_tensor.items(), key=lambda item: item[1])


def mean(ratios: list[float]) -> float:
    """Geometric; 1 of none."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0


def compare(measured: Measured, errors: Errors, ours: dict[str, torch.Tensor], eager: dict[str, torch.Tensor], reference: dict[str, torch.Tensor]) -> None:
    measured.wrong += [f"{name}: missing" for name in eager.keys() - ours.keys()]
    # AOTAutograd hands zeros to parameters that only unused results read, where eager hands nothing.
    measured.wrong += [f"{name}: eager has none" for name in ours.keys() - eager.keys() if bool(ours[name].any())]
    for name in sorted(ours.keys() & eager.keys()):
        a, b = ours[name], eager[name]
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            measured.wrong.append(f"{name}: {a.dtype}{tuple(a.shape)}, eager {b.dtype}{tuple(b.shape)}")
        elif not b.is_floating_point():
            if not torch.equal(a, b):
                measured.wrong.append(f"{name}: integers differ")
        elif bool(b.isfinite().all()) and not bool(a.isfinite().all()):
            measured.wrong.append(f"{name}: not finite")
        else:
            errors.add(name, a, b, reference[name])
    measured.tensors = len(ours)


def explain(measured: Measured, graphs: list[torch.fx.GraphModule]) -> None:
    reasons: Counter[str] = Counter()
    for graph in graphs:
        report = fxfuser.explain(graph)
        measured.nodes_with_row += report.totals["row_nodes"]
        measured.fused_nodes += report.totals["fused_nodes"]
        measured.kernels += report.totals["kernels"]
        for node in report.nodes():
            if node["status"] == "aten" and node["reason"] and not node["reason"].startswith("no row"):
                reasons[f"{node['target']}: {node['reason']}"] += 1
    measured.graphs = len(graphs)
    measured.reasons = dict(reasons.most_common())


def count_launches(measured: Measured, run: Callable[[], Any]) -> None:
    counted = launched(run)
    measured.launches = sum(number for name, number in counted.items() if name.startswith("fxfuser_"))
    measured.aten_launches = sum(counted.values()) - measured.launches


def peer_launches(name: str) -> int:
    """What a later step launches under torch.compile's default backend."""
    torch._dynamo.reset()
    model, args, kwargs = build(name)
    with mock.patch.object(torch._inductor.config.cpp, "enable_kernel_profile", True):
        call = torch.compile(model)
        step(call, model, args, kwargs)
        return sum(launched(lambda: bare_step(call, args, kwargs)).values())


def measure(name: str) -> Measured:
    """Runs a row of the table in float64, in eager and under the backend, on several inputs."""
    torch._dynamo.reset()
    measured, errors = Measured(name), Errors()
    model, args, kwargs = build(name)
    exact, ours = copy.deepcopy(model).double(), copy.deepcopy(model)
    graphs: list[torch.fx.GraphModule] = []

    def recorded(graph: torch.fx.GraphModule, parameters: dict[str, Any]) -> Boxed:
        graphs.append(graph)
        return Boxed(graph, parameters)

    compiled = torch.compile(ours, backend="fxfuser")
    before = sum(fxfuser.stats()["launches"].values())
    with warnings.catch_warnings(record=True) as told, mock.patch.object(fxfuser.backend.entry, "Boxed", recorded):
        warnings.simplefilter("always")
        for draw in range(DRAWS):
            args, kwargs = inputs_of(ROWS[name].kind, draw)
            errors.start_draw()
            mine = step(compiled, ours, args, kwargs)
            if draw == 0:
                measured.first_launches = sum(fxfuser.stats()["launches"].values()) - before
            compare(measured, errors, mine, step(model, model, args, kwargs), step(exact, exact, *pytree.tree_map(widened, (args, kwargs))))
    errors.settle(measured)
    measured.warnings = [str(one.message) for one in told if issubclass(one.category, fxfuser.FallbackWarning) or "fxfuser" in one.filename]
    count_launches(measured, lambda: bare_step(compiled, args, kwargs))
    explain(measured, graphs)
    return measured


def row_of(found: Measured) -> dict[str, Any]:
    return {**asdict(found), "fused_share": round(found.fused_share, 4)}


def page_of(rows: list[dict[str, Any]]) -> str:
    """The table of docs/models.md."""
    lines = ["| model | error | fused | nodes with a row | kernels | launches | ATen | torch.compile's | not fused |", "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        peer, mine = row["peer_launches"], row["launches"] + row["aten_launches"]
        beside = "" if peer is None else f"{peer} ({mine / peer:.2f} x)"
        reasons = "; ".join(f"{count} x {reason}" for reason, count in row["reasons"].items())
        numbers = f"{row['mean_ratio']:.2f} | {100 * row['fused_share']:.1f} % | {row['nodes_with_row']} | {row['kernels']} | {row['launches']} | {row['aten_launches']}"
        lines.append(f"| {row['name']} | {numbers} | {beside} | {reasons} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--peer", action="store_true", help="count torch.compile's launches too; else those that the file holds are kept")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path, help="a Markdown page, rewritten from its first table on")
    options = parser.parse_args()
    kept = {row["name"]: row["peer_launches"] for row in json.loads(options.json.read_text())["rows"]} if options.json and options.json.exists() else {}
    rows = []
    for name in options.names or ROWS:
        found = measure(name)
        found.peer_launches = peer_launches(name) if options.peer else kept.get(name)
        rows.append(row_of(found))
        print(
            f"{name:<16} error {found.mean_ratio:.2f} x eager's, share {100 * found.fused_share:5.1f} % of {found.nodes_with_row}, {found.launches} launches"
            f" + {found.aten_launches} ATen, torch.compile {found.peer_launches} {found.wrong or ''} {found.warnings or ''} {found.reasons or ''}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps({"device": "cpu", "torch": torch.__version__, "rows": rows}, indent=1) + "\n")
    if options.page:
        options.page.write_text(options.page.read_text().partition("| model |")[0] + page_of(rows))


if __name__ == "__main__":
    main()
