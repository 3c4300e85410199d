"""Rows and columns reduced in one kernel (gradients of norms), and where they can't be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from numerics import check_against_reference
from torch.fx.experimental.proxy_tensor import make_fx

RAISE = {"on_error": "raise"}


def run(fn: Callable[..., Any], *args: torch.Tensor, kernels: int | None) -> None:
    gm = make_fx(fn)(*args)
    before = fxfuser.stats()["launches"]["host"]
    ours = execute(gm, *args, executor_parameters=RAISE)
    count = fxfuser.stats()["launches"]["host"] - before
    assert count > 0 if kernels is None else count == kernels, f"{count} kernels ran"
    reference = fn(*(arg.double() for arg in args))
    for index, (a, b, c) in enumerate(zip(ours, gm(*args), reference, strict=True)):
        check_against_reference(a, b, c, f"result {index}")


def norm_backward(grad: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    dims = tuple(range(x.dim() - 1))
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
    return grad * scale - x * (grad * x).mean(-1, keepdim=True) * scale.pow(3), (grad * x * scale).sum(dims), grad.sum(dims) * 2 + 1


@pytest.mark.parametrize("shape", [(512, 256), (700, 33), (4, 300, 65), (3000, 1000), (2000, 1)], ids=str)
def test_gradients_of_a_norm(shape: tuple[int, ...]) -> None:
    run(norm_backward, torch.randn(shape), torch.randn(shape), kernels=1 if shape[-1] > 1 else None)


def test_gradient_of_layer_norm() -> None:
    grad, x, w, b = torch.randn(2048, 384), torch.randn(2048, 384), torch.randn(384), torch.randn(384)
    mean, rstd = x.mean(-1, keepdim=True), (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt()
    run(lambda *args: torch.ops.aten.native_layer_norm_backward(args[0], args[1], [384], *args[2:], [True, True, True]), grad, x, mean, rstd, w, b, kernels=1)


def test_every_kind_of_fold() -> None:
    x = torch.randn(1024, 128)
    run(lambda x: (torch.softmax(x, -1), x.mean(0), x.amax(0), x.amin(0).exp(), (x > 0).float().sum(0)), x, kernels=None)


def test_rows_and_columns_without_a_full_result() -> None:
    run(lambda x: (x.sum(-1), x.sum(0)), torch.rand(2048, 256), kernels=1)


def test_no_rows() -> None:
    x = torch.randn(0, 16)
    gm = make_fx(lambda x: (torch.softmax(x, -1), x.sum(0)))(x)
    for ours, eager in zip(execute(gm, x, executor_parameters=RAISE), gm(x), strict=True):
        torch.testing.assert_close(ours, eager)


def test_rows_that_need_the_columns() -> None:
    run(lambda x: (x.sum(-1), x / x.square().sum(0).sqrt()), torch.rand(600, 64) + 0.5, kernels=None)


def test_columns_summed_further() -> None:
    run(lambda x: (torch.softmax(x, -1), x.sum(0), x.sum(0).sum()), torch.rand(600, 64), kernels=None)


def test_square() -> None:
    run(lambda x: (torch.softmax(x, -1), torch.softmax(x, 0), x.sum(0), x.sum(1)), torch.rand(128, 128), kernels=None)


def test_the_same_bits_for_any_number_of_threads() -> None:
    grad, x = torch.randn(3000, 200), torch.randn(3000, 200)
    gm = make_fx(norm_backward)(grad, x)
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(execute(gm, grad, x, executor_parameters=RAISE))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
