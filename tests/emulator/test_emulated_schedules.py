"""Every scheduler, tier and border in the emulator: planned for a machine so small that small tensors reach them all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from cases import Case, run_cases
from measured import measured

FLOATS = (torch.float32, torch.bfloat16)
seen: set[str] = set()
kernels: set[str] = set()


def form(schedule: str) -> str:
    """"normalization: ..., inner warp, ... split 4" -> "normalization inner warp split"."""
    words = [schedule.split(":")[0]]
    reduced = re.search(r", (inner|columns) (\w+)", schedule)
    if reduced:
        words.append(reduced.group(1))
        if words[0] == "normalization" and reduced.group(1) == "inner":
            words.append(reduced.group(2))
        if "slabs" in schedule:
            words.append("columns")
        if "side by side" in schedule:
            words.append("short")
        if re.search(r"split ([2-9]|\d\d)", schedule):
            words.append("split")
    if ", online" in schedule:
        words.append("online")
    if " refilled" in schedule:
        words.append("refilled")
    if schedule.startswith("transpose") and " by " in schedule:
        words.append("packs")
    return " ".join(words)


def pointwise() -> Iterator[Case]:
    for dtype in FLOATS:
        for shape in ((), (1,), (3, 3), (5, 64), (1030,), (2, 3, 5, 7)):
            yield lambda a, b: (torch.sigmoid(a) * b, a + 1.5), (torch.randn(shape).to(dtype), torch.randn(shape).to(dtype))
    for x in (torch.randn(65)[1:], torch.randn(12, 10)[::2, 1::3], torch.randn(1, 7).expand(6, 7), torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)):
        yield lambda a: torch.sigmoid(a) * 2, (x,)


def rows(dtype: torch.dtype) -> Iterator[Case]:
    for n in (1, 5, 8, 31, 64, 130, 256, 700, 1024, 2500, 20000):
        x, w = torch.randn(5, n).to(dtype), torch.randn(n).to(dtype)
        yield lambda a: torch.softmax(a, -1), (x,)
        yield lambda a, b: F.layer_norm(a + 1, b.shape, b, b), (x, w)


def columns(dtype: torch.dtype) -> Iterator[Case]:
    for shape in ((7, 3), (40, 64), (300, 5), (3, 50, 9), (4096, 2), (2, 3000, 4)):
        x = torch.rand(shape).to(dtype)
        yield lambda a: (a * 2).sum(-2), (x.clone(),)
        yield lambda a: a.amax(-2), (x.clone(),)
        yield lambda a: torch.softmax(a, -2), (x.clone(),)
        yield lambda a: torch.var_mean(a, -2), (x.clone(),)


def norm_backward(grad: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Gradients of an RMS norm: rows go on into values of full size, columns end as the weight's gradient."""
    dtype = x.dtype
    grad, x, w = grad.float(), x.float(), w.float()
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
    weighted = grad * w
    inner = (weighted * x).mean(-1, keepdim=True) * scale.pow(3)
    dims = tuple(range(x.dim() - 1))
    return (weighted * scale - x * inner).to(dtype), (grad * x * scale).sum(dims).to(dtype), grad.sum(dims).to(dtype)


def channels(dtype: torch.dtype) -> Iterator[Case]:
    """Rows of several pieces of the memory, that fill the shared memory of a cluster: as many as its teams, fewer, and more."""
    dims = (0, 2, 3)
    for shape in ((3, 5, 20, 30), (4, 3, 24, 32), (2, 17, 40, 25), (5, 1, 21, 20)):
        x, w = torch.rand(shape).to(dtype), torch.rand(shape[1])
        yield lambda a, b: torch.ops.aten._native_batch_norm_legit.no_stats(a, b, b, True, 0.1, 1e-5), (x, w)
        yield lambda a: torch.relu(a - a.float().mean(dims, keepdim=True)).to(a.dtype), (x.clone(),)
        yield lambda a, b: (a.float() - (a.float() * b).sum(dims, keepdim=True)) * b, (x.clone(), torch.rand(shape))
        yield lambda a: torch.exp(a.float() - a.float().amax(dims, keepdim=True)).sum(dims), (x.clone(),)


