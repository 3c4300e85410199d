"""Rows of the caller's own: what can't work is refused when it is registered, and leaves nothing behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute, register_op
from torch.fx.experimental.proxy_tensor import make_fx

Launches = Callable[[], int]


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    with torch.library._scoped_library("own_rows", "FRAGMENT") as lib:
        for name in ("first", "second", "third"):
            lib.define(f"{name}(Tensor self) -> Tensor")
            lib.impl(name, lambda x: x * 2 + 1, "CompositeExplicitAutograd")
        yield lib


def row(name: str, **more: Any) -> dict[str, Any]:
    fields = {"op": f"own_rows_{name}", "targets": {f"own_rows.{name}.default": "self"}, "kind": "pointwise", "dtypes": "float", "result": "default", "expr": "{self}*2+1"}
    return {key: value for key, value in {**fields, **more}.items() if value is not None}


COMPOSITE = {"kind": "composite", "result": None, "expr": None}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("via", row("first", **COMPOSITE, via="no_such_thing"), '"own_rows_first": unknown via "no_such_thing"; there are .*softmax'),
    ("check", row("first", check="no_such_thing"), '"own_rows_first": unknown check "no_such_thing"; there are .*cast_pair'),
    ("functional", row("first", writes="self", functional="no_such_row"), '"own_rows_first": functional "no_such_row" is not the name of a row'),
    ("fallback without an overload", row("first", fallback="aten"), '"own_rows_first": fallback "aten" is not namespace.op.overload'),
    ("fallback of no op", row("first", fallback="aten.no_such_op.default"), '"own_rows_first": .*"aten.no_such_op.default"; it has no op'),
    ("fallback of no overload", row("first", fallback="aten.relu.no_such"), '"own_rows_first": .*"aten.relu.no_such"; overloads of that op are default, out'),
    ("no targets", row("first", targets=None), "own_rows_first.*'targets'.*is missing"),
    ("empty targets", row("first", targets={}), "own_rows_first.*'targets'.*is missing"),
    ("a target without arguments", row("first", targets={"own_rows.first.default": ""}), "own_rows_first.*'targets'.*no target names an argument"),
    ("a reduction without targets", {"op": "own_rows_first", "kind": "reduction", "init": "0", "fold": "{a}+{b}"}, "own_rows_first.*'targets'.*is missing"),
]


@pytest.mark.parametrize(("what", "fields", "message"), WRONG, ids=[case[0] for case in WRONG])
def test_a_row_that_cannot_work_is_refused(library: torch.library.Library, launches: Launches, what: str, fields: dict[str, Any], message: str) -> None:
    for given in (fields, json.dumps(fields), [row("second"), fields]):
        with pytest.raises(ValueError, match=f"(?s){message}"):
            register_op(given)
    x = torch.randn(6)
    gm = make_fx(lambda x: torch.ops.own_rows.second(torch.ops.own_rows.first(x)))(x)
    with pytest.warns(fxfuser.FallbackWarning, match="nothing is fused"):
        torch.testing.assert_close(execute(gm, x), gm(x))
    assert launches() == 0, "the refused rows left nothing"


NOT_ROWS: list[tuple[Any, type[Exception], str]] = [
    (3, TypeError, "a row (a mapping), a list of rows, or JSON text of either, not int"),
    (None, TypeError, "a row (a mapping), a list of rows, or JSON text of either, not NoneType"),
    (b"{}", TypeError, "not bytes"),
    ([row("first"), 3], TypeError, "item 1 of the list is int"),
    ([], ValueError, "no rows; expected one row or a list of them"),
    ("[]", ValueError, "no rows; expected one row or a list of them"),
    ({"rows": []}, ValueError, "no rows; expected one row or a list of them"),
    ("3", ValueError, "expected an object or a list of rows"),
    ({}, ValueError, "a row without 'op'"),
]


@pytest.mark.parametrize(("given", "error", "message"), NOT_ROWS, ids=[repr(case[0])[:20] for case in NOT_ROWS])
def test_what_is_no_row_is_told_with_what_is_one(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        register_op(given)


def test_a_list_of_rows_is_registered_as_one(library: torch.library.Library, launches: Launches) -> None:
    register_op([row("second"), row("third")])
    x = torch.randn(6)
    gm = make_fx(lambda x: torch.ops.own_rows.third(torch.ops.own_rows.second(x)))(x)
    torch.testing.assert_close(execute(gm, x, executor="strictly_nvfuser"), (x * 2 + 1) * 2 + 1)
    assert launches() == 1
