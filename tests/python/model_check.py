"""One model under torch.compile with our backend, forward and backward, beside eager and float64.

    python tests/python/model_check.py [NAME ...] [--json FILE]

prints a line a model: errors against eager's, fused share, launches, ATen calls, and why nodes with a row are not fused.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import fxfuser
import fxfuser.backend.entry
import torch
from fxfuser.backend.compiler import Boxed
from model_table import ROWS, build, result
from numerics import widened
from torch import nn
from torch.utils import _pytree as pytree

EPSILON = torch.finfo(torch.float32).eps


@dataclass
class Measured:
    """What one model showed. Errors are root mean squares over a tensor against float64, as multiples of eager's."""

    name: str
    tensors: int = 0
    mean_ratio: float = 0.0  # geometric, over results, gradients and buffers
    worst_ratio: float = 0.0  # of those whose error is above 8 units in the last place
    worst_tensor: str = ""
    wrong: list[str] = field(default_factory=list)  # other tensors, layouts or integers than eager's
    graphs: int = 0
    nodes_with_row: int = 0
    fused_nodes: int = 0
    kernels: int = 0
    launches: int = 0
    aten_steps: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def fused_share(self) -> float:
        return self.fused_nodes / self.nodes_with_row if self.nodes_with_row else 1.0


def step(call: Any, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Results, gradients and buffers after one forward and backward pass."""
    y = result(call(*args, **kwargs))
    probe = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(y.dtype)
    (y * probe).sum().backward()
    found = {"result": y.detach()}
    found |= {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return found | {f"{name} (buffer)": buffer.clone() for name, buffer in model.named_buffers()}


def compare(measured: Measured, ours: dict[str, torch.Tensor], eager: dict[str, torch.Tensor], reference: dict[str, torch.Tensor]) -> None:
    measured.wrong += [f"{name}: missing" for name in eager.keys() - ours.keys()]
    # AOTAutograd hands zeros to parameters that only unused results read, where eager hands nothing.
    measured.wrong += [f"{name}: eager has none" for name in ours.keys() - eager.keys() if bool(ours[name].any())]
    ratios = []
    for name in ours.keys() & eager.keys():
        a, b, exact = ours[name], eager[name], reference[name]
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            measured.wrong.append(f"{name}: {a.dtype}{tuple(a.shape)}, eager {b.dtype}{tuple(b.shape)}")
        elif not b.is_floating_point():
            if not torch.equal(a, b):
                measured.wrong.append(f"{name}: integers differ")
        else:
            error, of_eager, scale = (float(t.double().square().mean().sqrt()) for t in (a - exact, b - exact, exact))
            if not math.isfinite(error) and math.isfinite(of_eager):
                measured.wrong.append(f"{name}: not finite")
            if error > 0 and of_eager > 0:
                ratios.append(error / of_eager)
            if error > 8 * EPSILON * scale and error > of_eager * measured.worst_ratio:
                measured.worst_ratio, measured.worst_tensor = error / of_eager if of_eager else math.inf, name
    measured.tensors = len(ours)
    measured.mean_ratio = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0


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


def measure(name: str) -> Measured:
    """Runs a row of the table three times: float64, eager, ours."""
    torch._dynamo.reset()
    measured = Measured(name)
    model, args, kwargs = build(name)
    exact, ours = copy.deepcopy(model).double(), copy.deepcopy(model)
    reference = step(exact, exact, *pytree.tree_map(widened, (args, kwargs)))
    eager = step(model, model, args, kwargs)
    graphs: list[torch.fx.GraphModule] = []

    def recorded(graph: torch.fx.GraphModule, parameters: dict[str, Any]) -> Boxed:
        graphs.append(graph)
        return Boxed(graph, parameters)

    before = fxfuser.stats()
    with warnings.catch_warnings(record=True) as told, mock.patch.object(fxfuser.backend.entry, "Boxed", recorded):
        warnings.simplefilter("always")
        mine = step(torch.compile(ours, backend="fxfuser"), ours, args, kwargs)
    after = fxfuser.stats()
    compare(measured, mine, eager, reference)
    measured.launches = sum(after["launches"].values()) - sum(before["launches"].values())
    measured.aten_steps = after["aten_steps"] - before["aten_steps"]
    measured.warnings = [str(one.message) for one in told if issubclass(one.category, fxfuser.FallbackWarning) or "fxfuser" in one.filename]
    explain(measured, graphs)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for name in options.names or ROWS:
        found = measure(name)
        rows.append({**asdict(found), "fused_share": found.fused_share})
        print(
            f"{name:<16} error {found.mean_ratio:.2f} x eager's, share {100 * found.fused_share:5.1f} % of {found.nodes_with_row}, "
            f"{found.launches} launches, {found.aten_steps} ATen calls {found.wrong or ''} {found.reasons or ''}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps({"device": "cpu", "torch": torch.__version__, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
