"""Gradients of RMS norms, class losses and cross entropy: against float64, in one kernel each."""

from __future__ import annotations

import operator
from typing import Any

import fxfuser
import pytest
import torch
import torch.nn.functional as F
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

RAISE = {"on_error": "raise"}
aten = torch.ops.aten


def ran(gm: torch.fx.GraphModule, *args: torch.Tensor) -> tuple[Any, int]:
    before = fxfuser.stats()
    out = execute(gm, *args, executor_parameters=RAISE)
    after = fxfuser.stats()
    assert after["aten_steps"] == before["aten_steps"]
    return out, after["launches"]["host"] - before["launches"]["host"]


def rms_graph(dy: torch.Tensor, x: torch.Tensor, rstd: torch.Tensor, w: torch.Tensor | None, inner: int, mask: list[bool]) -> torch.fx.GraphModule:
    """The op as AOTAutograd writes it for a GPU; it has no CPU kernel, so the graph is written by hand."""
    graph = torch.fx.Graph()
    nodes = []
    for name, value in (("dy", dy), ("x", x), ("rstd", rstd), ("w", w)):
        nodes.append(None if value is None else graph.placeholder(name))
        if value is not None:
            nodes[-1].meta["val"] = value
    call = graph.call_function(aten._fused_rms_norm_backward.default, (nodes[0], nodes[1], list(x.shape[x.dim() - inner :]), nodes[2], nodes[3], mask))
    call.meta["val"] = (torch.empty_like(x) if mask[0] else None, torch.empty_like(w) if w is not None and mask[1] else None)
    picked = []
    for index, value in enumerate(call.meta["val"]):
        if value is not None:
            picked.append(graph.call_function(operator.getitem, (call, index)))
            picked[-1].meta["val"] = value
    graph.output(tuple(picked))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(("shape", "inner", "weighted", "mask"), [
    ((37, 130), 1, True, [True, True]), ((5, 3, 64), 1, True, [True, True]), ((4, 6, 8), 2, True, [True, True]),
    ((9, 33), 1, False, [True, False]), ((9, 33), 1, True, [True, False]), ((9, 33), 1, True, [False, True]), ((17,), 1, True, [True, True]),
])
def test_rms_norm_backward(dtype: torch.dtype, shape: tuple[int, ...], inner: int, weighted: bool, mask: list[bool]) -> None:
    x, dy = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)
    w = torch.randn(shape[len(shape) - inner :]).to(dtype) if weighted else None
    dims = list(range(len(shape) - inner, len(shape)))
    wide = x.double() if dtype == torch.float64 else x.float()
    rstd = (wide.pow(2).mean(dims, keepdim=True) + 1e-5).rsqrt()
    args = [value for value in (dy, x, rstd, w) if value is not None]
    ours, kernels = ran(rms_graph(dy, x, rstd, w, inner, mask), *args)
    assert kernels == 1 if inner == 1 else kernels >= 1

    exact = [x.double().requires_grad_(), *([] if w is None else [w.double().requires_grad_()])]
    scaled = exact[0] * (exact[0].pow(2).mean(dims, keepdim=True) + 1e-5).rsqrt()
    (scaled * exact[1] if weighted else scaled).backward(dy.double())
    wanted = [value.grad for value, asked in zip(exact, mask, strict=False) if asked]
    for a, b in zip(ours, wanted, strict=True):
        assert a.dtype == dtype and b is not None
        scale = float(b.abs().max())
        tolerance = {torch.float64: 1e-12, torch.float32: 3e-6, torch.bfloat16: 4e-3, torch.float16: 1e-3}[dtype]
        assert float((a.double() - b).abs().max()) <= tolerance * max(scale, 1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("ignored", [-100, 3])
def test_nll_loss_backward_is_eagers_bits(dtype: torch.dtype, reduction: int, ignored: int) -> None:
    scores, target = torch.randn(6, 9).to(dtype), torch.tensor([0, 8, 3, 3, 5, 1])
    if ignored == -100:
        target[1] = -100
    grad = torch.randn(6 if reduction == 0 else ()).to(dtype)
    total = torch.tensor(5.0).to(dtype)
    args = (grad, scores, target, total)
    gm = make_fx(lambda g, s, t, n: aten.nll_loss_backward(g, s, t, None, reduction, ignored, n))(*args)
    ours, kernels = ran(gm, *args)
    assert kernels == 1 and torch.equal(ours, gm(*args))


def test_nll_loss_backward_of_one_row_and_of_none() -> None:
    args = (torch.tensor(2.0), torch.randn(7), torch.tensor(4), torch.tensor(1.0))
    gm = make_fx(lambda g, s, t, n: aten.nll_loss_backward(g, s, t, None, 1, -100, n))(*args)
    assert torch.equal(ran(gm, *args)[0], gm(*args))
    ignored = (torch.tensor(2.0), torch.randn(3, 7), torch.full((3,), -100), torch.tensor(0.0))
    assert torch.equal(ran(gm_of(ignored), *ignored)[0], torch.zeros(3, 7))


def gm_of(args: tuple[torch.Tensor, ...]) -> torch.fx.GraphModule:
    return make_fx(lambda g, s, t, n: aten.nll_loss_backward(g, s, t, None, 1, -100, n))(*args)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy_backward_is_one_kernel(reduction: str) -> None:
    x, target = torch.randn(40, 300), torch.randint(0, 300, (40,))
    log = torch.log_softmax(x, -1)
    grad = torch.randn(40) if reduction == "none" else torch.tensor(1.7)
    code = {"none": 0, "mean": 1, "sum": 2}[reduction]

    def backward(g: torch.Tensor, log: torch.Tensor, target: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        return aten._log_softmax_backward_data(aten.nll_loss_backward(g, log, target, None, code, -100, total), log, 1, torch.float32)

    args = (grad, log, target, torch.tensor(40.0))
    gm = make_fx(backward)(*args)
    ours, kernels = ran(gm, *args)
    assert kernels == 1
    check_close(ours, gm(*args), "gradient")
    leaf = x.double().requires_grad_()
    F.cross_entropy(leaf, target, reduction=reduction).backward(grad.double())
    assert leaf.grad is not None and float((ours.double() - leaf.grad).abs().max()) < 2e-6
