"""Shared by the frontend's tests: one op as a definition, run and compared with eager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import fxfuser
import torch
from fxfuser import FusionDefinition

Build = Callable[[FusionDefinition, Sequence[Any]], Any]


def host_launches() -> int:
    return int(fxfuser.stats()["launches"]["host"])


def defined(build: Build, inputs: Sequence[Any], static_sizes: bool = False) -> FusionDefinition:
    """A definition with one input for each tensor (or number) and what `build` returns as its outputs."""
    with FusionDefinition() as fd:
        handles = [fd.from_pytorch(value, static_sizes) if isinstance(value, torch.Tensor) else fd.define_scalar(dtype=_dtype(value)) for value in inputs]
        outputs = build(fd, handles)
        for output in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
            fd.add_output(output)
    return fd


def _dtype(value: Any) -> Any:
    kinds = {bool: fxfuser.DataType.Bool, int: fxfuser.DataType.Int, complex: fxfuser.DataType.ComplexDouble}
    return kinds.get(type(value), fxfuser.DataType.Double)


def again(fd: FusionDefinition) -> FusionDefinition:
    """The definition that the printed text makes."""
    namespace: dict[str, Any] = {"FusionDefinition": FusionDefinition, "DataType": fxfuser.DataType, "torch": torch}
    exec(str(fd), namespace)
    with FusionDefinition() as copy:
        namespace[f"nvfuser_fusion_id{fd.id()}"](copy)
    return copy


def check(build: Build, inputs: Sequence[Any], expected: Any, launches: int | None = None, **tolerance: float) -> list[torch.Tensor]:
    """Runs, compares with `expected`, and asserts that generated kernels ran (exactly `launches`, where given) and that the printed
    text makes the same fusion."""
    fd = defined(build, inputs)
    before = host_launches()
    results = fd.execute(inputs, on_error="raise")
    ran = host_launches() - before
    assert (ran > 0) if launches is None else (ran == launches), f"{ran} kernels were launched"
    wanted = list(expected) if isinstance(expected, (list, tuple)) else [expected]
    assert len(results) == len(wanted)
    for ours, theirs in zip(results, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, equal_nan=True, **tolerance)
    assert again(fd).id() == fd.id()
    return results
