"""Modules that are lowered by tracing: sizes that depend on data, results that are no tensors, numbers as arguments."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from numerics import check_close
from torch.fx import symbolic_trace

RAISE = {"on_error": "raise"}


def masked_write(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = x * 2
    return torch.index_put(y, (mask,), torch.zeros(())) + 1


DATA_DEPENDENT: dict[str, Callable[..., Any]] = {
    "mask": lambda x, mask: x[mask] * 2 + 1,
    "computed mask": lambda x, mask: torch.relu(x[x > 0] - 0.5) + mask.sum(),
    "masked write": masked_write,
    "nonzero": lambda x, mask: (torch.nonzero(mask) + 1) * 2,
    "unique": lambda x, mask: torch.unique(x.round(), return_counts=True),
    "repeat": lambda x, mask: torch.repeat_interleave(x, mask[:, 0].long() + 1, 0) * 2 + 1,
    "masked_select": lambda x, mask: torch.masked_select(x, mask).sin().sum(),
    "item": lambda x, mask: x * x.sum().item() + 1,
    "size of the result": lambda x, mask: (x[mask].shape, x[mask] * 2, x[mask].size(0)),
}


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_sizes_that_depend_on_data(name: str, launches: Callable[[], int]) -> None:
    gm = symbolic_trace(DATA_DEPENDENT[name])
    for step in range(4):
        x = torch.randn(6, 5)
        mask = torch.rand(6, 5) < 0.3 * step  # nothing in the first step
        check_close(execute(gm, x, mask, executor_parameters=RAISE), gm(x, mask), f"{name}, step {step}")
    assert launches() > 0, "the rest of the graph is fused"


def test_exported_programs_with_sizes_that_depend_on_data(launches: Callable[[], int]) -> None:
    class Select(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(x[x > 0] * 2) + 1

    x = torch.randn(40)
    gm = torch.export.export(Select(), (x,)).module()
    for _ in range(3):
        x = torch.randn(40)
        check_close(execute(gm, x, executor_parameters=RAISE), gm(x), "exported")
    assert launches() > 0


class Facts(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return {
            "dtype": x.dtype, "shape": x.shape, "device": x.device, "none": None, "text": "text", "tensor": x * 2 + 1, "size": x.size(0),
            "number": 1.5, "flag": True, "complex": 2 + 3j, "layout": x.layout, "nested": [(x.shape, x.dtype), x.shape[1:]], "max": torch.max(x, 0),
        }


def test_results_that_are_no_tensors() -> None:
    gm = symbolic_trace(Facts())
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.randn(5, 4, dtype=dtype)
        for _ in range(2):
            ours, eager = execute(gm, x), gm(x)
            check_close(ours, eager, "facts")
            assert {key: type(value) for key, value in ours.items()} == {key: type(value) for key, value in eager.items()}
            assert type(ours["nested"][0][0]) is torch.Size
    only = symbolic_trace(lambda x: x.dtype)
    assert execute(only, torch.ones(2)) is torch.float32


def test_imported_graphs_that_return_objects() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.ops.aten.relu.default, (x,))
    graph.output((torch.bfloat16, y, None, "text", torch.device("cpu"), [2, 1.5, True], {"a": torch.strided, "b": y}))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    value = torch.randn(3)
    for _ in range(2):
        ours, eager = execute(gm, value), gm(value)
        check_close(ours, eager, "objects")
        assert list(map(type, ours)) == list(map(type, eager))


NUMBERS: dict[str, Callable[..., Any]] = {
    "times": lambda x, s: torch.relu(x * s + 1),
    "alpha": lambda x, s: torch.add(x, x, alpha=s) * 2,
    "clamp": lambda x, s: x.clamp(max=s) + s,
    "compare": lambda x, s: torch.where(x > s, x, s) * 2,
    "arithmetic": lambda x, s: x * (s * 2 + 1) - s / 4,
    "norm": lambda x, s: torch.nn.functional.layer_norm(x, (4,)) * s,
    "returned": lambda x, s: (x * s + 1, s, s + 1),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32], ids=str)
def test_numbers_cost_no_compile_each(name: str, dtype: torch.dtype, launches: Callable[[], int]) -> None:
    if name in ("norm", "alpha") and dtype is torch.int32:
        pytest.skip("eager refuses it for integers")
    gm = symbolic_trace(NUMBERS[name])
    x = torch.randn(3, 4).mul(3).to(dtype)
    for kind in (float, int):
        values = [kind(value) for value in (2, 3, -1, 0, 1, 5, 7, 100)]
        execute(gm, x, values[0], executor_parameters=RAISE)
        compiles = fxfuser.stats()["compiles"]
        for value in values:
            check_close(execute(gm, x, value, executor_parameters=RAISE), gm(x, value), f"{name} {value!r} {dtype}")
        assert fxfuser.stats()["compiles"] == compiles, f"{name} with {kind.__name__}"
    assert launches() > 0


def test_special_numbers() -> None:
    gm = symbolic_trace(lambda x, s: x * s + 1)
    x = torch.randn(4)
    for value in (1.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-300, True, False, 2**40, 1e300):
        check_close(execute(gm, x, value), gm(x, value), repr(value))


def test_numbers_that_decide_what_is_computed(launches: Callable[[], int]) -> None:
    gm = symbolic_trace(lambda x, dim: (x.sum(dim) * 2, x.unsqueeze(dim) + 1))
    x = torch.randn(3, 4)
    for dim in (0, 1, -1, 0):
        check_close(execute(gm, x, dim, executor_parameters=RAISE), gm(x, dim), str(dim))
    assert launches() > 0


def test_a_thousand_numbers_are_bounded() -> None:
    gm = symbolic_trace(lambda x, s: torch.tanh(x * s) + 1)
    x = torch.randn(16)
    execute(gm, x, 0.5)
    compiles, handles = fxfuser.stats()["compiles"], fxfuser._C.handle_count()
    for step in range(1000):
        execute(gm, x, 1.0 + step / 7)
    gc.collect()
    assert fxfuser.stats()["compiles"] == compiles
    assert fxfuser._C.handle_count() <= handles
    check_close(execute(gm, x, 0.25), gm(x, 0.25), "afterwards")


def test_a_number_that_tracing_wrote_into_the_graph_is_told_once() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.randn(3)
    gm = make_fx(lambda x, s: x * s)(x, 2.0)
    execute(gm, x, 2.0)
    execute(gm, x, 2.0)
    with pytest.warns(UserWarning, match="argument 1 is 3.0 and was 2.0"):
        check_close(execute(gm, x, 3.0), gm(x, 3.0), "as eager, the traced value")
    execute(gm, x, 4.0)
    with pytest.raises(ValueError, match="argument 1 is 5.0 and was 2.0"):
        execute(gm, x, 5.0, executor="strictly_nvfuser")


class Formats(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.transpose(1, 2).contiguous() * 2
        return y.relu(), (y + 1).clone() * 3, torch.empty_like(x).fill_(2.0) + x


def test_words_that_a_schema_has_as_defaults_are_those_that_a_call_gives() -> None:
    """The dispatcher keeps a memory format as a number: left out, it means what it means written out."""
    x = torch.randn(2, 3, 4, 5)
    gm = torch.export.export(Formats(), (x,)).module()
    assert any(node.target is torch.ops.aten.contiguous.default and not node.kwargs and len(node.args) == 1 for node in gm.graph.nodes)
    reasons = [node["reason"] for node in fxfuser.explain(gm, x).data["nodes"]]
    assert not [reason for reason in reasons if "memory_format" in reason], reasons
    before = fxfuser.stats()["launches"]["host"]
    for ours, eager in zip(fxfuser.execute(gm, x), Formats()(x), strict=True):
        assert torch.equal(ours, eager) and ours.stride() == eager.stride()
    assert fxfuser.stats()["launches"]["host"] > before
