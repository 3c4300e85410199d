"""One trace of a module with ``make_fx``: dispatcher overloads over (state, leaves), numbers as inputs where they can be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.utils import _pytree as pytree

Symbolic = (torch.SymInt, torch.SymFloat, torch.SymBool)
# What a module may return beside tensors: objects that no later call can change.
Fixed = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)


class ValuesMatter:
    """Stands for a trace that the values of number arguments decide."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """``module(state, leaves)`` returns what is computed as a flat list; ``assemble`` makes the original's result of it."""

    module: torch.fx.GraphModule
    assemble: Callable[[list[Any]], Any]


def is_number(leaf: Any) -> bool:
    """A number that may be an input of a lowered graph: an int64 or a finite float."""
    if type(leaf) is int:
        return -(2**63) <= leaf < 2**63
    return type(leaf) is float and math.isfinite(leaf)


class _Form:
    """How a result is made of computed values and fixed objects."""

    def __init__(self, result: Any) -> None:
        leaves, self.spec = pytree.tree_flatten(result, is_leaf=lambda item: isinstance(item, torch.Size))  # else it becomes a tuple
        self.parts: list[tuple[str, Any]] = []
        self.computed: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, (torch.Tensor, *Symbolic)):
                self.parts.append(("value", None))
                self.computed.append(leaf)
            elif isinstance(leaf, torch.Size) and any(isinstance(size, Symbolic) for size in leaf):
                self.parts.append(("size", len(leaf)))
                self.computed.extend(leaf)
            elif isinstance(leaf, Fixed):
                self.parts.append(("fixed", leaf))
            else:
                raise TypeError(f"the module returns a {type(leaf).__name__}")

    def assemble(self, values: list[Any]) -> Any:
        given = iter(values)
        leaves = []
        for kind, fact in self.parts:
            if kind == "value":
                leaves.append(next(given))
            elif kind == "size":
                leaves.append(torch.Size([next(given) for _ in range(fact)]))
            else:
                leaves.append(fact)
        return pytree.tree_unflatten(leaves, self.spec)


class _Inputs:
    """Fake tensors and symbolic numbers in the place of a call's."""

    def __init__(self, by_kind: bool) -> None:
        self.by_kind = by_kind
        self.env = ShapeEnv()
        self.mode = FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=True, shape_env=self.env, static_shapes=True)
        self.symbols: set[Any] = set()

    def stand_in(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.mode.from_tensor(value)
        if not self.by_kind or not is_number(value):
            return value
        from torch._dynamo.source import ConstantSource  # late: all of torch._dynamo comes with it, as it does with make_fx

        source = ConstantSource(f"number{len(self.symbols)}")
        symbol = self.env.create_unspecified_symbol(value, source, DimDynamic.DYNAMIC)
        self.symbols.add(symbol)
        make = self.env.create_symintnode if type(value) is int else self.env.create_symfloatnode
        return make(symbol, hint=value, source=source)

    def decided(self) -> bool:
        """True when the trace asked for something of a number that another number might answer differently."""
        expressions = [guard.expr for guard in self.env.guards]
        expressions += [check.expr for checks in self.env.deferred_runtime_asserts.values() for check in checks]
        return any(expression.free_symbols & self.symbols for expression in expressions) or bool(self.symbols & self.env.replacements.keys())


def trace(gm: torch.fx.GraphModule, state: dict[str, torch.Tensor], leaves: list[Any], spec: Any, by_kind: bool) -> Lowered | str | ValuesMatter:
    """Traces ``gm`` for these inputs. ``by_kind``: numbers become inputs, and ValuesMatter says that they can't."""
    from fxfuser import fx_import

    names = list(state)
    form: _Form | None = None

    def function(values: list[torch.Tensor], inputs: list[Any]) -> list[Any]:
        nonlocal form
        positional, keyword = pytree.tree_unflatten(inputs, spec)
        form = _Form(torch.func.functional_call(gm, dict(zip(names, values, strict=True)), positional, keyword))
        return form.computed

    inputs = _Inputs(by_kind)
    try:
        with torch.no_grad():
            stand_ins = [inputs.stand_in(tensor) for tensor in state.values()], [inputs.stand_in(leaf) for leaf in leaves]
            with inputs.mode:
                traced = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(*stand_ins)
        if inputs.decided():
            return ValuesMatter()
        fx_import.import_graph(traced)
    except Exception as error:  # whatever tracing raises is the reason
        return ValuesMatter() if inputs.symbols else f"{type(error).__name__}: {error}".splitlines()[0]
    assert form is not None
    form.computed = []  # fakes
    return Lowered(traced, form.assemble)
