"""Every row in every dtype on the GPU, many samples to one graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from conftest_shared import measured
from samples import combine, samples
from test_ops_table import FALLBACK_IS_RIGHT, check_sample, table_targets

import fxfuser

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.bool)
_BATCH = 64


def to_cuda(value: Any) -> Any:
    return value.cuda() if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_on_cuda(dtype: torch.dtype) -> None:
    targets = table_targets()
    chosen = [sample for sample in samples((dtype,), each=2) if sample.target in targets]
    fused: set[str] = set()
    problems: list[str] = []
    for start in range(0, len(chosen), _BATCH):
        batch = chosen[start : start + _BATCH]
        gm, args, starts = combine(batch)
        args = tuple(map(to_cuda, args))
        for node, value in zip((n for n in gm.graph.nodes if n.op == "placeholder"), args, strict=True):
            node.meta["val"] = value
        for node in gm.graph.nodes:  # the samples were traced on the CPU
            if node.op == "call_function":
                node.meta.pop("val", None)
                if any(isinstance(value, torch.device) for value in (*node.args, *node.kwargs.values())):
                    node.kwargs = {key: torch.device("cuda") if isinstance(value, torch.device) else value for key, value in node.kwargs.items()}
        gm.recompile()
        try:
            eager = gm(*args)
            for _ in range(2):  # the first call records the metas, the second is fused
                ours = fxfuser.execute(gm, *args, executor_parameters={"on_error": "raise"})
        except Exception as error:
            problems.append(f"batch {start}: {type(error).__name__}: {str(error)[:600]}")
            continue
        for row in fxfuser.explain(gm, *args).nodes():
            sample = batch[int(row["name"].split("_")[0][1:])]
            if row["target"] != sample.target:
                continue
            if row["status"] == "fused":
                fused.add(sample.target)
            elif not (row.get("reason") or "").startswith(FALLBACK_IS_RIGHT):
                problems.append(f"{sample.target} {dtype}: {row['status']}, {row.get('reason')}")
        for sample, first, last in zip(batch, starts, [*starts[1:], len(eager)], strict=True):
            try:
                check_sample(sample, ours[first:last], eager[first:last])
            except AssertionError as error:
                problems.append(" ".join(str(error).split())[:300])
    measured(f"cuda_targets_{str(dtype).removeprefix('torch.')}", len(fused))
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems[:40])
