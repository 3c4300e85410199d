"""Rows and checks added at run time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fxfuser import _C


def register_op(row: Mapping[str, Any] | str) -> None:
    """Adds one row to the capability table (the format of ``configs/ops.json``): the op fuses from the next import on.

    Raises:
        ValueError: a row that is malformed, contradictory, or names a target that already has a row.

    Example:
        >>> register_op({"op": "softsign", "targets": {"mylib.softsign.default": "self"}, "kind": "pointwise",
        ...              "dtypes": "float", "result": "default", "expr": "{self}/(1+abs({self}))"})
    """
    text = row if isinstance(row, str) else json.dumps({"rows": [dict(row)]})
    _C.register_rows(text)
    _C.drop_handles()


def register_check(name: str, check: Callable[[str, str, list[str | None]], bool | str | None]) -> None:
    """Adds a check that rows may name.

    Args:
        name: the word in a row's ``check`` list.
        check: called with the node's name, its target and its inputs' metas as text; returns True or None to accept, or the
            reason as a string.
    """
    _C.register_check(name, check)
    _C.drop_handles()
