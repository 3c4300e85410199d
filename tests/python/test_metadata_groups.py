"""Ops that only change metadata: inside a group they cost nothing, at its border and alone they stay with ATen; an nvprim that is
left over runs as its ATen call, with nothing of ours and no Python between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import TorchRefsNvfuserCapabilityMode, execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx
from traces import inside_execute, python_frames

RAISE = {"on_error": "raise"}
X = torch.randn(4, 6, 8)


def steps() -> tuple[int, int, int]:
    stats = fxfuser.stats()
    return sum(stats["launches"].values()), stats["aten_steps"], stats["view_steps"]


def ran(gm: torch.fx.GraphModule, *args: torch.Tensor, **parameters: Any) -> tuple[int, int, int]:
    """(generated kernels, ATen calls, views) of a later call; the first and this one are eager's."""
    check_close(execute(gm, *args, executor_parameters={**RAISE, **parameters}), gm(*args), "first call")
    before = steps()
    check_close(execute(gm, *args, executor_parameters={**RAISE, **parameters}), gm(*args), "later call")
    kernels, aten, views = (after - start for after, start in zip(steps(), before, strict=True))
    return kernels, aten, views


INSIDE: dict[str, Callable[[torch.Tensor], Any]] = {
    "transpose": lambda x: x.sin().transpose(0, 2).cos(),
    "permute": lambda x: x.sin().permute(2, 0, 1).cos(),
    "view": lambda x: x.sin().view(24, 8).cos(),
    "reshape that splits": lambda x: x.sin().reshape(2, 2, 48).cos(),
    "unsqueeze and expand": lambda x: x.sin().unsqueeze(0).expand(3, 4, 6, 8).cos(),
    "squeeze": lambda x: x.sum(1, keepdim=True).sin().squeeze(1).cos(),
    "slice": lambda x: x.sin()[:, 1:5:2].cos(),
    "a chain of them": lambda x: x.sin().transpose(0, 1).reshape(6, 32).t().unsqueeze(1).permute(2, 1, 0).flatten(1).cos(),
    "between a reduction and its consumer": lambda x: (x.sin().transpose(1, 2).sum(1).unsqueeze(1).permute(0, 2, 1) * 2).exp(),
}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("mode", ["aten", "nvprims"])
def test_inside_a_group_they_cost_nothing(name: str, mode: str) -> None:
    if mode == "nvprims":
        with TorchRefsNvfuserCapabilityMode():
            gm = make_fx(INSIDE[name])(X)
    else:
        gm = make_fx(INSIDE[name])(X)
    assert ran(gm, X) == (1, 0, 0)


ONLY: dict[str, Callable[[torch.Tensor], Any]] = {
    "transpose": lambda x: x.transpose(0, 2),
    "view": lambda x: x.view(24, 8),
    "several": lambda x: x.permute(2, 1, 0).unsqueeze(0).expand(2, 8, 6, 4).select(0, 1),
    "several results": lambda x: (x.view(-1), x.transpose(0, 1), x[0]),
}


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("name", ONLY)
def test_groups_of_them_alone_stay_out(name: str, single: bool) -> None:
    gm = make_fx(ONLY[name])(X)
    with pytest.warns(fxfuser.FallbackWarning, match="nothing is fused"):
        kernels, aten, _ = ran(gm, X, allow_single_op_fusion=single)
    assert kernels == 0 and aten > 0
    results = execute(gm, X)
    assert all(result._is_view() and result._base is X for result in (results if isinstance(results, tuple) else (results,)))
    assert {node["status"] for node in fxfuser.explain(gm, X).nodes()} == {"view"}


LARGE = torch.randn(64, 24, 48)
REORDERED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": lambda x: x.transpose(1, 2).contiguous(),
    "permuted": lambda x: x.permute(2, 1, 0).contiguous(),
    "heads": lambda x: x.view(64, 24, 2, 24).permute(0, 2, 1, 3).clone(memory_format=torch.contiguous_format),
    "channels first": lambda x: x.contiguous(),
}


