"""make_traced: one trace for each structure of the arguments."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fxfuser import make_traced

Launches = Callable[[], int]


class Counted:
    """A function that counts how often it is run as Python, which is how often it is traced."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn, self.count = fn, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return self.fn(*args, **kwargs)


def test_equal_structures_are_traced_once(launches: Launches) -> None:
    fn = Counted(lambda a, b: torch.sigmoid(a) * b)
    traced = make_traced(fn)
    for _ in range(3):
        a, b = torch.randn(3, 4), torch.randn(3, 4)
        torch.testing.assert_close(traced(a, b, executor="nvfuser"), torch.sigmoid(a) * b)
    torch.testing.assert_close(traced(a, b), torch.sigmoid(a) * b)  # aten
    assert fn.count == 1 and launches() == 3


@pytest.mark.parametrize(
    "other",
    [
        lambda x: (x.double(), 2.0), lambda x: (x[:2], 2.0), lambda x: (x[0], 2.0), lambda x: (x.t().contiguous().t(), 2.0), lambda x: (x, 3.0), lambda x: (x, 2),
        lambda x: (x, x), lambda x: (x, torch.tensor(2.0)),
    ],
    ids=["dtype", "shape", "rank", "strides", "number", "kind of number", "same tensor", "tensor for number"],
)
def test_other_structures_are_traced_anew(other: Callable[[Any], Any], launches: Launches) -> None:
    fn = Counted(lambda a, b: torch.sigmoid(a) * b)
    traced = make_traced(fn)
    x = torch.randn(3, 4)
    traced(x, 2.0, executor="strictly_nvfuser")
    args = other(x)
    for _ in range(2):
        torch.testing.assert_close(traced(*args, executor="strictly_nvfuser"), torch.sigmoid(args[0]) * args[1])
    assert fn.count == 2 and launches() == 3


def test_nested_arguments_keywords_and_results(launches: Launches) -> None:
    def inner(a: torch.Tensor, *, more: dict[str, Any], scale: float = 1.0) -> dict[str, Any]:
        return {"sum": a + more["b"], "rest": (a * scale, None, [more["n"]])}

    fn = Counted(inner)
    traced = make_traced(fn)
    a, b = torch.randn(5), torch.randn(5)
    for executor in ("aten", "nvfuser"):
        out = traced(a, more={"b": b, "n": 3}, scale=2.0, executor=executor)
        torch.testing.assert_close(out["sum"], a + b)
        torch.testing.assert_close(out["rest"][0], a * 2.0)
        assert out["rest"][1] is None and out["rest"][2] == [3] and isinstance(out["rest"], tuple)
    assert fn.count == 1 and launches() >= 1
    traced(a, more={"b": b, "n": 4})
    assert fn.count == 2


def test_executor_parameters_reach_execute(launches: Launches) -> None:
    traced = make_traced(torch.exp)
    x = torch.randn(4)
    torch.testing.assert_close(traced(x, executor="nvfuser", executor_parameters={"allow_single_op_fusion": False}), x.exp())
    assert launches() == 0
    torch.testing.assert_close(traced(x, executor="nvfuser", executor_parameters="default"), x.exp())
    assert launches() == 1


def test_what_a_function_closes_over_counts() -> None:
    factor: Any = 2.0

    def fn(x: torch.Tensor) -> torch.Tensor:
        return x * factor

    traced = make_traced(fn)
    x = torch.randn(4)
    for factor in (2.0, 3.0, torch.full((4,), 5.0), torch.full((4,), 6.0)):
        torch.testing.assert_close(traced(x, executor="nvfuser"), x * factor)


def test_partials_and_methods() -> None:
    class Scale(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("factor", torch.tensor(2.0))

        def double(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor

    x, model = torch.randn(4), Scale()
    method, partial = make_traced(model.double), make_traced(functools.partial(torch.mul, model.factor))
    for factor in (2.0, 3.0):
        model.factor = torch.tensor(factor)
        torch.testing.assert_close(method(x, executor="nvfuser"), x * factor)
        torch.testing.assert_close(partial(x, executor="nvfuser"), x * 2.0)


def test_threads_share_the_traces() -> None:
    fn = Counted(lambda x: torch.softmax(x, -1) * 2)
    traced, failures = make_traced(fn), []

    def work() -> None:
        try:
            for size in range(2, 8):
                x = torch.randn(3, size)
                torch.testing.assert_close(traced(x, executor="nvfuser"), torch.softmax(x, -1) * 2)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert fn.count == 6


def test_modules(launches: Launches) -> None:
    model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Dropout(0.5), torch.nn.GELU()).eval()
    traced = make_traced(model)
    x = torch.randn(3, 8)
    with torch.no_grad():
        torch.testing.assert_close(traced(x, executor="nvfuser"), model(x))
        model[0].weight = torch.nn.Parameter(torch.rand(8))
        torch.testing.assert_close(traced(x, executor="nvfuser"), model(x))
        model[0].bias.add_(1)
        torch.testing.assert_close(traced(x, executor="nvfuser"), model(x))
    assert launches() >= 3


def test_many_structures_stay_bounded() -> None:
    from fxfuser import traced as module

    fn = Counted(torch.sin)
    traced = make_traced(fn)
    for size in range(1, module._MAX_TRACES + 2):
        traced(torch.randn(size))
    traced(torch.randn(module._MAX_TRACES + 1))
    assert fn.count == module._MAX_TRACES + 1
    traced(torch.randn(1))  # the oldest is gone
    assert fn.count == module._MAX_TRACES + 2


def test_errors_are_the_functions_own() -> None:
    traced = make_traced(lambda a, b: a + b)
    with pytest.raises(RuntimeError, match="3.*4|4.*3|size"):
        traced(torch.randn(3), torch.randn(4))
    with pytest.raises(ValueError, match="aten.*nvfuser"):
        traced(torch.randn(3), torch.randn(3), executor="other")


def test_what_a_function_writes_is_written_once(launches: Launches) -> None:
    """Tracing must not run it on the caller's tensors: arguments, what it closes over, and buffers of a module."""
    kept = torch.zeros(3)

    def fn(x: torch.Tensor) -> torch.Tensor:
        kept.add_(1)
        return x.mul_(2).exp() * 0.5

    x = torch.rand(3)
    before, traced = x.clone(), make_traced(fn)
    for call in (1, 2):
        result = traced(x, executor="nvfuser")
        torch.testing.assert_close(x, before * 2**call)
        torch.testing.assert_close(result, x.exp() * 0.5)
        torch.testing.assert_close(kept, torch.full((3,), float(call)))
    norm = torch.nn.BatchNorm1d(4)
    make_traced(norm)(torch.rand(5, 4), executor="nvfuser")
    assert norm.num_batches_tracked == 1
    x = torch.rand(3)
    before = x.clone()
    torch.testing.assert_close(make_traced(lambda x: x.mul_(2).exp() * 0.5)(x, executor="nvfuser"), (before * 2).exp() * 0.5)
    torch.testing.assert_close(x, before * 2)
    assert launches() > 0


def test_an_argument_that_cannot_be_hashed_is_named() -> None:
    with pytest.raises(TypeError, match="one can't be hashed: unhashable type: 'set'"):
        make_traced(lambda x, words: x * len(words))(torch.rand(3), {"a", "b"})
