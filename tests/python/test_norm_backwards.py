"""Gradients of batch and group norms: against a float64 reference, in few kernels, for every mask and layout."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from numerics import check_against_reference, check_close
from torch.fx.experimental.proxy_tensor import make_fx

RAISE = {"on_error": "raise"}
ALL = [True, True, True]


def batch_norm_backward(training: bool, mask: list[bool], *tensors: Any) -> Any:
    grad, x, w, running_mean, running_var, mean, rstd = tensors
    out = torch.ops.aten.native_batch_norm_backward(grad, x, w, running_mean, running_var, mean, rstd, training, 1e-5, mask)
    return tuple(value for value in out if value is not None)


def group_norm_backward(groups: int, mask: list[bool], *tensors: Any) -> Any:
    grad, x, mean, rstd, w = tensors
    n, c = x.shape[:2]
    out = torch.ops.aten.native_group_norm_backward(grad, x, mean, rstd, w, n, c, x.numel() // (n * c), groups, mask)
    return tuple(value for value in out if value is not None)


def check(fn: Any, args: tuple[Any, ...], kernels: int | None = None) -> None:
    """Against eager's own error, layouts included; `kernels` is how many may run."""
    given = [arg for arg in args if arg is not None]

    def over_tensors(*tensors: torch.Tensor) -> Any:
        rest = iter(tensors)
        return fn(*(None if arg is None else next(rest) for arg in args))

    gm = make_fx(over_tensors)(*given)
    before = fxfuser.stats()
    ours = execute(gm, *given, executor_parameters=RAISE)
    after = fxfuser.stats()
    count = after["launches"]["host"] - before["launches"]["host"]
    assert count > 0 if kernels is None else count == kernels, f"{count} kernels ran"
    assert after["aten_steps"] == before["aten_steps"]
    eager = gm(*given)
    if given[0].dtype == torch.float64:  # eager is the reference
        check_close(ours, eager, "gradients")
        return
    reference = over_tensors(*(arg.double() for arg in given))
    for index, (a, b, c) in enumerate(zip(ours, eager, reference, strict=True)):
        check_against_reference(a, b, c, f"gradient {index}")


def batch_norm_args(shape: tuple[int, ...], dtype: torch.dtype, wide: torch.dtype, weighted: bool = True) -> tuple[Any, ...]:
    channels = shape[1]
    x = torch.randn(shape).to(dtype)
    over = [0, *range(2, len(shape))]
    mean, rstd = x.double().mean(over).to(wide), (x.double().var(over, correction=0) + 1e-5).rsqrt().to(wide)
    weight = torch.randn(channels).to(wide) if weighted else None
    return torch.randn(shape).to(dtype), x, weight, torch.randn(channels).to(wide), (torch.rand(channels) + 0.5).to(wide), mean, rstd


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("dtype", "wide"), [(torch.float32,) * 2, (torch.float64,) * 2, (torch.bfloat16,) * 2, (torch.bfloat16, torch.float32)], ids=str)
@pytest.mark.parametrize("shape", [(8, 6, 9, 7), (32, 10), (4, 5, 33)], ids=str)
def test_batch_norm(shape: tuple[int, ...], dtype: torch.dtype, wide: torch.dtype, training: bool) -> None:
    check(lambda *args: batch_norm_backward(training, ALL, *args), batch_norm_args(shape, dtype, wide))


def test_batch_norm_is_one_kernel() -> None:
    args = batch_norm_args((16, 32, 28, 28), torch.float32, torch.float32)
    check(lambda *args: batch_norm_backward(True, ALL, *args), args, kernels=1)
    check(lambda *args: batch_norm_backward(False, ALL, *args), args, kernels=1)


@pytest.mark.parametrize("mask", [mask for mask in itertools.product([True, False], repeat=3) if any(mask)], ids=str)
def test_masks(mask: tuple[bool, ...]) -> None:
    check(lambda *args: batch_norm_backward(True, list(mask), *args), batch_norm_args((4, 6, 9), torch.float32, torch.float32))
    check(lambda *args: group_norm_backward(3, list(mask), *args), group_norm_args((4, 6, 9), 3, torch.float32, torch.float32))


def test_without_weights() -> None:
    args = batch_norm_args((4, 6, 9), torch.float32, torch.float32, weighted=False)
    check(lambda *args: batch_norm_backward(True, ALL, *args), args)
    check(lambda *args: batch_norm_backward(False, [True, False, False], *args), args)
    check(lambda *args: batch_norm_backward(True, ALL, *args), (*args[:3], None, None, *args[5:]))
    check(lambda *args: group_norm_backward(3, [True, False, False], *args), group_norm_args((4, 6, 9), 3, torch.float32, torch.float32, weighted=False))


