"""Rows whose expressions call C++ functions given with them: fused on the host, compiled for CUDA, apart from each other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import FallbackWarning, execute, explain, register_op
from numerics import check_close
from own_functions import CUBE, row, sources
from torch.fx.experimental.proxy_tensor import make_fx

Launches = Callable[[], int]
NUMBERS = itertools.count()


@pytest.fixture
def own() -> Iterator[Callable[..., Any]]:
    """Defines an op of this eager meaning, and returns its overload; each has a name of its own."""
    with torch.library._scoped_library("own_functions", "FRAGMENT") as lib:

        def define(meaning: Callable[..., torch.Tensor], operands: int = 1) -> Any:
            name = f"op{next(NUMBERS)}"
            lib.define(f"{name}({', '.join(f'Tensor {letter}' for letter in 'abc'[:operands])}) -> Tensor")
            lib.impl(name, meaning, "CompositeExplicitAutograd")
            return getattr(torch.ops.own_functions, name).default

        yield define


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_a_function_runs_inside_fusions(own: Any, dtype: torch.dtype, launches: Launches) -> None:
    op = own(lambda a: a * a * a)
    register_op(row(op, "cube({a})"), **sources(CUBE))
    x, y = (torch.arange(-6, 6) / 2).to(dtype), torch.arange(20).view(4, 5).to(dtype)
    gm = make_fx(lambda x, y: (op(x) + 1, torch.relu(op(y) - op(y + 1)), op(y).sum(-1)))(x, y)
    check_close(execute(gm, x, y, executor="strictly_nvfuser"), gm(x, y), str(dtype))
    kernels = explain(gm, x, y).data["kernels"]
    assert launches() == len(kernels) >= 2
    assert all(kernel["source"].count("T cube(T x)") == 1 for kernel in kernels), "once a kernel"


def test_functions_of_one_name_stay_apart(own: Any, launches: Launches) -> None:
    ops = []
    for factor in (2, 3):
        op = own(lambda a, factor=factor: a * factor)
        register_op(row(op, "scaled({a})"), **sources(f"template <class T> @ T scaled(T x) {{ return x * {factor}; }}"))
        ops.append(op)
    x = torch.randn(33)
    gm = make_fx(lambda x: ops[0](x) + ops[1](ops[1](x)))(x)
    check_close(execute(gm, x, executor="strictly_nvfuser"), gm(x), "both in one kernel")
    assert launches() == 1


def test_several_arguments_and_listed_functions_beside_them(own: Any, launches: Launches) -> None:
    op = own(lambda a, b: torch.exp(torch.minimum(a, b)) * 2, 2)
    register_op(row(op, "exp(lesser({a}, {b})) * lesser(2, 5)", operands="a b"), **sources("template <class T> @ T lesser(T x, T y) { return x < y ? x : y; }"))
    a, b = torch.randn(4, 9), torch.randn(9)
    gm = make_fx(op)(a, b)
    check_close(execute(gm, a, b, executor="strictly_nvfuser"), gm(a, b), "lesser")
    assert launches() == 1


def test_cuda_text_compiles(own: Any) -> None:
    op = own(lambda a: a * a * a)
    register_op(row(op, "cube({a})"), **sources(CUBE))
    for dtype in (torch.float16, torch.float64):
        x = torch.zeros(64, 128, dtype=dtype)
        gm = make_fx(lambda x: (op(x).sum(-1), torch.softmax(op(x), -1)))(x)
        report = explain(gm, x, target="cuda")
        assert report.fused_share == 1.0
        for kernel in report.data["kernels"]:
            assert "__device__ T cube(T x)" in kernel["source"]
            assert fxfuser._C.compile_cuda(kernel["name"], kernel["source"], 90) > 0


def test_a_row_of_one_target_runs_through_aten_on_the_other(own: Any, launches: Launches) -> None:
    op = own(lambda a: a * a * a)
    register_op({**row(op, ""), "cuda": "cube({a})"}, cuda_source=sources(CUBE)["cuda_source"])
    x = torch.randn(8)
    gm = make_fx(lambda x: torch.relu(op(x) + 1) * 2)(x)
    check_close(execute(gm, x), gm(x), "aten")
    assert launches() == 1, "what follows the op"
    assert "has no expression for the host" in str(explain(gm, x))
    assert explain(gm, x, target="cuda").fused_share == 1.0


WRONG: list[tuple[str, str, dict[str, str], str]] = [
    ("no source", "cube({a})", {}, "'cube' is not in the vocabulary of expressions"),
    ("another source", "cube({a})", sources("template <class T> @ T square(T x) { return x * x; }"), "'cube' is not in the vocabulary of expressions, nor a function of the text"),
    ("one of two sources", "cube({a})", {"cuda_source": sources(CUBE)["cuda_source"]}, "'cube' is not in the vocabulary"),
    ("nothing calls it", "{a} * 2", sources(CUBE), "no row calls a function of cuda_source"),
    ("no call", "cube + {a}", sources(CUBE), "expected '\\('"),
    ("part of a name", "ube({a})", sources(CUBE), "'ube' is not in the vocabulary"),
]


@pytest.mark.parametrize(("what", "text", "given", "message"), WRONG, ids=[case[0] for case in WRONG])
def test_what_cannot_work_is_refused(own: Any, what: str, text: str, given: dict[str, str], message: str) -> None:
    op = own(lambda a: a)
    with pytest.raises(ValueError, match=message):
        register_op(row(op, text), **given)
    register_op(row(op, "{a}"))  # the refused row left nothing


def test_sources_are_text_and_no_part_of_a_row(own: Any) -> None:
    op = own(lambda a: a)
    with pytest.raises(TypeError, match="host_source as text, not int"):
        register_op(row(op, "cube({a})"), host_source=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'cuda_source': unknown key"):
        register_op({**row(op, "cube({a})"), "cuda_source": CUBE})


def test_text_that_does_not_compile_costs_a_warning_each(own: Any, launches: Launches) -> None:
    for missing in ("nowhere", "elsewhere"):
        op = own(lambda a: a + 1)
        register_op(row(op, "broken({a})"), **sources(f"template <class T> @ T broken(T x) {{ return x + {missing}; }}"))
        x = torch.randn(8)
        gm = make_fx(op)(x)
        with pytest.warns(FallbackWarning, match=missing):
            check_close(execute(gm, x), gm(x), "aten")
        assert launches() == 0
        for given in ({"executor_parameters": {"on_error": "raise"}}, {"executor": "strictly_nvfuser"}):
            with pytest.raises(RuntimeError, match=missing):  # also after it was told
                execute(gm, x, **given)
