"""The option ``cuda_graph`` where there is nothing to capture: the same answers, and the reason in the report."""

from __future__ import annotations

from collections.abc import Callable

import fxfuser
import pytest
import torch
from fxfuser import execute, explain, prepare
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

GRAPH = {"cuda_graph": True}


def test_cpu_tensors_run_plainly_with_the_reason(launches: Callable[[], int]) -> None:
    x = torch.randn(5, 7)
    gm = make_fx(lambda x: torch.sigmoid(x) * 2)(x)
    assert explain(gm, x, executor_parameters=GRAPH).totals["cuda_graph"] == "not called yet"
    before = fxfuser.stats()
    for _ in range(4):
        y = torch.randn(5, 7)
        check_close(execute(gm, y, executor_parameters=GRAPH), gm(y), "plain")
    assert launches() == 4 and fxfuser.stats()["graph_replays"] == before["graph_replays"]
    report = explain(gm, x, executor_parameters=GRAPH)
    assert report.totals["cuda_graph"] == "runs plainly: a kernel runs on the host"
    assert "CUDA graph: runs plainly" in str(report)
    assert "cuda_graph" not in explain(gm, x).totals


def test_it_is_part_of_a_plans_key() -> None:
    x = torch.randn(3, 3)
    gm = make_fx(lambda x: torch.tanh(x) + 1)(x)
    execute(gm, x)
    misses = fxfuser.stats()["plan_misses"]
    prepare(gm, cuda_graph=True)(x)
    assert fxfuser.stats()["plan_misses"] == misses + 1
    with pytest.raises(TypeError, match="cuda_graph.*True or False"):
        prepare(gm, cuda_graph=1)
