"""Every row, every dtype: run in generated host kernels against ATen, with the layouts that eager gives."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

import pytest
import torch
from conftest import measured
from numerics import check_close, same_layout
from samples import DTYPES, Sample, combine, samples

import fxfuser

_BATCH = 64
# Where a node with a row may stay with ATen, by the head of its reason.
FALLBACK_IS_RIGHT = ("dtype", "argument", "metadata only", "device", "layout", "denied", "not provably safe: aten.native_batch_norm", "not provably safe: aten._native_batch_norm_legit")


def table_targets() -> set[str]:
    return {target for row in json.loads(fxfuser._C.ops_json()) for target in row["targets"]}


def check_sample(sample: Sample, ours: tuple[Any, ...], eager: tuple[Any, ...]) -> None:
    name = f"{sample.target} of {sample.name}, {sample.dtype}"
    if sample.dtype in (torch.float16, torch.bfloat16):
        for a, b in zip(ours, eager, strict=True):
            if isinstance(b, torch.Tensor):
                same_layout(a, b, name)
                rtol, atol = (2e-3, 1e-3) if sample.dtype == torch.float16 else (1.6e-2, 1e-2)
                torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True, msg=lambda text: f"{name}: {text}")
        return
    check_close(ours, eager, name)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_on_host(dtype: torch.dtype) -> None:
    targets = table_targets()
    chosen = [sample for sample in samples((dtype,), each=2) if sample.target in targets]
    assert chosen
    fused: set[str] = set()
    problems: list[str] = []
    refusals: Counter[str] = Counter()
    examples: dict[str, set[str]] = defaultdict(set)
    for start in range(0, len(chosen), _BATCH):
        batch = chosen[start : start + _BATCH]
        gm, args, starts = combine(batch)
        try:
            ours = fxfuser.execute(gm, *args, executor_parameters={"on_error": "raise"})
        except Exception as error:
            problems.append(f"batch {start}: {type(error).__name__}: {str(error)[:600]}")
            ours = None
        eager = gm(*args)
        for row in fxfuser.explain(gm, *args).nodes():
            index = row["name"].split("_")[0]
            sample = batch[int(index[1:])]
            if row["target"] != sample.target:
                continue
            if row["status"] == "fused":
                fused.add(sample.target)
            elif not (row.get("reason") or "").startswith(FALLBACK_IS_RIGHT):
                problems.append(f"{sample.target} {dtype}: {row['status']}, {row.get('reason')}")
            else:
                refusals[row["reason"].split(":")[0]] += 1
                examples[row["reason"].split(":")[0]].add(sample.target)
        if ours is None:
            continue
        ends = [*starts[1:], len(eager)]
        for sample, first, last in zip(batch, starts, ends, strict=True):
            try:
                check_sample(sample, ours[first:last], eager[first:last])
            except AssertionError as error:
                problems.append(" ".join(str(error).split())[:400])
    print(f"{dtype}: {len(chosen)} samples, {len(fused)} targets fused, refusals {dict(refusals)}")
    measured(f"host_targets_{str(dtype).removeprefix('torch.')}", len(fused))
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems[:60])