@pytest.mark.parametrize("name", REORDERED)
def test_a_copy_into_another_order_of_memory_is_work(name: str) -> None:
    fn = REORDERED[name]
    x = LARGE if name != "channels first" else LARGE.view(64, 24, 2, 24).to(memory_format=torch.channels_last)
    gm = make_fx(fn)(x)
    kernels, _, _ = ran(gm, x)
    out = execute(gm, x)
    assert kernels == 1 and out.is_contiguous() and torch.equal(out, fn(x)) and out._base is None


@pytest.mark.filterwarnings("ignore:nothing is fused")
def test_copies_in_order_and_small_ones_stay_with_aten() -> None:
    for fn in (torch.clone, lambda x: x[:, :3].contiguous(), lambda x: x.transpose(0, 1).clone()):
        assert ran(make_fx(fn)(LARGE), LARGE)[0] == 0
    assert ran(make_fx(REORDERED["transposed"])(X), X)[0] == 0


BORDER: dict[str, tuple[Callable[[torch.Tensor], Any], set[str]]] = {
    "before": (lambda x: x.transpose(0, 2).view(8, 24).sin().cos(), {"sin", "cos"}),
    "after": (lambda x: x.sin().cos().transpose(0, 2), {"sin", "cos"}),
    "both": (lambda x: x.view(24, 8).sin().cos().view(4, 6, 8).permute(1, 0, 2), {"sin", "cos"}),
    "after and used inside": (lambda x: (x.sin().transpose(0, 2), x.sin().transpose(0, 2).cos()), {"sin", "sin_1", "transpose_1", "cos"}),
    "beside an op that stays": (lambda x: torch.digamma(x.exp().transpose(0, 2)).permute(1, 0, 2).sin().cos(), {"exp", "sin", "cos"}),
}


@pytest.mark.parametrize("name", BORDER)
def test_views_at_a_border_stay_out(name: str) -> None:
    fn, fused = BORDER[name]
    gm = make_fx(fn)(X if name != "before" else torch.randn(8, 6, 4).permute(2, 1, 0))
    x = X if name != "before" else torch.randn(8, 6, 4).permute(2, 1, 0)
    kernels, aten, _ = ran(gm, x)
    report = {node["name"]: node["status"] for node in fxfuser.explain(gm, x).nodes()}
    assert {node for node, status in report.items() if status == "fused"} == fused, report
    assert kernels == (2 if name == "beside an op that stays" else 1)
    assert aten == sum(status in ("aten", "view") for status in report.values())


LEFT_OVER: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "transpose": (lambda x: torch.ops.nvprims.transpose(x, [1, 0, 2]), "aten::permute"),
    "view": (lambda x: torch.ops.nvprims.view(x, X.shape, [24, 8]), "aten::view"),
    "squeeze": (lambda x: torch.ops.nvprims.squeeze(x[:1], [0]), "aten::squeeze"),
    "broadcast_in_dim": (lambda x: torch.ops.nvprims.broadcast_in_dim(x, [2, 4, 6, 8], [1, 2, 3]), "aten::expand"),
    "exp": (lambda x: torch.ops.nvprims.exp(x), "aten::exp"),
    "convert_element_type": (lambda x: torch.ops.nvprims.convert_element_type(x, torch.float64), "aten::_to_copy"),
}


@pytest.mark.parametrize("name", LEFT_OVER)
@pytest.mark.filterwarnings("ignore:nothing is fused")
def test_an_nvprim_left_over_is_its_aten_call(name: str) -> None:
    fn, call = LEFT_OVER[name]
    gm = make_fx(fn)(X)
    assert any("nvprims" in str(node.target) for node in gm.graph.nodes)
    parameters = {"allow_single_op_fusion": False}
    assert ran(gm, X, **parameters)[0] == 0
    results = []
    names = inside_execute(lambda: results.append(execute(gm, X, executor_parameters={**RAISE, **parameters})))
    check_close(results[0], gm(X), name)
    assert call in names and not [event for event in names if event.startswith("fxfuser_")], names
    assert not python_frames(names), names
