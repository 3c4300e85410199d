"""What came after 2022: from_pytorch, execute without a Fusion, arithmetic on handles, slice, pad, cat, welford, validate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from definitions import check, defined, host_launches
from fxfuser import DataType, FusionDefinition

X = torch.linspace(-2.5, 2.5, 24).reshape(4, 6)
Y = torch.linspace(0.5, 3.0, 24).reshape(4, 6).flip(0)
WHOLE = torch.arange(1, 25).reshape(4, 6)

OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], torch.Tensor, torch.Tensor]] = {
    "+": (lambda a, b: a + b, X, Y),
    "-": (lambda a, b: a - b, X, Y),
    "*": (lambda a, b: a * b, X, Y),
    "/": (lambda a, b: a / b, X, Y),
    "//": (lambda a, b: a // b, X, Y),
    "%": (lambda a, b: a % b, X, Y),
    "**": (lambda a, b: a**b, Y, X),
    "==": (lambda a, b: a == b, X, X),
    "!=": (lambda a, b: a != b, X, Y),
    "<": (lambda a, b: a < b, X, Y),
    "<=": (lambda a, b: a <= b, X, Y),
    ">": (lambda a, b: a > b, X, Y),
    ">=": (lambda a, b: a >= b, X, Y),
    "&": (lambda a, b: a & b, WHOLE, WHOLE.flip(0)),
    "|": (lambda a, b: a | b, WHOLE, WHOLE.flip(0)),
    "^": (lambda a, b: a ^ b, WHOLE, WHOLE.flip(0)),
    "<<": (lambda a, b: a << b, WHOLE, WHOLE.flip(0) % 4),
    ">>": (lambda a, b: a >> b, WHOLE, WHOLE.flip(0) % 4),
    "2 - x": (lambda a, b: 2.0 - a, X, Y),
    "2 + x": (lambda a, b: 2.0 + a, X, Y),
    "2 * x": (lambda a, b: 2.0 * a, X, Y),
    "2 / x": (lambda a, b: 2.0 / b, X, Y),
    "2 ** x": (lambda a, b: 2.0**a, X, Y),
    "2 // x": (lambda a, b: 2.0 // b, X, Y),
    "2 % x": (lambda a, b: 2.0 % b, X, Y),
    "-x": (lambda a, b: -a, X, Y),
    "abs": (lambda a, b: abs(a), X, Y),
    "~x": (lambda a, b: ~a, WHOLE, WHOLE),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    operator, a, b = OPERATORS[name]
    check(lambda fd, v: operator(v[0], v[1]), [a, b], operator(a, b), launches=1)


def test_operators_on_scalars() -> None:
    check(lambda fd, v: v[0] * (v[1] + 1) / (2 ** v[2]), [X, 2.5, 3], X * (3.5 / 8), launches=1)


OPS: dict[str, tuple[Callable[[Any, Any], Any], list[Any], Callable[..., Any]]] = {
    "slice": (lambda fd, v: -fd.ops.slice(v[0], [1, 0], [3, 6], [1, 2]), [X], lambda x: -x[1:3, 0:6:2]),
    "slice past the end": (lambda fd, v: -fd.ops.slice(v[0], start_indices=[2, 1], end_indices=[100, 5]), [X], lambda x: -x[2:, 1:5]),
    "pad": (lambda fd, v: fd.ops.pad(v[0] * 2.0, [1, 2, 0, 1]), [X], lambda x: torch.nn.functional.pad(x * 2, (1, 2, 0, 1))),
    "pad with a value": (lambda fd, v: fd.ops.pad(v[0] * 2.0, [1, 1], fd.define_constant(9.0)), [X], lambda x: torch.nn.functional.pad(x * 2, (1, 1), value=9.0)),
    "cat": (lambda fd, v: fd.ops.cat([v[0] * 2.0, v[1]], dim=1), [X, Y], lambda x, y: torch.cat([x * 2, y], 1)),
    "welford": (lambda fd, v: fd.ops.welford(v[0], [1]), [X], lambda x: [x.mean(1), (x - x.mean(1, keepdim=True)).square().sum(1), torch.full((4,), 6)]),
    "reshape": (lambda fd, v: fd.ops.reshape(v[0], [6, 4]) * 2.0, [X], lambda x: x.reshape(6, 4) * 2),
    "expand": (lambda fd, v: fd.ops.expand(v[0], [4, 6]) * 2.0, [X[:, :1]], lambda x: x.expand(4, 6) * 2),
    "squeeze": (lambda fd, v: fd.ops.squeeze(v[0], [1]) * 2.0, [X[:, None]], lambda x: x.squeeze(1) * 2),
    "prod": (lambda fd, v: fd.ops.prod(v[0], [0, 1]), [Y], lambda x: x.prod()),
    "prod over one": (lambda fd, v: fd.ops.prod(v[0], [-1], keepdim=True), [Y], lambda x: x.prod(-1, keepdim=True)),
    "maximum": (lambda fd, v: fd.ops.maximum(v[0], v[1]), [X, Y], torch.maximum),
    "logical_and": (lambda fd, v: fd.ops.logical_and(v[0] > 0.0, v[1] > 1.0), [X, Y], lambda x, y: (x > 0) & (y > 1)),
    "truediv of integers": (lambda fd, v: fd.ops.truediv(v[0], 4), [WHOLE], lambda x: x / 4),
    "var_mean": (lambda fd, v: fd.ops.var_mean(v[0], dims=[1]), [X], lambda x: torch.var_mean(x, 1)),
    "take_along_axis": (lambda fd, v: fd.ops.take_along_axis(v[0] * 2.0, v[1], 1), [X, WHOLE % 6], lambda x, i: torch.take_along_dim(x * 2, i, 1)),
    "select": (lambda fd, v: fd.ops.select(v[0], fd.define_constant(2), 0) * 2.0, [X], lambda x: x[2] * 2),
    "scatter": (lambda fd, v: fd.ops.scatter(v[0] * 2.0, v[1], v[2], 1), [X, torch.tensor([[0, 5]]), Y[:1, :2].contiguous()], lambda x, i, s: (x * 2).scatter(1, i, s)),
    "cumsum": (lambda fd, v: fd.ops.cumsum(v[0] * 2.0, 1), [X], lambda x: (x * 2).cumsum(1)),
    "topk": (lambda fd, v: fd.ops.topk(v[0] * 2.0, 3, sorted=True), [X], lambda x: list(torch.topk(x * 2, 3))),
    "argsort": (lambda fd, v: fd.ops.argsort(v[0] * 2.0, 1, descending=True, stable=True), [X], lambda x: torch.argsort(x * 2, dim=1, descending=True, stable=True)),
    "triu": (lambda fd, v: fd.ops.triu(v[0] * 2.0), [X], lambda x: torch.triu(x * 2)),
    "matmul": (lambda fd, v: fd.ops.relu(fd.ops.matmul(v[0], v[1])), [X, Y.t().contiguous()], lambda x, y: torch.relu(x @ y)),
    "linear": (lambda fd, v: fd.ops.relu(fd.ops.linear(v[0], v[1])), [X, Y], lambda x, w: torch.relu(torch.nn.functional.linear(x, w))),
    "embedding_fwd": (lambda fd, v: fd.ops.embedding_fwd(v[0], v[1]) * 2.0, [torch.tensor([2, 0, 1]), X], lambda i, w: torch.nn.functional.embedding(i, w) * 2),
    "erfcinv": (lambda fd, v: fd.ops.erfcinv(v[0]), [X.sigmoid() * 1.8], lambda x: torch.erfinv(1 - x)),
    "stride_order": (lambda fd, v: fd.ops.stride_order(v[0] * 2.0, [0, 1]), [X], lambda x: x * 2),
    "softmax, a row's own name": (lambda fd, v: fd.ops.softmax(v[0], -1), [X], lambda x: torch.softmax(x, -1)),
    "gelu, a row's own name": (lambda fd, v: fd.ops.gelu(v[0], approximate="tanh"), [X], lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
}


@pytest.mark.parametrize("case", OPS)
def test_ops(case: str) -> None:
    build, inputs, eager = OPS[case]
    check(build, inputs, eager(*inputs))


def test_stride_order_is_the_order_in_memory() -> None:
    x = torch.randn(2, 3, 4, 5)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        fd.add_output(t * 2.0, stride_order=[3, 0, 2, 1])
        fd.add_output(fd.ops.stride_order(t * 2.0, [3, 2, 1, 0]))
    before = host_launches()
    last, first = fd.execute([x])
    assert host_launches() > before
    assert last.is_contiguous(memory_format=torch.channels_last) and first.is_contiguous()
    torch.testing.assert_close(last, x * 2)
    with pytest.raises(RuntimeError, match="no permutation of 4 dims"), FusionDefinition() as bad:
        bad.add_output(bad.from_pytorch(x), stride_order=[0, 0, 1, 2])


def test_from_pytorch_is_symbolic_unless_told_otherwise() -> None:
    x = torch.randn(3, 1)
    fd = defined(lambda fd, v: v[0] * 2.0, [x])
    torch.testing.assert_close(fd.execute([torch.ones(7, 1)])[0], torch.full((7, 1), 2.0))
    with pytest.raises(ValueError, match="dim 1 is defined with size 1, 2 was given"):
        fd.execute([torch.ones(3, 2)])
    fixed = defined(lambda fd, v: v[0] * 2.0, [x], static_sizes=True)
    torch.testing.assert_close(fixed.execute([x])[0], x * 2)
    with pytest.raises(ValueError, match="dim 0 is defined with size 3, 7 was given"):
        fixed.execute([torch.ones(7, 1)])
    assert fixed.id() != fd.id()


def test_define_vector_and_scalar() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True)
        rows, columns = fd.define_vector(2)
        half = fd.define_scalar(0.5, dtype=DataType.Double)
        fd.add_output(x * rows + columns * half)
    before = host_launches()
    torch.testing.assert_close(fd.execute([X, 4, 6])[0], X * 4 + 3)
    assert host_launches() == before + 1


def test_handles_know_rank_dtype_and_sizes() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(3, DataType.Half)
        total = fd.ops.sum(x * 2.0, [0, 2])
        assert (x.ndim, total.ndim, x.dtype, total.dtype) == (3, 1, DataType.Half, DataType.Float)
        assert repr(total) == "Tensor(T2, dtype=DataType.Float)"
        assert fd.ops.broadcast_in_dim(total, [2, -1], [1]).ndim == 2
        a, b, c = x.shape
        fd.add_output(total / (a * c))
        fd.add_output(x.size(1))
        fd.add_output(fd.ops.tensor_sizes(x)[0])
    given = torch.randn(4, 5, 6, dtype=torch.float16)
    before = host_launches()
    mean, size, first = fd.execute([given])
    assert host_launches() > before
    torch.testing.assert_close(mean, given.float().mean((0, 2)) * 2)
    assert (size.item(), first.item()) == (5, 4)
    with pytest.raises(RuntimeError, match="rank of T1 is not known"), FusionDefinition() as other:
        _ = other.ops.nonzero(other.define_tensor(2)).ndim


def test_sizes_and_integers_of_the_call_are_shapes() -> None:
    with FusionDefinition() as fd:
        x, count = fd.define_tensor(2), fd.define_scalar(DataType.Int)
        rows, columns = fd.ops.tensor_sizes(x)
        mean = fd.ops.broadcast_in_dim(fd.ops.sum(x, [1]) / columns, [rows, columns], [0])
        centred = x - mean
        fd.add_output(fd.ops.relu(fd.ops.slice(centred, [0, 0], [count, columns])))
    for sizes, count_given in (((4, 6), 2), ((4, 6), 3), ((7, 5), 4)):
        given = torch.randn(sizes)
        before = fxfuser.stats()
        (out,) = fd.execute([given, count_given], strict=True)
        after = fxfuser.stats()
        torch.testing.assert_close(out, (given - given.mean(1, keepdim=True)).relu()[:count_given])
        assert after["launches"]["host"] > before["launches"]["host"]


def test_validate_compares_with_the_same_ops_or_a_reference() -> None:
    x, total = torch.randn(4, 6), torch.zeros(6)
    with FusionDefinition() as fd:
        t, acc = fd.from_pytorch(x), fd.from_pytorch(total)
        fd.add_output(acc + fd.ops.sum(t, [0]), alias_input=acc)
        fd.add_output(fd.ops.relu(t) * 2.0)
    before = host_launches()
    (out,) = fd.validate([x, total])
    assert host_launches() > before
    torch.testing.assert_close(total, torch.zeros(6))
    fd.validate([x, total], [x.relu() * 2])
    with pytest.raises(AssertionError, match="output 0: "):
        fd.validate([x, total], [out + 1])
    with pytest.raises(AssertionError, match="1 results, the reference has 2"):
        fd.validate([x, total], [out, out])


def test_a_subclass_may_hold_the_body() -> None:
    class Double(FusionDefinition):
        def definition(self) -> None:
            self.add_output(self.define_tensor(1) * 2.0)

    fd = Double()
    before = host_launches()
    for _ in range(2):
        torch.testing.assert_close(fd.execute([X[0]])[0], X[0] * 2)
    assert host_launches() == before + 2
    with pytest.raises(NotImplementedError, match="Fusion is empty!"):
        FusionDefinition().execute([])


def test_factories_follow_the_inputs_or_the_device() -> None:
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.full([3], 2.0, DataType.Float) + fd.ops.iota(3, dtype=DataType.Float))
    torch.testing.assert_close(fd.execute([], device="cpu")[0], torch.tensor([2.0, 3.0, 4.0]))
    (meta,) = fd.execute([], device=torch.device("meta"), aten=True)
    assert meta.is_meta and meta.shape == (3,)
    with pytest.raises(TypeError, match="device"):
        fd.execute([], device=3)


def test_a_row_added_at_run_time_is_an_op() -> None:
    with FusionDefinition() as before:
        with pytest.raises(AttributeError, match="frontend_softsign"):
            _ = before.ops.frontend_softsign
    library = torch.library.Library("frontend_demo", "DEF")
    library.define("softsign(Tensor self) -> Tensor")
    library.impl("softsign", lambda x: x / (1 + x.abs()), "CompositeExplicitAutograd")
    fxfuser.register_op({"op": "frontend_softsign", "targets": {"frontend_demo.softsign.default": "self"}, "kind": "pointwise", "dtypes": "float", "result": "default", "expr": "{self}/(T(1)+abs({self}))"})
    check(lambda fd, v: fd.ops.frontend_softsign(v[0]), [X], X / (1 + X.abs()), launches=1)


def test_a_memory_format_left_out_is_the_schemas() -> None:
    """The dispatcher keeps it as a number."""
    x = torch.randn(4, 6)
    with FusionDefinition() as fd:
        a = fd.from_pytorch(x)
        fd.add_output(fd.ops.exp(fd.ops.contiguous(fd.ops.neg(a))))
    before = fxfuser.stats()["launches"]["host"]
    torch.testing.assert_close(fd.execute([x], strict=True)[0], (-x).exp())
    assert fxfuser.stats()["launches"]["host"] > before
