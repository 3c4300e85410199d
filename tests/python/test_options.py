"""``executor_parameters``: each value does what it says, and one that is not there is refused by name, at the first chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute, explain, prepare
from numerics import check_close
from torch.fx import symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx

NEVER = {"compile": "never", "on_error": "raise"}


def counts() -> tuple[int, int, int]:
    stats = fxfuser.stats()
    return stats["compiles"], sum(stats["launches"].values()), stats["missing_kernels"]


def two_groups(x: torch.Tensor) -> torch.Tensor:
    return torch.digamma(torch.tanh(x * 1.25) + 3.5).sin() * 2


@pytest.mark.parametrize("trace", [lambda fn, x: make_fx(fn)(x), lambda fn, x: symbolic_trace(fn)], ids=["imported", "lowered"])
def test_never_compiles_and_uses_what_is_there(trace: Callable[..., torch.fx.GraphModule]) -> None:
    fxfuser.clear_caches(disk=True)
    x = torch.randn(7, 9)
    gm = trace(two_groups, x)
    compiles, launches, missing = counts()
    for _ in range(3):
        check_close(execute(gm, x, executor_parameters=NEVER), gm(x), "nothing there")
    assert counts() == (compiles, launches, missing + 2), "two kernels are missing, told once a plan"
    check_close(execute(gm, x), gm(x), "compiled")
    assert counts() == (compiles + 2, launches + 2, missing + 2)
    for _ in range(2):
        check_close(execute(gm, x, executor_parameters=NEVER), gm(x), "in memory")
    assert counts() == (compiles + 2, launches + 6, missing + 2)
    fxfuser.clear_caches()
    hits = fxfuser.stats()["kernel_disk_hits"]
    check_close(execute(gm, x, executor_parameters=NEVER), gm(x), "on disk")
    assert counts() == (compiles + 2, launches + 8, missing + 2)
    assert fxfuser.stats()["kernel_disk_hits"] == hits + 2


def test_never_in_strict_mode_names_what_is_missing() -> None:
    fxfuser.clear_caches(disk=True)
    x = torch.randn(7, 9)
    gm = make_fx(lambda x: torch.tanh(x * 1.75) + 2)(x)
    with pytest.raises(ValueError, match="group of mul: 1 of its 1 kernels are not in the cache and compile is 'never'"):
        execute(gm, x, executor="strictly_nvfuser", executor_parameters=NEVER)


def test_rounding_compiles_each_kernel_once() -> None:
    x = torch.randn(7, 9).bfloat16()
    gm = make_fx(lambda x: torch.tanh(x * 1.5 + 2.25) * x)(x)
    fxfuser.clear_caches(disk=True)
    before = fxfuser.stats()["compiles"]
    execute(gm, x, executor_parameters={"rounding": "eager"})
    assert fxfuser.stats()["compiles"] == before + 1


BAD: list[tuple[dict[str, Any], type[BaseException], str]] = [
    ({"compile": "later"}, ValueError, "compile.*later.*async, never, sync"),
    ({"compile": True}, TypeError, "compile.*string"),
    ({"rounding": "up"}, ValueError, "rounding.*up.*default, eager"),
    ({"on_error": "ignore"}, ValueError, "on_error.*ignore.*fallback, raise"),
    ({"dump": ["everything"]}, ValueError, "dump.*everything"),
    ({"skip_ops": 3}, TypeError, "skip_ops"),
    ({"deterministic": 1}, TypeError, "deterministic"),
]


@pytest.mark.parametrize(("options", "error", "text"), BAD, ids=[str(case[0]) for case in BAD])
def test_values_that_are_not_there(options: dict[str, Any], error: type[BaseException], text: str) -> None:
    x = torch.randn(3)
    gm = make_fx(lambda x: x.exp() + 1)(x)
    for call in (lambda: execute(gm, x, executor_parameters=options), lambda: prepare(gm, **options), lambda: explain(gm, x, executor_parameters=options)):
        with pytest.raises(error, match=text):
            call()


def test_prepare_checks_at_once() -> None:
    gm = make_fx(lambda x: x.exp() + 1)(torch.randn(3))
    with pytest.raises(ValueError, match="executor is 'bad'; it can be 'aten', 'nvfuser' or 'strictly_nvfuser'"):
        prepare(gm, executor="bad")
    with pytest.raises(TypeError, match="GraphModule"):
        prepare(torch.nn.ReLU())
    with pytest.warns(UserWarning, match="fast_mode.*known are"):
        prepare(gm, fast_mode=True)
    x = torch.randn(3)
    check_close(prepare(gm, rounding="eager")(x), gm(x), "prepared")


@pytest.mark.parametrize("trace", [lambda fn, x: make_fx(fn)(x), lambda fn, x: symbolic_trace(fn)], ids=["imported", "lowered"])
def test_explain_of_the_aten_executor(trace: Callable[..., torch.fx.GraphModule]) -> None:
    x = torch.randn(3)
    gm = trace(lambda x: x.exp() + 1, x)
    report = explain(gm, x, executor="aten")
    assert report.fused_share == 0 and report.kernels() == [] and report.totals["partitions"] == 0
    assert all("executor='aten' fuses nothing" in row["reason"] for row in report.nodes())
    assert explain(gm, x).fused_share == 1
    assert explain(make_fx(lambda x: x.t())(torch.ones(2, 2)), executor="aten").fused_share == 0


@pytest.mark.parametrize("word", ["nonsense", "aten.nonsense.default", "aten", "torch.sin", "aten.relu.nonsense"])
def test_a_word_in_skip_ops_that_names_nothing_is_told(word: str, launches: Callable[[], int]) -> None:
    x = torch.randn(3)
    gm = make_fx(lambda x: x.exp() + 1)(x)
    options = {"skip_ops": ["add", word]}
    for call in (lambda: execute(gm, x, executor_parameters=options), lambda: prepare(gm, **options), lambda: explain(gm, x, executor_parameters=options)):
        with pytest.warns(UserWarning, match=f"skip_ops.*'{word}', which is no row and no target"):
            call()
    assert launches() == 1, "of what is not skipped"


@pytest.mark.parametrize("word", ["exp", "aten.exp", "aten.exp.default", "prims.exp.default", "aten.exp_.default", "aten.mm.default", "aten.mm"])
def test_a_word_in_skip_ops_that_names_an_op_is_taken(word: str, recwarn: pytest.WarningsRecorder, launches: Callable[[], int]) -> None:
    x = torch.randn(3)
    gm = make_fx(lambda x: x.exp() + 1)(x)
    execute(gm, x, executor_parameters={"skip_ops": [word]})
    assert not recwarn.list and launches() == 1


def test_documentation_names_every_value() -> None:
    docs = {row["name"]: row["meaning"] for row in fxfuser._C.option_docs()}
    assert all(f"'{value}'" in docs["compile"] for value in ("sync", "async", "never"))
