"""Rows that start anywhere in a pack (odd lengths, odd strides): every length and form against ATen, no access outside a tensor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pytest
import torch
import torch.nn.functional as F
from cases import Case, run_cases

FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def run(cases: Iterable[Case]) -> list[str]:
    return [kernel["schedule"] for kernel in run_cases(cases)]


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def layer_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x + 1, w.shape, w, w)


def gelu(x: torch.Tensor, b: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return F.gelu(x + b) * dy


def cross_entropy(x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    return -torch.log_softmax(x, -1).gather(1, place)


def softmax_and_columns(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.softmax(x, -1), torch.softmax(x, -1).sum(0)


def norm_backward(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    weighted = dy.float() * w.float()
    return (weighted - x.float() * (weighted * x.float()).mean(-1, keepdim=True)).to(x.dtype), (dy.float() * x.float()).sum(0), dy.float().sum(0)


def lengths(dtype: torch.dtype) -> Iterator[Case]:
    for n in range(1, 71):
        rows = 1 + n % 5
        yield layer_norm, (torch.randn(rows, n).to(dtype), torch.randn(n).to(dtype))
        if n % 3 == FLOATS.index(dtype):
            yield lambda a: (a.float() * a).sum(-1), (torch.randn(rows, n).to(dtype),)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_every_length(dtype: torch.dtype) -> None:
    schedules = run(lengths(dtype))
    shifted = [schedule.split(":")[0] for schedule in schedules if "shifted rows" in schedule]
    # Odd lengths of at least four packs of 4: 17 to 69. Of packs of 2, if these have 8 bytes and no weight lies across them: beside one row it doesn't.
    assert shifted.count("normalization") == (28 if dtype == torch.float32 else 27)
    assert shifted.count("reduction") >= 9


def bias_lengths(dtype: torch.dtype) -> Iterator[Case]:
    for n in (33, 47, 50, 63, 65):
        x = torch.randn(130, n).to(dtype)
        yield gelu, (x, torch.randn(n).to(dtype), x.flip(0).contiguous())


@pytest.mark.parametrize("dtype", FLOATS[:2], ids=str)
def test_bias(dtype: torch.dtype) -> None:
    schedules = run(bias_lengths(dtype))
    assert sum("shifted rows" in schedule for schedule in schedules) == 4


def test_a_flat_space_of_odd_size_moves_in_packs() -> None:
    schedules = run([(lambda a: torch.sigmoid(a) * 2, (torch.randn(3, 1367).to(dtype),)) for dtype in FLOATS])
    assert all("shifted rows" in schedule and "vector 1 " not in schedule for schedule in schedules)


def places() -> Iterator[Case]:
    for dtype in (torch.float32, torch.bfloat16):
        for n in (67,) if dtype == torch.bfloat16 else (67, 70):
            for start in (0, 1, 2, 3, 4, 8):  # where the tensor starts in memory; an output starts at a border of packs
                x = torch.randn(5 * n + 8).to(dtype)[start:start + 5 * n].view(5, n)
                yield softmax, (x,)
            yield softmax, (torch.randn(5, n + 3).to(dtype)[:, :n],)
            yield softmax, (torch.randn(7, n).to(dtype)[::3],)
            yield softmax, (torch.randn(1, n).to(dtype).expand(3, n),)
            yield softmax, (torch.randn(2, 3, n).to(dtype).transpose(0, 1),)
            for skip in (1, 2, 5):  # a part of each row: its shift is another than the output's
                yield lambda a, b: torch.softmax(a[:, -b.shape[1]:] + b, -1), (torch.randn(4, n + 8).to(dtype), torch.randn(4, n + 8 - skip).to(dtype))
            yield lambda t, i: F.layer_norm(F.embedding(i, t), (t.shape[1],)), (torch.randn(11, n).to(dtype), torch.tensor([3, 10, 0, 7]))


def test_places_in_memory() -> None:
    schedules = run(places())
    assert any("shifted rows" in schedule for schedule in schedules)
    assert any(re.search(r"shifted rows, inputs 1\d* across", schedule) for schedule in schedules)


def mixed() -> Iterator[Case]:
    """What is masked beside sums: places of extremes, integers, booleans, a place in the row among the operands, values of other widths."""
    for n in (131,):
        x = torch.randn(5, n)
        yield lambda a: (a.argmax(-1), a.amin(-1)), (x,)
        yield lambda a, b: torch.softmax(torch.where(b, a, -1e9), -1), (x.bfloat16(), x > 0)
        yield lambda a: torch.tril(a).amax(-1, keepdim=True) - a, (x.clone(),)
        yield lambda a: (a // 3).prod(-1), (torch.randint(3, 6, (5, n), dtype=torch.int32),)
        yield lambda a, b: a.div(b, rounding_mode="floor").sum(-1), (torch.randint(1, 99, (5, n)), torch.randint(1, 9, (5, n)))
        yield lambda a: torch.softmax(a.float(), -1), (x.bfloat16(),)
        yield lambda a, b: F.layer_norm(a + b, b.shape), (x.bfloat16(), torch.randn(n))
        yield lambda a, b: (torch.softmax(a.float(), -1) * b).bfloat16(), (x.bfloat16(), torch.randn(n))
        yield lambda a: torch.softmax(a, -1), (x.double(),)


def test_what_is_masked() -> None:
    schedules = run(mixed())
    assert sum("shifted rows" in schedule for schedule in schedules) >= 6


FORMS: dict[str, tuple[str, Case]] = {
    "block": (r"normalization.*inner block.*shifted rows, ", (layer_norm, (torch.randn(5, 131).bfloat16(), torch.randn(131).bfloat16()))),
    "cluster": (r"normalization.*inner cluster.*teams, [1-9] stages, shifted rows, ", (cross_entropy, (torch.randn(5, 2501).bfloat16(), torch.randint(0, 2501, (5, 1))))),
    "cluster, weights": (r"inner cluster.*teams, [1-9] stages, shifted rows, inputs 01 across", (layer_norm, (torch.randn(5, 2501), torch.randn(2501)))),
    "multipass": (r"inner multipass.*shifted rows, inputs 01 across", (layer_norm, (torch.randn(5, 20011).bfloat16(), torch.randn(20011).bfloat16()))),
    "row": (r"reduction.*inner.*split 1,.*shifted rows", (lambda a: (a * a).sum(-1), (torch.randn(6, 1031),))),
    "split row": (r"reduction.*inner.*split [2-9]\d*,.*shifted rows", (lambda a: a.mean(-1), (torch.randn(2, 20011),))),
    "warp, columns": (r"inner warp.*columns in.*shifted rows \(steady\)", (softmax_and_columns, (torch.randn(40, 33).bfloat16(),))),
    "block, columns": (r"inner block.*columns in.*shifted rows \(steady\), inputs 010 across", (norm_backward, (torch.rand(40, 67).bfloat16(), torch.rand(40, 67).bfloat16(), torch.rand(67).bfloat16()))),
    "cluster, columns": (r"inner cluster.*columns in.*shifted rows \(steady\)", (softmax_and_columns, (torch.randn(40, 259),))),
    "pointwise": (r"pointwise.*shifted rows, inputs 010 across", (gelu, (torch.randn(40, 131), torch.randn(131), torch.randn(40, 131)))),
}


def test_all_forms() -> None:
    schedules = run(case for _, case in FORMS.values())
    for name, (pattern, _) in FORMS.items():
        assert any(re.search(pattern, schedule) for schedule in schedules), f"{name} is not reached:\n" + "\n".join(schedules)
