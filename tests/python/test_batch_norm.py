"""Training batch norms: running statistics are results of the fusion and written back."""

from __future__ import annotations

import copy
from collections.abc import Callable

import fxfuser
import pytest
import torch
import torch.nn.functional as F
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

RAISE = {"on_error": "raise"}


def inputs(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    channels = shape[1]
    wide = torch.float32 if dtype == torch.bfloat16 else dtype
    rest = [torch.rand(channels), torch.rand(channels) + 0.5, torch.randn(channels), torch.randn(channels)]
    return [torch.randn(shape).to(dtype), *(value.to(wide) for value in rest)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(8, 3, 5, 7), (6, 10), (4, 5, 9), (2, 3, 4, 5, 6)], ids=str)
def test_training_writes_the_running_statistics(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    args = inputs(shape, dtype)
    gm = make_fx(lambda x, mean, var, w, b: F.relu(F.batch_norm(x, mean, var, w, b, True, 0.2)))(*args)
    ours, eager = copy.deepcopy(args), copy.deepcopy(args)
    before = fxfuser.stats()
    got = execute(gm, *ours, executor_parameters=RAISE)
    after = fxfuser.stats()
    assert after["launches"]["host"] > before["launches"]["host"]
    want = gm(*eager)
    if dtype == torch.bfloat16:
        torch.testing.assert_close(got, want)
    else:
        check_close(got, want, "result")
    for index in (1, 2):
        torch.testing.assert_close(ours[index], eager[index])
        assert ours[index]._version == eager[index]._version
    row = next(row for row in fxfuser.explain(gm, *args).nodes() if "batch_norm" in row["target"])
    assert row["status"] == "fused", row


def test_a_module_in_training_and_then_in_inference() -> None:
    ours = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()).train()
    eager = copy.deepcopy(ours)
    x = torch.randn(4, 3, 9, 9)
    with torch.no_grad():
        program = torch.export.export(ours, (x,)).module()
        for _ in range(3):
            check_close(execute(program, x, executor_parameters=RAISE), eager(x), "training")
        for (name, a), (_, b) in zip(ours.named_buffers(), eager.named_buffers(), strict=True):
            torch.testing.assert_close(dict(program.named_buffers())[name], b, msg=name)
            del a


def test_functional_form() -> None:
    x, mean, var, w, b = inputs((8, 3, 5, 7))
    gm = make_fx(lambda *args: torch.ops.aten._native_batch_norm_legit_functional(*args, True, 0.1, 1e-5))(x, w, b, mean, var)
    before = fxfuser.stats()["launches"]["host"]
    check_close(execute(gm, x, w, b, mean, var, executor_parameters=RAISE), gm(x, w, b, mean, var), "results")
    assert fxfuser.stats()["launches"]["host"] > before


def test_one_statistic_for_both_stays_with_aten() -> None:
    x, stat, _, w, b = inputs((8, 3, 5, 7))
    gm = make_fx(lambda x, s, w, b: F.batch_norm(x, s, s, w, b, True) + 1)(x, stat, w, b)
    ours, eager = stat.clone(), stat.clone()
    check_close(execute(gm, x, ours, w, b), gm(x, eager, w, b), "result")
    assert torch.equal(ours, eager)


def test_statistics_read_before_and_after() -> None:
    x, mean, var, w, b = inputs((8, 3, 5, 7))

    def fn(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> tuple[torch.Tensor, ...]:
        old = mean * 2
        y = F.batch_norm(x, mean, var, None, None, True)
        return old, y, mean * 2, var + 1

    gm = make_fx(fn)(x, mean, var)
    ours, eager = [mean.clone(), var.clone()], [mean.clone(), var.clone()]
    check_close(execute(gm, x, *ours, executor_parameters=RAISE), gm(x, *eager), "results")
    for a, c in zip(ours, eager, strict=True):
        torch.testing.assert_close(a, c)


def test_a_buffer_that_two_nodes_get() -> None:
    """make_fx makes a get_attr node for each time a buffer is met."""
    x, mean, var, w, b = inputs((8, 3, 5, 7))

    def traced(mean: torch.Tensor, var: torch.Tensor) -> torch.fx.GraphModule:
        return make_fx(lambda x: (F.batch_norm(x, mean, var, w, b, True), mean + 1, F.batch_norm(x * 2, mean, var, w, b, True), var * 2))(x)

    written = [mean.clone(), var.clone()]
    ours, eager = traced(*written), traced(mean, var)
    assert sum(node.op == "get_attr" for node in ours.graph.nodes) > len(list(ours.buffers()))
    for tensor, source in zip(written, (mean, var), strict=True):
        tensor.copy_(source)
    before = fxfuser.stats()
    check_close(execute(ours, x, executor_parameters=RAISE), eager(x), "results")
    after = fxfuser.stats()
    assert after["launches"]["host"] > before["launches"]["host"]
    assert after["fallbacks"] == before["fallbacks"]
    check_close(written, [mean, var], "running statistics")


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x.movedim(1, -1).contiguous().movedim(-1, 1),
    "reversed": lambda x: x.permute(*range(x.dim())[::-1]).contiguous().permute(*range(x.dim())[::-1]),
    "channels outermost": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "last two swapped": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "every second": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "expanded batch": lambda x: x[:1].expand(x.shape),
    "expanded channels": lambda x: x[:, :1].expand(x.shape),
}


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 4, 5, 6)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides_of_every_form(layout: str, shape: tuple[int, ...], launches: Callable[[], int]) -> None:
    x = LAYOUTS[layout](torch.randn(shape))
    _, mean, var, w, b = inputs(shape)
    aten = torch.ops.aten
    gm = make_fx(
        lambda x: (
            aten.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5),
            aten.native_batch_norm(x, w, b, mean, var, False, 0.1, 1e-5),
            aten._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5),
            aten._native_batch_norm_legit_functional(x, w, b, mean, var, True, 0.1, 1e-5),
            aten._native_batch_norm_legit(x, w, b, mean.clone(), var.clone(), True, 0.1, 1e-5),
            aten._native_batch_norm_legit_no_training(x, w, b, mean, var, 0.1, 1e-5),
            F.batch_norm(torch.sin(x), None, None, w, b, True) * 2,
        )
    )(x)
    check_close(execute(gm, x, executor_parameters=RAISE), gm(x), layout)
    assert launches() > 0
