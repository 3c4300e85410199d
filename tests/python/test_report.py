"""What a report says of calls and compiles, and its forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute, explain, prepare
from torch.fx.experimental.proxy_tensor import make_fx

Launches = Callable[[], int]


def chain(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x) * 2 + 0.71875


def test_where_each_kernel_came_from(launches: Launches) -> None:
    fxfuser.clear_caches(disk=True)
    x = torch.rand(3, 4)
    gm = make_fx(chain)(x)
    (before,) = explain(gm, x).kernels()
    assert before["compile_seconds"] is None and before["loaded_from"] is None
    assert "kernels:" not in str(explain(gm, x)).split("largest kernels:")[1]
    execute(gm, x)
    report = explain(gm, x)
    (compiled,) = report.kernels()
    assert compiled["compile_seconds"] > 0 and compiled["loaded_from"] is None
    assert f"kernels: 1 compiled in {compiled['compile_seconds']:.2f} s (longest {compiled['name']}" in str(report)
    fxfuser.clear_caches()
    execute(gm, x + 1)
    again = make_fx(chain)(x)
    execute(again, x)
    (loaded,) = explain(again, x).kernels()
    assert loaded["compile_seconds"] is None and loaded["loaded_from"] == fxfuser._C.cache_folder()
    assert "kernels: 1 loaded from disk" in str(explain(again, x))
    assert launches() == 3


def test_kernels_that_were_compiled_together_share_the_time(launches: Launches) -> None:
    fxfuser.clear_caches(disk=True)
    x = torch.rand(30, 40)
    gm = make_fx(lambda x: torch.cumsum(torch.cumsum(chain(x), 0).sin() * 0.328125, 0).cos() * 3)(x)
    before = fxfuser.stats()["compiles"]
    execute(gm, x)
    report = explain(gm, x)
    assert len(report.kernels()) == launches() == 3
    assert fxfuser.stats()["compiles"] - before == 3
    assert sum(kernel["compile_seconds"] for kernel in report.kernels()) <= report.totals["compile_seconds"]


def test_a_target_that_is_not_here_has_no_times(launches: Launches) -> None:
    x = torch.rand(3, 4)
    gm = make_fx(chain)(x)
    execute(gm, x)
    (kernel,) = explain(gm, x, target="cuda").kernels()
    if not torch.cuda.is_available():
        assert kernel["compile_seconds"] is None and kernel["loaded_from"] is None
    assert launches() == 1


CHANGES: list[tuple[str, Callable[[Any, torch.Tensor], Any]]] = [
    ("input 0 (x_1): sizes [3, 4] -> [5, 4]", lambda run, x: run(torch.rand(5, 4))),
    ("input 0 (x_1): dtype Float -> Double", lambda run, x: run(x.double())),
    ("input 0 (x_1): strides [4, 1] -> [1, 3]", lambda run, x: run(torch.rand(4, 3).t())),
]


@pytest.mark.parametrize(("text", "call"), CHANGES, ids=["sizes", "dtype", "strides"])
def test_what_differed_in_the_last_call_that_no_plan_took(text: str, call: Callable[[Any, torch.Tensor], Any], launches: Launches) -> None:
    x = torch.rand(3, 4)
    run = prepare(make_fx(chain)(x))
    assert run.report().planned_anew == "" and "planned anew" not in str(run.report())
    run(x)
    assert run.report(x).planned_anew == "first call" and "planned anew" not in str(run.report(x))
    call(run, x)
    run(x)  # a plan takes it
    report = run.report(x)
    assert report.planned_anew == text and f"last planned anew: {text}" in str(report).splitlines()
    (difference,) = json.loads(report.to_json())["planned_anew"]["differences"]
    assert difference == {"field": text.split(": ")[1].split(" ")[0], "text": text}
    assert launches() == 3


def test_an_option_that_differed_is_told(launches: Launches) -> None:
    x = torch.rand(3, 4)
    gm = make_fx(chain)(x)
    execute(gm, x)
    execute(gm, x, executor_parameters={"deterministic": True})
    assert explain(gm, x).planned_anew == "option deterministic false -> true"
    execute(gm, x, executor_parameters={"use_python_fusion_cache": False})
    assert launches() == 3


def test_a_picture_is_drawn_by_graphviz_or_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    x = torch.rand(3, 4)
    report = explain(make_fx(chain)(x), x)
    dot = tmp_path / "dot"
    dot.write_text('#!/bin/sh\n[ "$1" = -Tsvg ] && /bin/cat - > "$0.given" && echo "<svg/>"\n')
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert report.to_svg() == "<svg/>\n"
    assert (tmp_path / "dot.given").read_text() == report.to_dot()
    dot.write_text("#!/bin/sh\necho no fonts >&2; exit 3\n")
    with pytest.raises(RuntimeError, match="no fonts"):
        report.to_svg()
    dot.unlink()
    with pytest.raises(RuntimeError, match="install"):
        report.to_svg()
