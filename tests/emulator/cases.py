"""Independent functions as parts of one graph, so that their kernels are compiled together; each against ATen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import fxfuser
import torch
from samples import Sample, combine
from table_check import check_sample
from torch.fx.experimental.proxy_tensor import make_fx

Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]


def run_cases(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Checks the cases' results and that each ran in a generated kernel; the report's kernels."""
    chosen = []
    for index, (fn, args) in enumerate(cases):
        gm = make_fx(fn)(*args)
        chosen.append(Sample(f"case {index}, {tuple(args[0].shape)}", str(fn), args[0].dtype, gm.graph, args))
    gm, args, starts = combine(chosen)
    before = fxfuser.stats()["launches"]["cuda"]
    ours = fxfuser.execute(gm, *args, executor_parameters={"on_error": "raise"})
    eager = gm(*args)
    found: list[dict[str, Any]] = fxfuser.explain(gm, *args).data["kernels"]
    assert fxfuser.stats()["launches"]["cuda"] - before == len(found) >= len(chosen)
    for sample, first, last in zip(chosen, starts, [*starts[1:], len(eager)], strict=True):
        check_sample(sample, ours[first:last], eager[first:last])
    return found
