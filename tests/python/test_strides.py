"""Strides are eager's at every point of a fusion: chains of ops over inputs of unusual layouts, each result looked at."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import fxfuser
import pytest
import torch
import torch.nn.functional as F
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

Step = Callable[[torch.Tensor], torch.Tensor]

LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "contiguous": lambda: torch.randn(4, 6),
    "transposed": lambda: torch.randn(6, 4).t(),
    "permuted": lambda: torch.randn(2, 6, 4).permute(2, 0, 1),
    "channels last": lambda: torch.randn(2, 4, 5, 6).to(memory_format=torch.channels_last),
    "a dim of size 1": lambda: torch.randn(4, 1, 6).transpose(0, 2),
    "every second": lambda: torch.randn(8, 12)[::2, ::2],
    "expanded": lambda: torch.randn(1, 6).expand(4, 6),
}
STEPS: dict[str, Step] = {
    "add": lambda x: x + 1,
    "contiguous": lambda x: x.contiguous(),
    "clone": lambda x: x.clone(),
    "plain clone": lambda x: x.clone(memory_format=torch.contiguous_format),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0),
    "masked fill": lambda x: x.masked_fill(x > 0, 1.0),
    "broadcast mask": lambda x: x.masked_fill(x[:1] > 0, 1.0),
    "power of a number": lambda x: 2**x,
    "power": lambda x: x**2,
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "sum": lambda x: x.sum(0, keepdim=True),
    "amax": lambda x: x.amax(1, keepdim=True),
    "max": lambda x: x.max(1)[0],
    "cat": lambda x: torch.cat([x, x], 1),
    "stack": lambda x: torch.stack([x, x], 1),
    "pad": lambda x: F.pad(x, (1, 1)),
    "tril": lambda x: x.tril(),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(0),
    "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "cast": lambda x: x.half().float(),
    "gelu": lambda x: F.gelu(x),
    "zeros_like": lambda x: torch.zeros_like(x) + x,
    "new_ones": lambda x: x.new_ones(x.shape) * x,
    "transpose": lambda x: x.transpose(-1, -2),
    "expand": lambda x: x[:1].expand(x.shape),
    "slice": lambda x: x[:, ::2],
    "reshape": lambda x: x.reshape(-1, x.shape[-1]).reshape(x.shape),
    "compare": lambda x: (x == x[:1]).float(),
    "gather": lambda x: torch.gather(x, 0, torch.zeros(x.shape, dtype=torch.long)),
    "mix": lambda x: x.square().sum(dim=(0, 1), keepdim=True) + x,
}


# Ops whose eager implementation clones its input or reads it through an iterator, which keeps the input's order.
ORDER_KEPT: dict[str, Step] = {
    "pad by nothing": lambda x: torch.constant_pad_nd(x, []),
    "pad by less": lambda x: torch.constant_pad_nd(x, [-1, -1]),
    "pad by more": lambda x: torch.constant_pad_nd(x, [1, -1]),
    "index first": lambda x: x[torch.tensor([1, 0, 1])],
    "index second": lambda x: x[:, torch.tensor([0, 0])],
    "index last": lambda x: x[..., torch.tensor([1, 0])],
    "permuted index": lambda x: x[torch.tensor([[1, 0], [0, 1], [1, 1]]).t()],
}


def results_of(steps: list[Step], x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    found = []
    for step in steps:
        x = step(x)
        found.append(x)
    return tuple(found)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_step(layout: str) -> None:
    x = LAYOUTS[layout]()
    gm = make_fx(lambda x: tuple(step(x) for step in STEPS.values()))(x)
    before = fxfuser.stats()["launches"]["host"]
    check_close(execute(gm, x, executor_parameters={"on_error": "raise"}), gm(x), layout)
    assert fxfuser.stats()["launches"]["host"] > before


@pytest.mark.parametrize("name", ORDER_KEPT)
def test_order_of_the_input_is_kept(name: str, launches: Callable[[], int]) -> None:
    step = ORDER_KEPT[name]
    for layout, make in LAYOUTS.items():
        x = make() if layout != "a dim of size 1" else torch.randn(4, 2, 6).transpose(0, 2)
        for traced in (x, x.contiguous()):  # verdicts are of the call's layout, not of the trace's
            gm = make_fx(lambda x: (step(x), x * 2, step(x * 2)))(traced)
            check_close(execute(gm, x, executor_parameters={"on_error": "raise"}), gm(x), f"{name} of {layout}, traced on strides {traced.stride()}")
    assert launches() > 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_chains(layout: str) -> None:
    choose = random.Random(layout)
    launches = 0
    for _ in range(12):
        names = [choose.choice(list(STEPS)) for _ in range(choose.randrange(2, 5))]
        x = LAYOUTS[layout]()
        try:
            gm = make_fx(partial(results_of, [STEPS[name] for name in names]))(x)
        except (RuntimeError, IndexError, ValueError):
            continue  # eager refuses these shapes
        before = fxfuser.stats()["launches"]["host"]
        check_close(execute(gm, x, executor_parameters={"on_error": "raise"}), gm(x), f"{layout}: {', '.join(names)}")
        launches += fxfuser.stats()["launches"]["host"] - before
    assert launches >= 10


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 1, 4, 5), (1, 3, 1, 1), (2, 3, 4, 5, 2), (0, 3, 4, 5)], ids=str)
def test_copies_into_channels_last(shape: tuple[int, ...], launches: Callable[[], int]) -> None:
    wanted = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    x = torch.randn(shape)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        copy = torch.tanh(x).clone(memory_format=wanted)
        back = copy.clone(memory_format=torch.contiguous_format)
        return copy, copy * 2, copy.sum(1), back + 1, copy.transpose(0, 1).exp()

    for given in (x, x.to(memory_format=wanted), x.transpose(2, 3)):
        gm = make_fx(function)(given)
        check_close(execute(gm, given, executor_parameters={"on_error": "raise"}), gm(given), str(shape))
        report = fxfuser.explain(gm, given)
        assert all(node["status"] != "aten" for node in report.nodes())
    assert launches() >= (3 if x.numel() else 0)
