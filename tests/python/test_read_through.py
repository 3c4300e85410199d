"""Gathers from what pointwise ops made are done at the places that are read: a row's loss is one kernel, and no other read changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
import torch.nn.functional as F
from fxfuser import execute
from numerics import check_against_reference, check_close
from torch.fx.experimental.proxy_tensor import make_fx

X, T, COLUMN = torch.randn(33, 200), torch.randint(0, 200, (33, 1)), torch.randn(33, 1)


def kernels(fn: Callable[..., Any], *args: torch.Tensor) -> int:
    gm = make_fx(fn)(*args)
    before = fxfuser.stats()
    ours = execute(gm, *args, executor_parameters={"on_error": "raise"})
    after = fxfuser.stats()
    check_close(ours, gm(*args), "result")
    return after["launches"]["host"] - before["launches"]["host"]


def loss(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(x, -1).gather(1, t).squeeze(1)


ONE: dict[str, Callable[..., Any]] = {
    "log softmax": loss,
    "its negative, scaled": lambda x, t: -(torch.log_softmax(x * 0.5 + 1, -1).gather(1, t)) * 2,
    "softmax": lambda x, t: torch.softmax(x, -1).gather(1, t),
    "pointwise alone": lambda x, t: (torch.sigmoid(x) * 2 + x).gather(1, t) + 1,
    "with a column": lambda x, t: (x * COLUMN - x.amax(1, keepdim=True)).gather(1, t),
    "several places": lambda x, t: torch.log_softmax(x, -1).gather(1, torch.cat((t, t.flip(0), t), 1)),
    "the result too": lambda x, t: (torch.log_softmax(x, -1), torch.log_softmax(x, -1).gather(1, t)),
    "of a cast": lambda x, t: x.double().gather(1, t),
}


@pytest.mark.parametrize("name", ONE)
def test_what_a_gather_reads_is_computed_there(name: str) -> None:
    assert kernels(ONE[name], X, T) <= (2 if name in ("several places", "the result too") else 1)


OTHERS: dict[str, Callable[..., Any]] = {
    "fewer rows": lambda x, t: torch.exp(x).gather(1, t[:5]),
    "along the rows": lambda x, t: torch.log_softmax(x, 0).gather(0, (t % 33).expand(33, 200)),
    "more places than there are": lambda x, t: torch.exp(x).gather(1, t.expand(33, 300)),
    "from a sum": lambda x, t: x.cumsum(1).gather(1, t),
    "from a reduction": lambda x, t: x.sum(0, keepdim=True).gather(1, t[:1]),
    "from a view": lambda x, t: torch.exp(x).t().gather(1, (t.t() % 33).expand(200, 33)),
    "a row beside": lambda x, t: (torch.exp(x) + torch.sigmoid(x[:1])).gather(1, t),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_reads_keep_their_values(name: str) -> None:
    assert kernels(OTHERS[name], X, T) >= 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("width", [8, 129, 1000])
def test_cross_entropy_reads_its_scores_once(dtype: torch.dtype, reduction: str, width: int) -> None:
    x, target = torch.randn(17, width).to(dtype), torch.randint(0, width, (17,))
    target[3] = -100

    def fn(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(x, target, reduction=reduction)

    gm = make_fx(fn)(x, target)
    before = fxfuser.stats()["launches"]["host"]
    ours = execute(gm, x, target, executor_parameters={"on_error": "raise"})
    ran = fxfuser.stats()["launches"]["host"] - before
    assert ran == 1 if reduction == "none" else 1 <= ran <= 2
    check_against_reference(ours, gm(x, target), fn(x.double(), target), "loss")
