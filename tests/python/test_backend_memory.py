"""A boxed call lets go of each input after its last use, and of none that it still needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from fxfuser.backend.compiler import Boxed
from torch.fx.experimental.proxy_tensor import make_fx
from torch.multiprocessing.reductions import StorageWeakRef

alive: list[list[bool]] = []
watched: list[StorageWeakRef] = []


@torch.library.custom_op("fxfuser_memory_tests::look", mutates_args=())
def look(x: torch.Tensor) -> torch.Tensor:
    """Notes which of the watched storages live while this step runs."""
    alive.append([not one.expired() for one in watched])
    return x.clone()


@look.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    alive.clear()
    watched.clear()
    yield


def function(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, unused: torch.Tensor) -> tuple[torch.Tensor, ...]:
    first = look(torch.sin(a) * 2 + 1)
    second = look(torch.cos(b) * first)
    return second + c, c


def test_inputs_die_after_their_last_use(launches: Callable[[], int]) -> None:
    shapes = [torch.randn(16, 16) for _ in range(4)]
    boxed = Boxed(make_fx(function)(*shapes), {})
    wanted = function(*shapes)
    boxed([t.clone() for t in shapes])  # discovers the plan
    for _ in range(2):
        alive.clear()
        inputs = [t.clone() for t in shapes]
        watched[:] = [StorageWeakRef(tensor.untyped_storage()) for tensor in inputs]
        results = boxed(inputs)
        torch.testing.assert_close(results, wanted)
        assert not alive[0][0] and alive[0][2]  # while the first look runs
        assert not any(alive[1][:2]) and alive[1][2]
        assert watched[3].expired() and not watched[2].expired()  # one is read by nobody, one is returned
    assert launches() >= 6


def test_written_and_returned_inputs_stay(launches: Callable[[], int]) -> None:
    def write(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = look(torch.exp(x) + y)
        x.add_(z)
        return z * 2, y

    start = torch.randn(8, 8), torch.randn(8, 8)
    boxed = Boxed(make_fx(write)(*(t.clone() for t in start)), {})
    for _ in range(3):
        x, y, a, b = (t.clone() for t in (*start, *start))
        torch.testing.assert_close(boxed([x, y]), write(a, b))
        torch.testing.assert_close(x, a)
    assert launches() >= 3


def test_a_result_of_another_shape_goes_on_without_them(launches: Callable[[], int]) -> None:
    def choose(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        kept = torch.ops.aten.nonzero.default(torch.relu(x))
        return torch.sin(kept.float()).sum(0) + torch.tanh(y)[0, :1]

    x, y = torch.randn(6, 7), torch.randn(3, 2)
    boxed = Boxed(make_fx(choose, tracing_mode="real")(x, y), {})
    for _ in range(6):
        x, y = torch.randn(6, 7), torch.randn(3, 2)
        torch.testing.assert_close(boxed([x.clone(), y.clone()]), choose(x, y))
    assert launches() >= 6