def row_columns(dtype: torch.dtype) -> Iterator[Case]:
    for shape in ((40, 64), (64, 33), (9, 130), (37, 256), (4, 30, 48), (300, 8), (50, 700), (23, 2100)):
        yield norm_backward, (torch.rand(shape).to(dtype), torch.rand(shape).to(dtype), torch.rand(shape[-1]).to(dtype))
        yield lambda a: (a.sum(-1), a.amax(0), torch.softmax(a, -1).mean(0)), (torch.rand(shape).to(dtype),)
    x = torch.rand(300, 64).to(dtype)  # columns that meet what is no finite number, or become it
    x[7, 3], x[50, 5], x[51, 5], x[200, 9], x[:, 11] = torch.inf, -torch.inf, torch.inf, torch.nan, 3e38
    yield lambda a: (a + a.clamp(max=1).sum(-1, keepdim=True) / 2, a.sum(0)), (x,)


def row_sums() -> Iterator[Case]:
    for shape in ((9,), (3, 70), (2, 20000), (20000,), (1, 3000)):
        x = torch.rand(shape)
        yield lambda a: (a * a).sum(-1), (x,)
        yield lambda a: (a.argmax(-1), a.amin(-1)), (x.clone(),)
        yield lambda a: a.mean(), (x.clone(),)
    yield lambda a: (a.sum(), a.amax()), (torch.rand(700000),)  # partials for several warps


def over(dims: tuple[int, ...]) -> Iterator[Case]:
    yield lambda a: a.sum(dims), (torch.rand(3, 5, 4, 18),)
    yield lambda a: a.sum(dims, keepdim=True) + a, (torch.rand(3, 5, 4, 18),)
    yield lambda a: torch.var(a, dims, correction=1), (torch.rand(3, 5, 4, 18),)


def axes() -> Iterator[Case]:
    for dims in ((0,), (1,), (2,), (0, 2), (0, 1, 2), (3,), (1, 3)):
        yield from over(dims)


def transposes() -> Iterator[Case]:
    for dtype in (torch.float32, torch.float16, torch.uint8):
        for shape in ((33, 65), (64, 32), (70, 130), (72, 136), (7, 100)):
            x = torch.randint(0, 9, shape).to(dtype)
            yield lambda a: (a.t() * 2).contiguous(), (x,)
            yield lambda a, b: a.t() + b, (x.clone(), torch.ones(shape[::-1]).to(dtype))
            yield lambda a: (a.permute(0, 2, 1) + 1).contiguous(), (torch.randint(0, 9, (3, *shape)).to(dtype),)


def short_axes() -> Iterator[Case]:
    for dtype in (torch.float32, torch.bfloat16, torch.uint8):
        for across in (2, 3, 4, 7):
            x = torch.randint(0, 9, (8192, across)).to(dtype)
            yield lambda a: (a.t() * 2).contiguous(), (x,)
            yield lambda a, b: a.t().float() * 0.5 + b, (x.clone(), torch.randn(across, 1))
            yield lambda a: (a.t() + 1).contiguous(), (x.t().contiguous(),)
    image = torch.randint(0, 255, (2, 64, 64, 3), dtype=torch.uint8)
    yield lambda a, mean: (a.float() / 255 - mean).permute(0, 3, 1, 2).contiguous(), (image, torch.rand(3))


def short_columns() -> Iterator[Case]:
    """Columns in rows shorter than a thread's pack, and columns of one row."""
    for dtype in FLOATS:
        for shape in ((2000, 7), (6001, 3), (2, 4100, 5), (3001, 31), (2, 2, 1500, 2)):
            x, w = (torch.rand(shape) + 0.5).to(dtype), torch.rand(shape[-1]).to(dtype)
            yield lambda a, b: (a * b + b).sum(-2), (x, w)
            yield lambda a: (a.amax(-2), a.float().mean(-2)), (x.clone(),)
            yield lambda a: a.max(-2), (x.clone(),)
    yield lambda a: a.sum(0), (torch.rand(4001, 5, dtype=torch.float64),)
    counts = torch.randint(0, 100, (5003, 6))
    yield lambda a: a.sum(0), (counts.to(torch.uint8),)
    yield lambda a: (a > 50).sum(0), (counts,)
    yield lambda a: a.sum(0), (torch.rand(9001)[1:].view(3000, 3),)
    for shape in ((4096, 1), (1, 9000), (3, 9000), (2, 2, 9000)):
        yield lambda a: (a.sum(-1), a.sum(-2), a.mean(0), a.amax(0)), (torch.rand(shape),)


