"""What shares memory with what is eager's: results among themselves, results and inputs, bases of views, the same tensor twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
import torch.nn.functional as F
from fxfuser import execute
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

Function = Callable[[torch.Tensor], Any]
Tensors = list[torch.Tensor]

aten, prims = torch.ops.aten, torch.ops.prims

VIEWS: dict[str, Function] = {
    "view": lambda y: y.view(-1),
    "view to the same sizes": lambda y: y.view(y.shape),
    "t": lambda y: y.t(),
    "permute to the same order": lambda y: y.permute(0, 1),
    "item": lambda y: y[0],
    "rows": lambda y: y[1:3],
    "all rows": lambda y: y[:],
    "no rows": lambda y: y[2:2],
    "every second row": lambda y: y[::2],
    "every second column": lambda y: y[:, 1::2],
    "expand": lambda y: y.unsqueeze(1).expand(-1, 3, -1),
    "expand of a row": lambda y: y[:1].expand(4, -1),
    "expand to the same sizes": lambda y: y.expand(y.shape),
    "squeeze of nothing": lambda y: y.squeeze(0),
    "chain": lambda y: y.t()[1:].unsqueeze(0)[:, ::2],
    "diagonal": lambda y: y.diagonal(),
    "alias": lambda y: aten.alias(y),
    "reshape": lambda y: y.reshape(24),
    "a part": lambda y: torch.split(y, 3)[1],
    "a column": lambda y: torch.unbind(y, 1)[2],
    "as_strided": lambda y: y.as_strided((2, 3), (1, 2), 3),
    "another dtype": lambda y: y.view(torch.int32),
}
SAME: dict[str, Function] = {
    "contiguous": lambda y: y.contiguous(),
    "to": lambda y: y.to(torch.float32),
    "type_as": lambda y: y.type_as(y),
    "positive": lambda y: +y,
    "dropout when off": lambda y: F.dropout(y, 0.5, False),
}
COPIES: dict[str, Function] = {
    "clone": lambda y: y.clone(),
    "clone in order": lambda y: y.clone(memory_format=torch.contiguous_format),
    "_to_copy": lambda y: aten._to_copy(y),
    "to a copy": lambda y: y.to(torch.float32, copy=True),
    "lift_fresh_copy": lambda y: aten.lift_fresh_copy(y),
    "prims.clone": lambda y: prims.clone(y),
    "convert_element_type": lambda y: prims.convert_element_type(y, torch.float32),
    "prims.reshape": lambda y: prims.reshape(y, y.shape),
    "view_copy": lambda y: aten.view_copy(y, [24]),
    "t_copy": lambda y: aten.t_copy(y),
    "expand_copy": lambda y: aten.expand_copy(y, [4, 6]),
    "slice_copy": lambda y: aten.slice_copy(y, 0),
    "select_copy": lambda y: aten.select_copy(y, 0, 1),
    "alias_copy": lambda y: aten.alias_copy(y),
    "unsqueeze_copy": lambda y: aten.unsqueeze_copy(y, 0),
    "a part's copy": lambda y: aten.split_with_sizes_copy(y, [1, 3])[1],
    "reshape of a transpose": lambda y: y.t().reshape(24),
    "roll by nothing": lambda y: y.roll(0, 0),
    "roll by the size": lambda y: y.roll(6, 1),
    "flip of nothing": lambda y: y.flip([]),
    "cat of one": lambda y: torch.cat([y]),
    "pad by nothing": lambda y: torch.constant_pad_nd(y, [0, 0]),
    "sum over one": lambda y: y.view(1, 4, 6).sum(0),
    "amax over one": lambda y: y.view(1, 4, 6).amax(0),
    "native_dropout when off": lambda y: aten.native_dropout(y, 0.5, False)[0],
    "power of one": lambda y: y**1,
    "repeat of one": lambda y: y.repeat(1, 1),
}
KINDS: dict[str, Callable[[Function], Function]] = {
    "beside its source": lambda f: lambda x: (lambda y: (y, f(y)))(x * 2),
    "before its source": lambda f: lambda x: (lambda y: (f(y), y))(x * 2),
    "of an input": lambda f: lambda x: (f(x), x + 1),
    "twice": lambda f: lambda x: (lambda y: (f(y), f(y)))(x * 2),
    "of two equal values": lambda f: lambda x: (f(x * 2), f(x * 2)),
    "beside a view": lambda f: lambda x: (lambda y: (f(y)[..., :1], y[1]))(x * 2),
    "read again": lambda f: lambda x: (lambda y: (lambda z: (y, z, z[1:], z[1:] + 1))(f(y)))(x * 2),
    "of a matmul": lambda f: lambda x: (lambda y: (y, f(y), f(y) + 1))(torch.mm(x, torch.ones(6, 6))),
}


def shares_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() and a.untyped_storage().nbytes() > 0


def place(tensor: torch.Tensor) -> int:
    return tensor.storage_offset() * tensor.element_size()


def relations(tensors: Tensors) -> list[Any]:
    """Of each pair: one object, one memory, base of the other, distance in it. Of each tensor: its geometry."""
    pairs = []
    for i, a in enumerate(tensors):
        for b in tensors[i + 1 :]:
            shared = shares_memory(a, b)
            pairs.append((a is b, shared, a._base is b, b._base is a, place(a) - place(b) if shared else 0))
    return [pairs, [(tensor.shape, tensor.stride()) for tensor in tensors]]


def write_through(tensors: Tensors) -> list[Tensors]:
    """What all hold after a write through each in turn."""
    seen = []
    for number, tensor in enumerate(tensors):
        if tensor.numel() > 0 and not tensor.is_inference():
            tensor[(0,) * tensor.dim()] = number + 100
        seen.append([each.clone() for each in tensors])
    return seen


def check(function: Function, name: str, pre_dispatch: bool = False) -> None:
    gm = make_fx(function, pre_dispatch=pre_dispatch)(torch.randn(4, 6))
    for _ in range(2):
        ours = torch.randn(4, 6)
        eager = ours.clone()
        with torch.no_grad():
            got = [ours, *pytree.tree_leaves(execute(gm, ours, executor_parameters={"on_error": "raise"}))]
            want = [eager, *pytree.tree_leaves(gm(eager))]
            assert relations(got) == relations(want), name
            torch.testing.assert_close(got, want, equal_nan=True, msg=name)
            torch.testing.assert_close(write_through(got), write_through(want), equal_nan=True, msg=name)


def together(functions: list[Function]) -> Function:
    return lambda x: [function(x) for function in functions]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", [VIEWS, SAME, COPIES], ids=["views", "the same", "copies"])
def test_each_op(family: dict[str, Function], kind: str, launches: Callable[[], int]) -> None:
    names = list(family)
    for start in range(0, len(names), 8):  # a graph of several compiles as one
        some = [KINDS[kind](family[name]) for name in names[start : start + 8]]
        check(together(some), f"{names[start : start + 8]}, {kind}", pre_dispatch=family is SAME)  # else they are traced away
    assert launches() > 0


def random_function(seed: int) -> Function:
    """Ops on values made before, and a few of the values returned, some twice."""
    choose = random.Random(seed)
    plan: list[tuple[int, Function]] = []
    values = [torch.randn(4, 6)]
    for at in range(1, 9):
        family = choose.choice((VIEWS, SAME, COPIES, COPIES))
        function: Function = choose.choice([lambda y: y * 2, lambda y: y + 1, *choose.sample(list(family.values()), 4)])
        source = choose.randrange(max(0, at - 4), at)
        try:
            values.append(function(values[source]))
        except (RuntimeError, IndexError):  # not for this shape
            function = torch.neg
            values.append(torch.neg(values[source]))
        plan.append((source, function))
    returned = [choose.randrange(0, 9) for _ in range(5)]

    def run(x: torch.Tensor) -> Any:
        made = [x]
        for source, function in plan:
            made.append(function(made[source]))
        return tuple(made[at] for at in returned)

    return run


def test_random_graphs(launches: Callable[[], int]) -> None:
    for seed in range(24):
        check(random_function(seed), f"graph {seed}", pre_dispatch=seed % 2 == 1)
    assert launches() >= 24


def test_a_copy_that_only_the_next_op_reads_costs_nothing() -> None:
    gm = make_fx(lambda x: torch.mm((x * 2).clone(), x))(torch.randn(6, 6))
    x = torch.randn(6, 6)
    for _ in range(2):
        before = fxfuser.stats()
        torch.testing.assert_close(execute(gm, x), gm(x))
    after = fxfuser.stats()
    assert after["launches"]["host"] - before["launches"]["host"] == 1
    assert after["aten_steps"] - before["aten_steps"] == 1
