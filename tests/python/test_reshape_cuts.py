"""A reshape whose dims have no common refinement with those before it ends a kernel, not the group."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

RAISE = {"on_error": "raise"}
GRAPHS: dict[str, tuple[Callable[..., Any], int]] = {
    "between pointwise ops": (lambda x: torch.sin((x + 1).reshape(4, 15)) * 2, 2),
    "after a transpose": (lambda x: torch.sin((x + 1).t().reshape(4, 15)) * 2 + 1, 2),
    "after an expand": (lambda x: torch.sin((x + 1)[:, None].expand(6, 3, 10).reshape(4, 45)) * 2, 2),
    "between reductions": (lambda x: torch.softmax((torch.softmax(x, 1) + 1).reshape(4, 15), 1) * 2, 2),
    "several times": (lambda x: ((x + 1).reshape(4, 15) * 2).reshape(12, 5).sin().reshape(30, 2).cos(), 3),
    "and what follows is summed": (lambda x: (torch.sin(x).t().reshape(4, 15).sum(0)).exp(), 2),
    "the value before is a result too": (lambda x: (lambda y: (y, y.reshape(4, 15).sin()))(x + 1), 2),
    "a transposed value before is a result too": (lambda x: (lambda y: (y, y.reshape(4, 15).sin()))(x.t().contiguous().t() + 1), 2),
    "sliced before": (lambda x: (x + 1)[1:].reshape(2, 25).sin(), 2),
    "flipped before": (lambda x: (x + 1).flip(0).reshape(4, 15).sin(), 2),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_both_sides_fuse(name: str) -> None:
    fn, kernels = GRAPHS[name]
    x = torch.randn(6, 10)
    gm = make_fx(fn)(x)
    before = fxfuser.stats()["launches"]["host"]
    check_close(execute(gm, x, executor_parameters=RAISE), gm(x), name)
    count = fxfuser.stats()["launches"]["host"] - before
    assert count == kernels, f"{count} kernels ran"
    rows = fxfuser.explain(gm, x).nodes()
    assert all(row["status"] in ("fused", "view") for row in rows), rows


STEPS: list[Callable[[torch.Tensor], torch.Tensor]] = [torch.sin, lambda x: x * 2, lambda x: x - x.mean(-1, keepdim=True), lambda x: x + x.amax(0), lambda x: x.transpose(0, 1), torch.abs]


def chain(choose: random.Random) -> Callable[[torch.Tensor], torch.Tensor]:
    shapes = [(6, 10), (4, 15), (12, 5), (30, 2), (3, 20), (5, 3, 4), (2, 5, 6), (60,), (2, 30)]
    plan: list[Any] = [choose.choice([choose.choice(shapes), choose.choice(STEPS)]) for _ in range(8)]

    def run(x: torch.Tensor) -> torch.Tensor:
        for step in plan:
            if callable(step):
                x = step(x) if x.dim() > 1 else x + 1
            else:
                x = x.reshape(step)
        return x * 3

    return run


def test_random_chains() -> None:
    choose = random.Random(3)
    for case in range(30):
        fn, x = chain(choose), torch.randn(6, 10)
        gm = make_fx(fn)(x)
        before = fxfuser.stats()["launches"]["host"]
        check_close(execute(gm, x, executor_parameters=RAISE), gm(x), f"case {case}")
        assert fxfuser.stats()["launches"]["host"] > before
        # A view that the group ends in may stay outside; nothing that computes may.
        rows = fxfuser.explain(gm, x).nodes()
        assert all(row["status"] in ("fused", "view") for row in rows), rows
