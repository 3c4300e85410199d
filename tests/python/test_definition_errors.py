"""The frontend of 2022: what a definition and its inputs are refused for, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from definitions import host_launches
from fxfuser import DataType, Fusion, FusionDefinition


def _body(function: Callable[[FusionDefinition], Any]) -> Callable[[], Any]:
    def run() -> None:
        with FusionDefinition() as fd:
            function(fd)

    return run


def _foreign(fd: FusionDefinition) -> None:
    with FusionDefinition() as other:
        handle = other.define_tensor(1)
        other.add_output(handle)
    fd.ops.neg(handle)


ERRORS: list[tuple[str, Callable[[FusionDefinition], Any], type[Exception], str]] = [
    ("sizes that are neither", lambda fd: fd.define_tensor([4, -1], [False, False]), RuntimeError, r"size 4 of dim 0 is neither broadcast\(1\) or symbolic\(-1\)"),
    ("lengths of sizes and strides", lambda fd: fd.define_tensor(sizes=[4, 5], strides=[1]), RuntimeError, "2 sizes, 1 strides"),
    ("lengths of sizes and contiguity", lambda fd: fd.define_tensor([-1, -1], [True]), RuntimeError, "2 sizes and 1 contiguity flags"),
    ("a size of 0", lambda fd: fd.define_tensor(sizes=[0], strides=[1]), RuntimeError, "greater than 0, dim 0 has 0"),
    ("two forms at once", lambda fd: fd.define_tensor(2, sizes=[4], strides=[1]), TypeError, "define_tensor takes"),
    ("an unknown keyword", lambda fd: fd.define_tensor(2, colour="red"), TypeError, "colour"),
    ("is_cpu with dims", lambda fd: fd.define_tensor(1, DataType.Float, True), RuntimeError, "CPU non-scalar tensor is not supported!"),
    ("a scalar of Half", lambda fd: fd.define_scalar(DataType.Half), RuntimeError, "Dtype is not supported: Half"),
    ("a constant that is no number", lambda fd: fd.define_constant("a"), TypeError, "bool, int, float or complex"),
    ("an unknown op", lambda fd: fd.ops.no_such_op(1), AttributeError, "no_such_op"),
    ("too many arguments", lambda fd: fd.ops.neg(fd.define_tensor(1), 1, 2), TypeError, r"fd.ops.neg\(arg\) takes at most 1 arguments, 3 were given"),
    ("a missing argument", lambda fd: fd.ops.add(fd.define_tensor(1)), TypeError, "lacks its argument 'other'"),
    ("an unknown keyword of an op", lambda fd: fd.ops.add(fd.define_tensor(1), other=1, beta=2), TypeError, "no argument 'beta'"),
    ("an argument given twice", lambda fd: fd.ops.add(fd.define_tensor(1), 1, other=1), TypeError, "'other' is given twice"),
    ("a wrong kind", lambda fd: fd.ops.sum(fd.define_tensor(1), "rows"), TypeError, r"fd.ops.sum\(arg, axes, .*does not take \(T0, 'rows'"),
    ("a torch tensor as argument", lambda fd: fd.ops.add(fd.define_tensor(1), torch.ones(2)), TypeError, "an argument is a Tensor"),
    ("an integer beyond 64 bits", lambda fd: fd.ops.add(fd.define_tensor(1), 1 << 70), TypeError, "64 bits"),
    ("a scalar where only tensors go", lambda fd: fd.ops.gelu(fd.define_scalar()), TypeError, "fd.ops.gelu takes no Scalar without a Tensor"),
    ("a handle of another definition", _foreign, RuntimeError, "T0 belongs to another definition"),
    ("broadcast dims that descend", lambda fd: fd.ops.broadcast_in_dim(fd.define_tensor(2), [2, 3, 4], [1, 0]), RuntimeError, "not strictly ascending: 0 after 1"),
    ("broadcast dims out of range", lambda fd: fd.ops.broadcast_in_dim(fd.define_tensor(1), [2, 3], [2]), RuntimeError, "broadcast dim 2 is not in the output of rank 2"),
    ("too few broadcast dims", lambda fd: fd.ops.broadcast_in_dim(fd.define_tensor(2), [2, 3], [0]), RuntimeError, "1 broadcast_dims for a tensor of rank 2"),
    ("an output shape of lower rank", lambda fd: fd.ops.broadcast_in_dim(fd.define_tensor(2), [2], [0, 1]), RuntimeError, "greater-then-or-equal"),
    ("broadcast flags that don't fit", lambda fd: fd.ops.broadcast(fd.define_tensor(2), [True, False]), RuntimeError, "1 dims are not broadcast, the tensor has 2"),
    ("alias of a result", lambda fd: fd.add_output(fd.define_tensor(1), alias_input=fd.ops.neg(fd.define_tensor(1))), RuntimeError, "alias_input T2 is no tensor input"),
    ("an alias of another rank", lambda fd: [fd.add_output(fd.ops.sum(x, [0]), alias_input=x) for x in [fd.define_tensor(2)]], RuntimeError, "T1 has 1 dims, the input T0 that it is written into 2"),
    ("an output that is no handle", lambda fd: fd.add_output(3), TypeError, "add_output takes a Tensor or Scalar"),
    ("a seeded random op", lambda fd: fd.ops.uniform(0.0, 1.0, [4], 7), NotImplementedError, "torch's generator"),
]


@pytest.mark.parametrize(("what", "body", "error", "message"), ERRORS, ids=[case[0] for case in ERRORS])
def test_errors_in_a_body(what: str, body: Callable[[FusionDefinition], Any], error: type[Exception], message: str) -> None:
    count = fxfuser.FusionCache.get().stats()["misses"]
    with pytest.raises(error, match=message):
        _body(body)()
    assert fxfuser.FusionCache.get().stats()["misses"] <= count + 1  # the other definition, in one case


def test_errors_around_a_definition() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(1)
        fd.add_output(fd.ops.neg(x))
    for use in (lambda: fd.ops.exp(x), lambda: fd.define_tensor(1), lambda: fd.add_output(x), lambda: x + 1):
        with pytest.raises(RuntimeError, match="Attempting to add to a completed definition!"):
            use()
    with pytest.raises(RuntimeError, match="not open"):
        FusionDefinition().define_tensor(1)
    with pytest.raises(RuntimeError, match="already defined"):
        FusionDefinition(fd.id()).__enter__()
    for call in (lambda: Fusion().execute([]), lambda: Fusion().id(), lambda: Fusion(10**9), lambda: FusionDefinition(10**9)):
        with pytest.raises(RuntimeError, match="Invalid fusion id!"):
            call()
    with pytest.raises(RuntimeError, match="exceeded 3 operations"):
        with FusionDefinition(max_length=3) as short:
            y = short.define_tensor(1)
            for _ in range(5):
                y = short.ops.neg(y)
    with FusionDefinition() as empty:
        empty.define_tensor(1)
    with pytest.raises(NotImplementedError, match="Fusion is empty!"):
        empty.execute([torch.ones(6)])


def test_errors_of_inputs_name_the_input() -> None:
    with FusionDefinition() as fd:
        x, s, n = fd.define_tensor([-1, 1], [True, True]), fd.define_scalar(), fd.define_scalar(DataType.Int)
        fd.add_output(fd.ops.mul(fd.ops.mul(x, s), n))
    good = torch.randn(3, 1)
    cases: list[tuple[list[Any], type[Exception], str]] = [
        ([good, 1.0], ValueError, "takes 3 inputs, 2 were given"),
        ([good.double(), 1.0, 1], TypeError, r"input 0 \(T0\) is defined as Float, a tensor of Double"),
        ([good[:, 0], 1.0, 1], ValueError, r"input 0 \(T0\) is defined with 2 dims, a tensor with 1"),
        ([torch.randn(3, 2), 1.0, 1], ValueError, r"input 0 \(T0\): dim 1 is defined with size 1, 2 was given"),
        ([2.0, 1.0, 1], TypeError, r"input 0 \(T0\) is defined as a Tensor, a Double"),
        ([good, good, 1], TypeError, r"input 1 \(S1\) is defined as a Scalar of Double, a Tensor"),
        ([good, 1.0, 1.5], TypeError, r"input 2 \(S2\) is defined as a Scalar of Int, a Double"),
        ([good, "a", 1], TypeError, "input 1 is a str"),
    ]
    for inputs, error, message in cases:
        with pytest.raises(error, match=message):
            fd.execute(inputs)
    before = host_launches()
    torch.testing.assert_close(fd.execute([good, 2, True])[0], good * 2)
    assert host_launches() > before
