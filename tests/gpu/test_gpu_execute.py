"""Generated CUDA kernels against a float64 reference, with the layouts of eager, and the launches they must make."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import fxfuser
import pytest
import torch
import torch.nn.functional as F
from fxfuser import execute
from measured import measured
from numerics import check_against_reference, check_close, same_layout, ulp, widened
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
RAISE = {"on_error": "raise"}


def run(fn: Callable[..., Any], *args: torch.Tensor, kernels: int | None = None) -> None:
    """Executes, compares with float64, and asserts that generated CUDA kernels ran."""
    with torch.no_grad():
        gm = make_fx(fn)(*args)
        before = fxfuser.stats()["launches"]["cuda"]
        ours = execute(gm, *args, executor_parameters=RAISE)
        torch.cuda.synchronize()
        count = fxfuser.stats()["launches"]["cuda"] - before
        assert count > 0 if kernels is None else count == kernels, f"{count} kernels ran"
        eager = gm(*args)
        reference = fn(*(widened(arg) for arg in args))
    for index, (a, b, c) in enumerate(zip(*map(pytree.tree_leaves, (ours, eager, reference)), strict=True)):
        check_against_reference(a, b, c, f"result {index}")


def run_often(fn: Callable[..., Any], *shape: int) -> None:
    """Few results from many elements: the error of one says little, so the root mean square over a dozen inputs is compared,
    in units of the last place of a typical result."""
    gm = make_fx(fn)(cuda(*shape))
    errors: list[list[torch.Tensor]] = [[], []]
    sizes = []
    for _ in range(12):
        x = cuda(*shape)
        before = fxfuser.stats()["launches"]["cuda"]
        results = execute(gm, x, executor_parameters=RAISE), gm(x)
        assert fxfuser.stats()["launches"]["cuda"] > before
        reference = fn(x.double())
        same_layout(*results, "result")
        for kept, result in zip(errors, results, strict=True):
            kept.append((result.double() - reference).flatten())
        sizes.append(reference.flatten())
    unit = float(ulp(torch.cat(sizes).square().mean().sqrt(), torch.float32))
    ours, eager = (float(torch.cat(kept).square().mean().sqrt()) / unit for kept in errors)
    assert ours <= max(1.1 * eager, 1.0), f"ours {ours:.3f} ulp, eager {eager:.3f} ulp"


def cuda(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(3, 3), (1000,), (33, 65), (128, 1024), (1 << 20,), (7, 11, 13, 17)], ids=str)
def test_pointwise(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    run(lambda x, y: torch.sigmoid(x * 1.5 + y) * F.gelu(x), cuda(*shape, dtype=dtype), cuda(*shape, dtype=dtype), kernels=1)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", [1, 7, 64, 255, 256, 1024, 4095, 4096, 8192, 20000, 50257, 131072])
def test_softmax(dtype: torch.dtype, n: int) -> None:
    run(lambda x: torch.softmax(x, -1), cuda(19, n, dtype=dtype), kernels=1 if n <= 20000 else None)  # few long rows are split over blocks


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("rows", "n"), [(40, 1000), (512, 20000), (5000, 300), (65536, 1024), (32768, 4096), (16384, 8192), (1000, 30000), (4096, 32768), (1024, 131072)])
def test_layer_norm_backward(dtype: torch.dtype, rows: int, n: int) -> None:
    grad, x, w, b = cuda(rows, n, dtype=dtype), cuda(rows, n, dtype=dtype), cuda(n, dtype=dtype), cuda(n, dtype=dtype)
    mean = x.float().mean(-1, keepdim=True)
    rstd = (x.float().var(-1, correction=0, keepdim=True) + 1e-5).rsqrt()
    fn = lambda grad, x, w, b, mean, rstd: torch.ops.aten.native_layer_norm_backward(grad, x, [n], mean, rstd, w, b, [True, True, True])  # noqa: E731
    run(fn, grad, x, w, b, mean, rstd, kernels=1 if rows > 10000 else None)  # rows and columns in one kernel where the partial columns are few beside the rows


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("rows", "n"), [(300, 65537), (777, 80000), (1024, 131072)])
def test_rows_of_clusters(dtype: torch.dtype, rows: int, n: int) -> None:
    x, w = cuda(rows, n, dtype=dtype), cuda(n, dtype=dtype)
    run(lambda x: torch.softmax(x, -1), x, kernels=1)
    run(lambda x, w: torch.ops.aten.native_layer_norm(x * 2, [n], w, w, 1e-5), x, w, kernels=1)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", [8, 96, 768, 1000, 4096, 12288, 65536])
def test_residual_layer_norm(dtype: torch.dtype, n: int) -> None:
    run(lambda x, r, w, b: F.layer_norm(x + r, (n,), w, b), cuda(33, n, dtype=dtype), cuda(33, n, dtype=dtype), cuda(n, dtype=dtype), cuda(n, dtype=dtype), kernels=1 if n <= 20000 else None)


@pytest.mark.parametrize("dim", [0, 1, 2, (0, 2), (1, 2), (0, 1), None], ids=str)
@pytest.mark.parametrize("shape", [(5, 6, 7), (64, 33, 128), (1, 4096, 3), (2048, 2, 130)], ids=str)
def test_reductions(dim: Any, shape: tuple[int, ...]) -> None:
    run_often(lambda x: (x * 2).sum() if dim is None else (x * 2).sum(dim), *shape)
    run(lambda x: x.amax() if dim is None else x.amax(dim), cuda(*shape))


@pytest.mark.parametrize("shape", [(1 << 22,), (7, 1 << 19), (1 << 19, 7), (3, 1 << 20)], ids=str)
def test_long_reductions(shape: tuple[int, ...]) -> None:
    run_often(lambda x: (x * x).sum(-1), *shape)
    run_often(lambda x: x.mean(0), *shape)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_transposes(dtype: torch.dtype) -> None:
    run(lambda x, y: torch.relu(x.t() + y), cuda(130, 257, dtype=dtype), cuda(257, 130, dtype=dtype), kernels=1)
    run(lambda x: x.permute(0, 3, 1, 2) * 2, cuda(2, 33, 35, 64, dtype=dtype), kernels=1)


def test_argmax_and_indices() -> None:
    x = cuda(65, 1000)
    run(lambda x: (x.argmax(-1), x.max(-1)[1], x.min(0)[0]), x)


def test_indexed_reads() -> None:
    table, index = cuda(100, 64), torch.randint(0, 100, (7, 9), device="cuda")
    run(lambda t: F.embedding(index, t) * 2 + 1, table)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(0, 5, device="cuda"),
        lambda: torch.randn((), device="cuda"),
        lambda: torch.randn(1, 7, device="cuda").expand(6, 7),
        lambda: torch.randn(2, 3, 8, 8, device="cuda").to(memory_format=torch.channels_last),
        lambda: torch.randn(65, device="cuda")[1:],
        lambda: torch.randn(12, 10, device="cuda")[::2, 1::3],
    ],
    ids=["empty", "0-dim", "expanded", "channels_last", "misaligned", "sliced"],
)
def test_awkward_layouts(make: Callable[[], torch.Tensor]) -> None:
    x = make()
    gm = make_fx(lambda t: torch.sigmoid(t) * 3 - t)(x)
    check_close(execute(gm, x, executor_parameters=RAISE), gm(x), "layout")


def test_streams_and_many_sizes() -> None:
    gm = make_fx(lambda x: torch.softmax(x * 2, -1).sum(-1))(cuda(8, 64))
    stream = torch.cuda.Stream()
    compiles = 0
    for rows in range(1, 40):
        x = cuda(rows, 64)
        with torch.cuda.stream(stream):
            stream.wait_stream(torch.cuda.default_stream())
            out = execute(gm, x, executor_parameters=RAISE)
        torch.cuda.synchronize()
        torch.testing.assert_close(out, gm(x))
        if rows == 2:
            compiles = fxfuser.stats()["compiles"]
    assert fxfuser.stats()["compiles"] <= compiles + 8


def test_deterministic() -> None:
    gm = make_fx(lambda x: (x.sum(), x.softmax(0)))(cuda(1 << 16, 3))
    x = cuda(1 << 16, 3)
    first = execute(gm, x)
    for _ in range(5):
        for a, b in zip(first, execute(gm, x), strict=True):
            assert torch.equal(a, b)


def test_zz_floor() -> None:
    measured("cuda_kernel_launches", fxfuser.stats()["launches"]["cuda"])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(64, 256), (300, 1024), (40, 4095), (8, 40000)])
def test_gradients_of_rms_norms_and_losses(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    m, n = shape
    x, dy, w = cuda(m, n, dtype=dtype), cuda(m, n, dtype=dtype), cuda(n, dtype=dtype)
    rstd = (x.float().square().mean(1, keepdim=True) + 1e-5).rsqrt()
    run(lambda *args: torch.ops.aten._fused_rms_norm_backward(args[0], args[1], [n], args[2], args[3], [True, True]), dy, x, rstd, w)
    target = torch.randint(0, n, (m,), device="cuda")
    target[m // 2] = -100
    kernels = 1 if n < 10000 else None
    run(lambda x: F.cross_entropy(x, target, reduction="none"), x, kernels=kernels)

    def backward(grad: torch.Tensor, log: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        scattered = torch.ops.aten.nll_loss_backward(grad, log, target, None, 0, -100, total)
        return torch.ops.aten._log_softmax_backward_data(scattered, log, 1, log.dtype)

    run(backward, cuda(m, dtype=dtype), torch.log_softmax(x, 1), torch.ones((), device="cuda", dtype=dtype), kernels=kernels)


def copied(dims: tuple[int, ...], x: torch.Tensor) -> torch.Tensor:
    return x.permute(dims).contiguous()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8], ids=str)
def test_copies_into_another_order(dtype: torch.dtype) -> None:
    cases = [((512, 384), (1, 0)), ((3, 260, 140), (0, 2, 1)), ((4, 64, 28, 28), (0, 2, 3, 1)), ((2, 100, 8, 64), (0, 2, 1, 3)), ((30000, 3), (1, 0)), ((300000, 3), (1, 0)), ((4, 400000), (1, 0)), ((8, 3, 256, 256), (0, 2, 3, 1))]
    for shape, dims in cases:
        x = torch.randint(-100, 100, shape, device="cuda").to(dtype)
        gm = make_fx(partial(copied, dims))(x)
        before = fxfuser.stats()["launches"]["cuda"]
        ours = execute(gm, x, executor_parameters=RAISE)
        assert fxfuser.stats()["launches"]["cuda"] == before + 1 and torch.equal(ours, x.permute(dims)) and ours.is_contiguous()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(40001, 7), (1 << 16, 2), (3, 30012, 5), (20003, 63), (1 << 20, 1), (2, 1 << 19)])
def test_short_rows_and_short_columns(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Rows shorter than a thread's pack side by side, a rest of rows behind the last group, columns of one and two rows."""
    x, w = cuda(*shape, dtype=dtype), cuda(shape[-1], dtype=dtype)
    dim = -1 if shape[-1] == 1 else -2

    def fold(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (a * b).to(torch.promote_types(a.dtype, torch.float32)).sum(dim), a.amax(dim)

    run(fold, x, w)
    gm = make_fx(fold)(x, w)
    first, second = execute(gm, x, w, executor_parameters=RAISE), execute(gm, x, w, executor_parameters=RAISE)
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)
