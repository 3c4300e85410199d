"""Functions and derivatives of one variable keep their relative precision where they are tiny, or far out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fxfuser import _C, execute
from numerics import ulp
from torch.fx.experimental.proxy_tensor import make_fx

# Derivatives, with what they take beside the gradient and the point.
DERIVATIVES: dict[str, tuple[Any, ...]] = {
    "softplus_backward": (1, 20),
    "log_sigmoid_backward": (None,),  # its buffer
    "elu_backward": (1, 1, 1, False),
    "silu_backward": (),
    "mish_backward": (),
    "hardsigmoid_backward": (),
    "hardswish_backward": (),
    "hardtanh_backward": (-1, 1),
    "leaky_relu_backward": (0.1, False),
    "threshold_backward": (0.1,),
}


def unary_rows() -> list[str]:
    """ATen overloads of pointwise rows that take one tensor and nothing that has no default."""
    found = []
    for row in json.loads(_C.ops_json()):
        for target in row["targets"] if row["kind"] == "pointwise" else ():
            namespace, name, overload = target.split(".")
            if namespace != "aten" or overload != "default":
                continue
            arguments = getattr(torch.ops.aten, name).default._schema.arguments
            if str(arguments[0].type) == "Tensor" and all(argument.has_default_value() for argument in arguments[1:]):
                found.append(name)
    return found


def points() -> torch.Tensor:
    far = torch.logspace(-8, 1.94, 600)
    return torch.cat([-far.flip(0), far])


def graph_of(overload: Any) -> torch.fx.GraphModule:
    """One call, as it is: a trace would open some."""
    graph = torch.fx.Graph()
    graph.output(graph.call_function(overload, (graph.placeholder("x"),)))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def check(name: str, call: Callable[[torch.Tensor], torch.Tensor], gm: torch.fx.GraphModule, launches: Callable[[], int]) -> None:
    x = points()
    eager, reference = call(x), call(x.double())
    before = launches()
    ours = execute(gm, x, executor_parameters={"on_error": "raise"})
    assert launches() == before + 1, name
    seen = torch.isfinite(reference) & torch.isfinite(eager) & (reference.abs() > 1e-30)  # below, numbers are subnormal
    one = ulp(reference, torch.float32)
    bound = torch.maximum(4 * (eager.double() - reference).abs(), 16 * one)
    bad = seen & ((ours.double() - reference).abs() > bound)
    # Where a function crosses zero a rounding of its argument shows; a few points may lie there.
    assert bad.sum() <= 2, f"{name}: {int(bad.sum())} points, first at {x[bad][0]}: {ours[bad][0]}, float64 says {reference[bad][0]}"


@pytest.mark.parametrize("name", sorted(DERIVATIVES))
def test_derivatives(name: str, launches: Callable[[], int]) -> None:
    overload = getattr(torch.ops.aten, name).default

    def call(x: torch.Tensor) -> torch.Tensor:
        grad = torch.full_like(x, 1.1)
        more = (torch.exp(-x.abs()),) if name == "log_sigmoid_backward" else DERIVATIVES[name]
        if name == "elu_backward":
            return overload(grad, *DERIVATIVES[name], x)
        return overload(grad, x, *more)

    check(name, call, make_fx(call)(points()), launches)


def test_functions_of_one_variable(launches: Callable[[], int]) -> None:
    ran = 0
    for name in unary_rows():
        overload = getattr(torch.ops.aten, name).default
        try:
            floats = overload(torch.ones(1)).is_floating_point()
        except (RuntimeError, NotImplementedError):
            continue  # not for floating-point numbers
        if floats:
            check(name, overload, graph_of(overload), launches)
            ran += 1
    assert ran >= 35
