"""The frontend of 2022: every op of `fd.ops` against eager, the forms of define_*, outputs that alias inputs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from definitions import again, check, defined, host_launches
from fxfuser import DataType, Fusion, FusionDefinition

X = torch.linspace(-2.5, 2.5, 24).reshape(4, 6)
Y = torch.linspace(0.5, 3.0, 24).reshape(4, 6).flip(0)
UNIT = torch.linspace(-0.9, 0.9, 24).reshape(4, 6)
POSITIVE = torch.linspace(0.1, 4.0, 24).reshape(4, 6)
WHOLE = torch.arange(1, 25).reshape(4, 6)
OTHER = torch.arange(24, 0, -1).reshape(4, 6) % 5 + 1
SPECIAL = torch.tensor([[float("nan"), float("inf"), float("-inf"), 0.0, 1.0, -0.0]])

UNARY = {
    **dict.fromkeys("abs ceil cos cosh erf erfc exp expm1 floor frac neg reciprocal relu round sigmoid sign silu sin sinh tan tanh trunc atan".split(), X),
    **dict.fromkeys("acos asin atanh".split(), UNIT),
    **dict.fromkeys("lgamma log log10 log1p log2 rsqrt sqrt".split(), POSITIVE),
    **dict.fromkeys("isfinite isinf isnan isneginf isposinf".split(), SPECIAL),
    "bitwise_not": WHOLE,
}
EAGER = {"relu": torch.relu, "silu": torch.nn.functional.silu}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    x = UNARY[name]
    eager = EAGER.get(name) or getattr(torch, name)
    check(lambda fd, v: getattr(fd.ops, name)(v[0]), [x], eager(x), launches=1)


BINARY = {
    **{name: (X, Y) for name in "add atan2 div fmod mul remainder sub eq ge gt le lt ne".split()},
    "pow": (POSITIVE, X),
    **{name: (WHOLE, OTHER) for name in "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split()},
}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    x, y = BINARY[name]
    eager = getattr(torch, name)
    check(lambda fd, v: getattr(fd.ops, name)(v[0], v[1]), [x, y], eager(x, y), launches=1)
    check(lambda fd, v: getattr(fd.ops, name)(v[0], v[1]), [x, y[0]], eager(x, y[0]), launches=1)
    number = 3 if x.dtype == torch.int64 else 1.5
    check(lambda fd, v: getattr(fd.ops, name)(v[0], fd.define_constant(number)), [x], eager(x, torch.tensor(number, dtype=x.dtype)), launches=1)
    check(lambda fd, v: getattr(fd.ops, name)(fd.define_constant(number), v[0]), [y], eager(torch.tensor(number, dtype=y.dtype), y), launches=1)


def test_right_shift_is_no_left_shift() -> None:
    check(lambda fd, v: fd.ops.bitwise_right_shift(v[0], 1), [WHOLE], WHOLE >> 1, launches=1)


def test_mod_has_the_sign_of_c() -> None:
    check(lambda fd, v: fd.ops.mod(v[0], v[1]), [X, Y], torch.fmod(X, Y), launches=1)


OTHERS: dict[str, tuple[Callable[[Any, Any], Any], list[Any], Callable[..., Any]]] = {
    "add_alpha": (lambda fd, v: fd.ops.add_alpha(v[0], v[1], fd.define_constant(2.0)), [X, Y], lambda x, y: torch.add(x, y, alpha=2)),
    "sub_alpha": (lambda fd, v: fd.ops.sub_alpha(v[0], v[1], fd.define_constant(0.5)), [X, Y], lambda x, y: torch.sub(x, y, alpha=0.5)),
    "lerp": (lambda fd, v: fd.ops.lerp(v[0], v[1], v[2]), [X, Y, UNIT], torch.lerp),
    "where": (lambda fd, v: fd.ops.where(fd.ops.gt(v[0], 0.0), v[0], v[1]), [X, Y], lambda x, y: torch.where(x > 0, x, y)),
    "clamp": (lambda fd, v: fd.ops.clamp(v[0], fd.define_constant(-1.0), fd.define_constant(1.0)), [X], lambda x: torch.clamp(x, -1, 1)),
    "threshold": (lambda fd, v: fd.ops.threshold(v[0], fd.define_constant(0.5), fd.define_constant(9.0)), [X], lambda x: torch.nn.functional.threshold(x, 0.5, 9.0)),
    "addcmul": (lambda fd, v: fd.ops.addcmul(v[0], v[1], v[2], fd.define_constant(0.1)), [X, Y, UNIT], lambda a, b, c: torch.addcmul(a, b, c, value=0.1)),
    "sum": (lambda fd, v: fd.ops.sum(v[0], axes=[0], keepdim=False, dtype=DataType.Null), [X], lambda x: x.sum(0)),
    "sum to double": (lambda fd, v: fd.ops.sum(v[0], [1], True, DataType.Double), [X], lambda x: x.sum(1, keepdim=True, dtype=torch.float64)),
    "sum of bool": (lambda fd, v: fd.ops.sum(fd.ops.gt(v[0], 0.0), [1]), [X], lambda x: (x > 0).sum(1)),
    "max": (lambda fd, v: fd.ops.max(v[0], [0, 1]), [X], lambda x: x.amax((0, 1))),
    "min": (lambda fd, v: fd.ops.min(v[0], [1], keepdim=True), [X], lambda x: x.amin(1, keepdim=True)),
    "min to double": (lambda fd, v: fd.ops.min(v[0], [1], dtype=DataType.Double), [X], lambda x: x.double().amin(1)),
    "var": (lambda fd, v: fd.ops.var(v[0], [1], 0), [X], lambda x: x.var(1, correction=0)),
    "var_mean": (lambda fd, v: fd.ops.var_mean(v[0], axes=[0], correction=1, keepdim=True), [X], lambda x: torch.var_mean(x, 0, correction=1, keepdim=True)),
    "cast": (lambda fd, v: fd.ops.cast(fd.ops.mul(v[0], 2.0), DataType.Half), [X], lambda x: (x * 2).half()),
    "cast to int": (lambda fd, v: fd.ops.cast(fd.ops.mul(v[0], 2.0), DataType.Int), [X], lambda x: (x * 2).long()),
    "set": (lambda fd, v: fd.ops.set(fd.ops.neg(v[0])), [X], torch.neg),
    "permute": (lambda fd, v: fd.ops.exp(fd.ops.permute(v[0], [1, 0])), [X], lambda x: x.t().exp()),
    "view": (lambda fd, v: fd.ops.exp(fd.ops.view(v[0], [4, 6], [2, 12])), [X], lambda x: x.view(2, 12).exp()),
    "squeeze": (lambda fd, v: fd.ops.exp(fd.ops.squeeze(v[0], [4, 1, 6], 1)), [X[:, None]], lambda x: x.squeeze(1).exp()),
    "broadcast_in_dim": (lambda fd, v: fd.ops.add(v[0], fd.ops.broadcast_in_dim(fd.ops.sum(v[0], [1]), [4, 6], [0])), [X], lambda x: x + x.sum(1, keepdim=True)),
    "broadcast_in_dim, -1": (lambda fd, v: fd.ops.add(v[0], fd.ops.broadcast_in_dim(fd.ops.sum(v[0], [0]), [-1, -1], [1])), [X], lambda x: x + x.sum(0)),
    "broadcast_in_dim of size 1": (lambda fd, v: fd.ops.exp(fd.ops.broadcast_in_dim(v[0], [4, 6], [0, 1])), [X[:1, :1]], lambda x: x.expand(4, 6).exp()),
    "broadcast": (lambda fd, v: fd.ops.add(v[0], fd.ops.broadcast(fd.ops.sum(v[0], [1]), [False, True])), [X], lambda x: x + x.sum(1, keepdim=True)),
    "full": (lambda fd, v: fd.ops.add(v[0], fd.ops.full([4, 6], fd.define_constant(2.0), DataType.Float)), [X], lambda x: x + 2),
    "gather": (lambda fd, v: fd.ops.neg(fd.ops.gather(v[0], v[1], 1)), [X, OTHER], lambda x, i: -torch.gather(x, 1, i)),
    "index_select": (lambda fd, v: fd.ops.neg(fd.ops.index_select(v[0], v[1], 0)), [X, torch.tensor([3, 0, 0])], lambda x, i: -x[i]),
    "iota": (lambda fd, v: fd.ops.add(v[0], fd.ops.iota(6, 1, 2, DataType.Float)), [X], lambda x: x + torch.arange(1.0, 13.0, 2.0)),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_ops(case: str) -> None:
    build, inputs, eager = OTHERS[case]
    check(build, inputs, eager(*inputs))


def test_squeezed_input_keeps_eagers_shape() -> None:
    (out,) = defined(lambda fd, v: fd.ops.squeeze(v[0], [4, 1, 6], 1), [X[:, None]]).execute([X[:, None]])
    assert out.shape == (4, 6)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("statistics", [False, True])
def test_batch_norm(training: bool, statistics: bool, channels_last: bool) -> None:
    if not (training or statistics):
        pytest.skip("eval mode needs running statistics")
    x, weight, bias = torch.randn(3, 5, 4, 4), torch.randn(5), torch.randn(5)
    mean, var = torch.randn(5), torch.rand(5) + 0.5
    given = x.permute(0, 2, 3, 1).contiguous() if channels_last else x
    with FusionDefinition() as fd:
        t, w, b = fd.from_pytorch(given), fd.from_pytorch(weight), fd.from_pytorch(bias)
        m, v = (fd.from_pytorch(mean), fd.from_pytorch(var)) if statistics else (fd.define_null_tensor(), None)
        out, *_ = fd.ops.batch_norm(fd.ops.mul(t, 1.0), w, b, m, v, 0.1, 1e-5, training, channels_last)
        fd.add_output(fd.ops.relu(out))
    ours, theirs = (mean.clone(), var.clone()), (mean.clone(), var.clone())
    before = host_launches()
    (result,) = fd.execute([given, weight, bias, *(ours if statistics else ())])
    assert host_launches() > before
    eager = torch.relu(torch.nn.functional.batch_norm(x, *(theirs if statistics else (None, None)), weight, bias, training, 0.1, 1e-5))
    torch.testing.assert_close(result, eager.permute(0, 2, 3, 1) if channels_last else eager)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


def test_ops_without_a_row_are_aten_steps_unless_strict() -> None:
    x = torch.rand(4, 6) + 1
    fd = defined(lambda fd, v: fd.ops.exp(fd.ops.digamma(fd.ops.neg(v[0]))), [x])
    before = fxfuser.stats()
    torch.testing.assert_close(fd.execute([x])[0], torch.digamma(-x).exp())
    after = fxfuser.stats()
    assert after["launches"]["host"] - before["launches"]["host"] == 2
    assert after["aten_steps"] - before["aten_steps"] == 1
    with pytest.raises(ValueError, match="digamma"):
        fd.execute([x], strict=True)


def test_complex_runs_through_aten_unless_strict() -> None:
    x = torch.randn(4, dtype=torch.complex64)
    fd = defined(lambda fd, v: fd.ops.mul(fd.ops.real(v[0]), 2.0), [x])
    torch.testing.assert_close(fd.execute([x])[0], x.real * 2)
    with FusionDefinition() as other:
        other.add_output(other.ops.add(other.from_pytorch(x), other.define_constant(1 + 2j)))
    torch.testing.assert_close(other.execute([x])[0], x + (1 + 2j))
    with pytest.raises(ValueError, match="complex"):
        other.execute([x], strict=True)


def test_random_ops_draw_from_torchs_generator() -> None:
    x = torch.randn(8, 8)
    fd = defined(lambda fd, v: fd.ops.mul(fd.ops.rand_like(v[0]), v[0]), [x])
    torch.manual_seed(3)
    before = host_launches()
    (ours,) = fd.execute([x])
    assert host_launches() > before
    torch.manual_seed(3)
    torch.testing.assert_close(ours, torch.rand_like(x) * x)
    torch.manual_seed(3)
    with FusionDefinition() as uniform:
        uniform.add_output(uniform.ops.uniform(1.0, 3.0, [4, 4]))
        uniform.add_output(uniform.ops.normal(1.0, 0.0, [4], dtype=DataType.Double))
    one, two = uniform.execute([])
    assert bool(((one >= 1) & (one < 3)).all()) and two.dtype == torch.float64
    torch.testing.assert_close(two, torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_floats_are_float_inside_and_cast_back_on_request(dtype: torch.dtype) -> None:
    x, y = X.to(dtype), Y.to(dtype)
    check(lambda fd, v: fd.ops.add(fd.ops.mul(v[0], v[1]), v[1]), [x, y], x.float() * y.float() + y.float(), launches=1)
    check(lambda fd, v: fd.ops.cast(fd.ops.mul(v[0], 1.5), dtype), [x], (x.float() * 1.5).to(dtype), launches=1)
    check(lambda fd, v: fd.ops.add(v[0], v[1]), [x, Y.double()], x.double() + Y.double(), launches=1)


def test_the_forms_of_define_tensor() -> None:
    def text(*args: Any, **kwargs: Any) -> str:
        with FusionDefinition() as fd:
            fd.add_output(fd.ops.neg(fd.define_tensor(*args, **kwargs)))
        return str(fd).splitlines()[1].strip()

    start = "T0 = fd.define_tensor("
    symbolic = start + "symbolic_sizes=[-1, -1], contiguous=[False, False], dtype=DataType.Float, is_cpu=False)"
    assert text(2) == text(ndims=2) == text([-1, -1], [False, False]) == text(shape=[-1, -1]) == symbolic
    assert text(2, DataType.Half) == text(2, torch.float16) == symbolic.replace("Float", "Half")
    concrete = start + "symbolic_sizes=[-1, 1, -1], contiguous=[True, True, True], dtype=DataType.Double, is_cpu=False)"
    assert text([4, 1, 6], [6, 6, 1], DataType.Double) == text(sizes=[4, 1, 6], strides=[6, 6, 1], dtype=DataType.Double) == concrete
    assert text([-1, 1], [True, None]) == start + "symbolic_sizes=[-1, 1], contiguous=[True, None], dtype=DataType.Float, is_cpu=False)"
    assert text([], [], is_cpu=True) == start + "symbolic_sizes=[], contiguous=[], dtype=DataType.Float, is_cpu=True)"
    assert text(0, DataType.Int, True) == start + "symbolic_sizes=[], contiguous=[], dtype=DataType.Int, is_cpu=True)"


def test_a_symbolic_definition_takes_any_size_and_layout() -> None:
    fusion = Fusion()
    with FusionDefinition(fusion) as fd:
        fd.add_output(fd.ops.sum(fd.ops.mul(fd.define_tensor(2), 2.0), [0]))
    for x in (torch.randn(3, 4), torch.randn(4, 3).t(), torch.randn(0, 4), torch.randn(1, 7), torch.randn(1, 5).expand(3, 5)):
        before = host_launches()
        torch.testing.assert_close(fusion.execute([x])[0], (x * 2).sum(0))
        assert host_launches() > before or x.numel() == 0


def test_scalars_and_constants() -> None:
    def build(fd: FusionDefinition, v: Any) -> list[Any]:
        x, d, i, b = v
        return [fd.ops.where(b, fd.ops.mul(x, fd.ops.add(d, i)), x), fd.ops.mul(d, fd.ops.exp(fd.define_constant(0.0))), fd.ops.remainder(i, 4), fd.ops.lt(i, d), fd.ops.cast(d, DataType.Int)]

    expected = [X * 9.5, torch.tensor(2.5, dtype=torch.float64), torch.tensor(3), torch.tensor(False), torch.tensor(2)]
    check(build, [X, 2.5, 7, True], expected, launches=None)
    check(lambda fd, v: fd.ops.add(fd.ops.sub(v[0], fd.define_constant(2)), fd.define_constant(True)), [WHOLE], WHOLE - 2 + 1, launches=1)


@pytest.mark.parametrize("name", "acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp exp2 expm1 floor frac lgamma log log10 log1p log2 reciprocal round rsqrt sigmoid silu sin sinh sqrt tan tanh trunc relu sign neg abs isfinite isinf isnan isneginf isposinf isreal".split())
def test_ops_on_a_scalar_are_torchs(name: str) -> None:
    value = 1.25 if name == "acosh" else 0.75
    fd = defined(lambda fd, v: getattr(fd.ops, name)(v[0]), [value])
    x = torch.tensor(value, dtype=torch.float64)
    eager = EAGER.get(name, getattr(torch, name, None))
    torch.testing.assert_close(fd.execute([value])[0], eager(x))


def test_alias_input_is_written_and_not_returned() -> None:
    x, total = torch.randn(4, 6), torch.zeros(6)
    fusion = Fusion()
    with FusionDefinition(fusion) as fd:
        t, acc = fd.define_tensor(2), fd.define_tensor(1)
        rows = fd.ops.sum(t, [0])
        fd.add_output(fd.ops.add(acc, rows), alias_input=acc)
        fd.add_output(fd.ops.mul(rows, 2.0))
    version, before = total._version, host_launches()
    for count in (1, 2):
        results = fusion.execute([x, total])
        assert len(results) == 1
        torch.testing.assert_close(results[0], x.sum(0) * 2)
        torch.testing.assert_close(total, count * x.sum(0))
    assert host_launches() - before >= 2
    assert total._version > version


def test_alias_input_that_shares_memory_reads_first_and_writes_last() -> None:
    base = torch.arange(8.0)
    left, right = base[:6], base[2:]
    with FusionDefinition() as fd:
        a, b = fd.define_tensor(1), fd.define_tensor(1)
        fd.add_output(fd.ops.add(a, b), alias_input=a)
        fd.add_output(fd.ops.mul(b, 2.0))
    expected, doubled = left + right, right * 2
    with pytest.warns(fxfuser.FallbackWarning, match="shares memory"):
        (out,) = fd.execute([left, right])
    torch.testing.assert_close(out, doubled)
    torch.testing.assert_close(left, expected)


def test_outputs_never_require_grad() -> None:
    x = torch.randn(3, requires_grad=True)
    before = host_launches()
    (out,) = defined(lambda fd, v: fd.ops.exp(v[0]), [x]).execute([x])
    assert host_launches() == before + 1 and not out.requires_grad


def test_an_input_and_a_value_may_be_outputs_twice() -> None:
    check(lambda fd, v: [v[0], fd.ops.neg(v[0]), v[0]], [X], [X, -X, X], launches=1)


def test_fusion_print_shows_the_graph(capsys: pytest.CaptureFixture[str]) -> None:
    fusion = Fusion()
    with FusionDefinition(fusion) as fd:
        fd.add_output(fd.ops.exp(fd.define_tensor(1)))
    fusion.print()
    assert "aten.exp.default(%T0)" in capsys.readouterr().out
    fd.print()
    assert capsys.readouterr().out.startswith(f"def nvfuser_fusion_id{fusion.id()}(fd : FusionDefinition) -> None :\n    T0 = fd.define_tensor(")


def test_printed_numbers_are_exact() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(1)
        for value in (0.1, 1e-320, -0.0, float("nan"), float("inf"), 1 / 3, 3, True, 1 + 2.5j):
            x = fd.ops.add(x, fd.define_constant(value))
        fd.add_output(x)
    assert again(fd).id() == fd.id()


def test_ids_and_fusions() -> None:
    fusion = Fusion()
    assert not fusion.defined()
    with FusionDefinition(fusion) as fd:
        fd.add_output(fd.ops.sinh(fd.define_tensor(1)))
    assert fusion.defined() and Fusion(fusion.id()).id() == fusion.id()
    other = Fusion()
    other.define(fusion.id())
    before = host_launches()
    torch.testing.assert_close(other.execute([X[0]])[0], X[0].sinh())
    torch.testing.assert_close(FusionDefinition(fusion.id()).execute((X[0],))[0], X[0].sinh())
    assert host_launches() == before + 2
    assert str(FusionDefinition(fusion.id())) == str(fd)


def test_help_comes_from_the_table() -> None:
    fd = FusionDefinition()
    assert {"add", "sum", "batch_norm", "gelu"} <= set(dir(fd.ops))
    text = subprocess.run([sys.executable, "-c", "import fxfuser; help(fxfuser.FusionDefinition().ops.add)"], capture_output=True, text=True, check=True).stdout
    assert "add(arg, other, alpha=1)" in text and "self+alpha*other" in text


def test_compute_contiguity() -> None:
    from fxfuser.frontend import compute_contiguity

    assert compute_contiguity([4, 6], [6, 1]) == [True, True]
    assert compute_contiguity([4, 6], [1, 4]) == [False, False]
    assert compute_contiguity([], []) == []
    with pytest.raises(RuntimeError, match="same number of dimensions: 2 and 1"):
        compute_contiguity([4, 6], [1])
