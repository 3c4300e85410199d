"""The check that table tests share on all targets: samples of one dtype, many to one graph, each compared with eager."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import fxfuser
import torch
from direct_samples import direct_samples
from numerics import check_against_reference, check_close, same_layout, widened
from samples import Sample, combine, samples
from torch.utils import _pytree as pytree

_BATCH = 64
# Where a node with a row may stay with ATen, by the head of its reason.
FALLBACK_IS_RIGHT = ("dtype", "argument", "metadata only", "device", "layout", "denied",
                     "not provably safe: aten.batch_norm.default")  # an empty input of rank 1


def table_targets() -> set[str]:
    return {target for row in json.loads(fxfuser._C.ops_json()) for target in row["targets"]}


def check_sample(sample: Sample, ours: tuple[Any, ...], eager: tuple[Any, ...]) -> None:
    name = f"{sample.target} of {sample.name}, {sample.dtype}"
    if sample.dtype in (torch.float16, torch.bfloat16):
        for a, b in zip(ours, eager, strict=True):
            if isinstance(b, torch.Tensor):
                same_layout(a, b, name)
                rtol, atol = (2e-3, 1e-3) if sample.dtype == torch.float16 else (1.6e-2, 1e-2)
                if torch.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
                    continue
                _check_against_wide(sample, ours, eager, name)  # eager rounds its intermediates
                return
        return
    check_close(ours, eager, name)


def _check_against_wide(sample: Sample, ours: tuple[Any, ...], eager: tuple[Any, ...], name: str) -> None:
    """The rule of errors against a float64 reference, where eager itself may be the one that is off."""
    wide = torch.fx.GraphModule(torch.nn.Module(), sample.graph)(*(widened(arg) for arg in sample.args))
    for index, (a, b, c) in enumerate(zip(ours, eager, pytree.tree_leaves(wide), strict=True)):
        if isinstance(b, torch.Tensor):
            check_against_reference(a, b, c, f"{name}[{index}]")


def _moved(sample: Sample, device: str) -> Sample | None:
    """A sample that was traced on the CPU with its values, forecasts and device arguments on `device`; None if eager refuses it there."""
    args = tuple(value.to(device) if isinstance(value, torch.Tensor) else value for value in sample.args)
    for node in sample.graph.nodes:
        if node.op != "call_function":
            continue
        node.meta["val"] = pytree.tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf, node.meta.get("val"))
        node.kwargs = {key: torch.device(device) if isinstance(value, torch.device) else value for key, value in node.kwargs.items()}
        node.args = tuple(torch.device(device) if isinstance(value, torch.device) else value for value in node.args)
        schema = getattr(node.target, "_schema", None)
        if schema is not None and not node.all_input_nodes and any(argument.name == "device" for argument in schema.arguments):
            node.kwargs = {**node.kwargs, "device": torch.device(device)}
    try:
        torch.fx.GraphModule(torch.nn.Module(), sample.graph)(*args)
    except (RuntimeError, NotImplementedError):
        return None
    return replace(sample, args=args)


def _check_batch(batch: list[Sample], fused: set[str]) -> Iterator[str]:
    gm, args, starts = combine(batch)
    ours: tuple[Any, ...] | None = None
    try:
        eager = gm(*args)
        ours = fxfuser.execute(gm, *args, executor_parameters={"on_error": "raise"})
    except Exception as error:
        yield f"batch of {batch[0].target}: {type(error).__name__}: {str(error)[:600]}"
    for row in fxfuser.explain(gm, *args).nodes():
        sample = batch[int(row["name"].split("_")[0][1:])]
        if row["target"] != sample.target:
            continue
        if row["status"] == "fused":
            fused.add(sample.target)
        elif not (row.get("reason") or "").startswith(FALLBACK_IS_RIGHT):
            yield f"{sample.target} {sample.dtype}: {row['status']}, {row.get('reason')}"
    if ours is None:
        return
    for sample, first, last in zip(batch, starts, [*starts[1:], len(eager)], strict=True):
        try:
            check_sample(sample, ours[first:last], eager[first:last])
        except AssertionError as error:
            yield " ".join(str(error).split())[:400]


def check_rows(dtype: torch.dtype, device: str = "cpu", each: int = 2) -> int:
    """Runs all samples of a dtype; returns how many targets ran in generated kernels, or fails with every problem."""
    targets = table_targets()
    chosen = [sample for sample in (*samples((dtype,), each), *direct_samples(dtype)) if sample.target in targets]
    if device != "cpu":
        chosen = [moved for moved in (_moved(sample, device) for sample in chosen) if moved is not None]
    assert chosen
    fused: set[str] = set()
    problems: list[str] = []
    for start in range(0, len(chosen), _BATCH):
        problems += _check_batch(chosen[start : start + _BATCH], fused)
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems[:60])
    return len(fused)