def layouts(x: torch.Tensor) -> list[torch.Tensor]:
    gaps = torch.zeros(*x.shape[:-1], x.shape[-1] * 2)
    gaps[..., ::2] = x
    return [x, x.contiguous(memory_format=torch.channels_last), x.transpose(1, 2).contiguous().transpose(1, 2), gaps[..., ::2], x[:1].expand(x.shape)]


@pytest.mark.parametrize("training", [True, False])
def test_layouts(training: bool) -> None:
    grad, x, *rest = batch_norm_args((4, 6, 5, 7), torch.float32, torch.float32)
    for a, b in itertools.product(layouts(grad), layouts(x)):
        check(lambda *args: batch_norm_backward(training, ALL, *args), (a, b, *rest))


def test_a_gradient_that_is_none_and_read() -> None:
    args = batch_norm_args((4, 6, 9), torch.float32, torch.float32)
    graph = torch.fx.Graph()
    inputs = [graph.placeholder(f"a{i}") for i in range(len(args))]
    out = graph.call_function(torch.ops.aten.native_batch_norm_backward.default, (*inputs, True, 1e-5, [True, False, True]))
    out.meta["val"] = torch.ops.aten.native_batch_norm_backward(*args, True, 1e-5, [True, False, True])
    graph.output(tuple(graph.call_function(operator.getitem, (out, i)) for i in range(3)))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    for _ in range(2):
        ours = execute(gm, *args)
        assert ours[1] is None
        check_close(ours, gm(*args), "gradients")


def group_norm_args(shape: tuple[int, ...], groups: int, dtype: torch.dtype, wide: torch.dtype, weighted: bool = True) -> tuple[Any, ...]:
    x = torch.randn(shape).to(dtype)
    weight = torch.randn(shape[1]).to(wide) if weighted else None
    rows = x.double().reshape(shape[0], groups, -1)
    mean, rstd = rows.mean(2).to(wide), (rows.var(2, correction=0) + 1e-5).rsqrt().to(wide)
    return torch.randn(shape).to(dtype), x, mean, rstd, weight


@pytest.mark.parametrize(("dtype", "wide"), [(torch.float32,) * 2, (torch.float64,) * 2, (torch.bfloat16,) * 2, (torch.bfloat16, torch.float32)], ids=str)
@pytest.mark.parametrize(("shape", "groups"), [((4, 48, 9, 7), 3), ((16, 30), 5), ((4, 42, 33), 6), ((3, 64, 5), 1)], ids=str)
def test_group_norm(shape: tuple[int, ...], groups: int, dtype: torch.dtype, wide: torch.dtype) -> None:
    check(lambda *args: group_norm_backward(groups, ALL, *args), group_norm_args(shape, groups, dtype, wide))


def test_group_norm_is_two_kernels() -> None:
    check(lambda *args: group_norm_backward(8, ALL, *args), group_norm_args((4, 32, 16, 16), 8, torch.float32, torch.float32), kernels=2)


def test_a_block_of_a_residual_network() -> None:
    """Forward and backward of convolution, batch norm, residual and relu, as AOTAutograd traces them."""
    block = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3), torch.nn.GroupNorm(2, 8))
    names, parameters = zip(*block.named_parameters(), strict=True)
    x = torch.randn(4, 3, 10, 10)

    def step(x: torch.Tensor, *parameters: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out = torch.func.functional_call(block, dict(zip(names, parameters, strict=True)), (x,))
        return torch.autograd.grad(out.square().sum(), parameters)

    given = [parameter.detach().clone().requires_grad_() for parameter in parameters]
    gm = make_fx(step)(x, *given)
    before = fxfuser.stats()["launches"]["host"]
    detached = [value.detach() for value in given]
    ours, eager = execute(gm, x, *detached, executor_parameters=RAISE), gm(x, *detached)
    assert fxfuser.stats()["launches"]["host"] > before
    for a, b in zip(ours, eager, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-3)
    rows = {row["target"]: row["status"] for row in fxfuser.explain(gm, x, *detached).nodes()}
    assert {target: status for target, status in rows.items() if "norm_backward" in target} == {
        "aten.native_batch_norm_backward.default": "fused", "aten.native_group_norm_backward.default": "fused"}
