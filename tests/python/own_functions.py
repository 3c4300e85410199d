"""Rows and sources for the tests of functions that rows bring along."""

from __future__ import annotations

from typing import Any

CUBE = "template <class T> @ T cube(T x) { return x * x * x; }"


def sources(text: str) -> dict[str, str]:
    """The same text for both targets; @ stands for what makes a function theirs."""
    return {"cuda_source": text.replace("@", "__device__"), "host_source": text.replace("@", "static inline")}


def row(op: Any, text: str, operands: str = "a") -> dict[str, Any]:
    """A pointwise row of this expression; without one where the text is empty."""
    name = str(op)
    fields = {"op": name.replace(".", "_"), "targets": {name: operands}, "kind": "pointwise", "dtypes": "any"}
    return {**fields, "expr": text} if text else fields