def cross_entropy_backward(grad: torch.Tensor, log: torch.Tensor, target: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    scattered = torch.ops.aten.nll_loss_backward(grad, log, target, None, 0, -100, total)
    return torch._log_softmax_backward_data(scattered, log, 1, log.dtype)


def reads() -> Iterator[Case]:
    index = torch.tensor([[3, 10, 0], [7, 7, 1]])
    yield lambda t, i: F.embedding(i, t) * 2, (torch.randn(11, 24), index)
    yield lambda t, i: torch.gather(t, 1, i) + 1, (torch.randn(2, 11), index)
    yield lambda a, b: torch.cat([a, b * 2], 1) + 1, (torch.randn(3, 5), torch.randn(3, 8))
    yield lambda a: F.pad(a, (1, 2, 3, 0)) * 2, (torch.randn(4, 6),)
    yield lambda a, i: F.layer_norm(F.embedding(i, a), (24,)), (torch.randn(11, 24), index)
    yield lambda a: a.flip(1) + a.roll(2, 0), (torch.randn(4, 6),)
    yield lambda a: torch.tril(a) * 2, (torch.randn(6, 6),)
    for m, n, dtype in ((12, 64, torch.float32), (5, 1000, torch.bfloat16), (3, 5000, torch.float32), (9, 131, torch.bfloat16)):
        scores, place = torch.randn(m, n).to(dtype), torch.randint(0, n, (m, 1))
        yield lambda a, i: -torch.log_softmax(a, -1).gather(1, i), (scores, place)
        yield cross_entropy_backward, (torch.randn(m).to(dtype), torch.log_softmax(scores, -1), place.squeeze(1), torch.tensor(0.0))


def pick(scores: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    return -torch.log_softmax(scores, -1).gather(1, place)


def online() -> Iterator[Case]:
    """Maxima and sums of exponentials in one pass: rows in which the maximum comes late, is infinite or no number, ties."""
    inf, nan = float("inf"), float("nan")
    for n, dtype in ((24, torch.float32), (300, torch.bfloat16), (301, torch.bfloat16), (513, torch.float64), (5000, torch.float32), (20000, torch.float16)):
        scores = torch.randn(9, n).to(dtype) * 4
        scores[0, : n // 2] = -inf
        scores[1] = -inf
        scores[2, n // 3], scores[3, n // 2], scores[4, n - 1] = inf, nan, 80
        scores[5], scores[6, 0], scores[7] = -3, 60, scores[7].sort().values
        place = torch.randint(0, n, (9, 1))
        yield pick, (scores, place)
        yield pick, (scores[:3], place[:3])
        yield lambda a: torch.softmax(a, -1).amax(-1), (scores,)
    for m, n, dtype in ((5, 40001, torch.bfloat16), (5, 40000, torch.float32)):
        scores = torch.randn(m, n).to(dtype) * 3
        scores[0, :100], scores[1] = -inf, -inf
        yield lambda a: torch.softmax(a, -1), (scores,)
        yield lambda a: torch.log_softmax(a, -1), (scores,)


FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    "pointwise": pointwise,
    "rows float32": lambda: rows(torch.float32),
    "rows bfloat16": lambda: rows(torch.bfloat16),
    "columns float32": lambda: columns(torch.float32),
    "columns bfloat16": lambda: columns(torch.bfloat16),
    "row + column float32": lambda: row_columns(torch.float32),
    "row + column bfloat16": lambda: row_columns(torch.bfloat16),
    "channels float32": lambda: channels(torch.float32),
    "channels bfloat16": lambda: channels(torch.bfloat16),
    "short columns": short_columns,
    "row sums": row_sums,
    "axes": axes,
    "transposes": transposes,
    "short axes": short_axes,
    "reads": reads,
    "online": online,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    for kernel in run_cases(FAMILIES[family]()):
        kernels.add(kernel["name"])
        seen.add(form(kernel["schedule"]))


def test_all_forms_were_reached() -> None:
    measured("emulated_schedule_kernels", len(kernels))
    wanted = {"pointwise", "interleave", "transpose", "transpose packs", "reduction inner", "reduction inner split", "reduction inner online", "reduction inner split online", "reduction columns", "reduction columns split", "reduction columns short", "reduction columns short split",
              "normalization inner warp", "normalization inner block", "normalization inner cluster", "normalization inner cluster refilled", "normalization inner multipass", "normalization inner multipass online", "normalization columns",
              "normalization inner warp columns", "normalization inner block columns", "normalization inner cluster columns"}
    assert wanted <= seen, f"not reached: {sorted(wanted - seen)} (reached: {sorted(seen)})"
