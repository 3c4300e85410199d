"""Rows and checks added at run time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fxfuser import _C


def register_op(row: Mapping[str, Any] | Sequence[Mapping[str, Any]] | str, *, cuda_source: str = "", host_source: str = "") -> None:
    """Adds rows to the capability table (the format of ``configs/ops.json``): their ops fuse from the next import on.

    Args:
        row: one row, a list of rows, or JSON text of either. All are added or, when one is refused, none.
        cuda_source: C++ text of ``__device__`` functions that the pointwise expressions may call beside the listed ones (of which none
            can be replaced). It becomes part of each kernel that calls one. Operands come in the compute type of the op: ``float`` for
            float32 and 16 bits, ``double`` for float64, ``int``, ``long long`` or ``bool`` else; overloads or a template take several.
            Text that doesn't compile costs a warning at the call, which runs through ATen.
        host_source: the same for kernels on the CPU, with ``static inline`` functions.

    Raises:
        TypeError: ``row`` is nothing of that, or a source is no text.
        ValueError: a row that is malformed or contradictory, that names a target that already has a row, or a check,
            decomposition or fallback that there is not; no rows at all; a function that neither the list nor the source of its target
            has; a source that no row calls.

    Example:
        >>> register_op({"op": "softsign", "targets": {"mylib.softsign.default": "self"}, "kind": "pointwise",
        ...              "dtypes": "float", "result": "default", "expr": "{self}/(1+abs({self}))"})
        >>> cube = "template <class T> {} T cube(T x) {{ return x * x * x; }}"
        >>> register_op({"op": "cube", "targets": {"mylib.cube.default": "self"}, "kind": "pointwise", "expr": "cube({self})"},
        ...             cuda_source=cube.format("__device__"), host_source=cube.format("static inline"))
    """
    for name, source in (("cuda_source", cuda_source), ("host_source", host_source)):
        if not isinstance(source, str):
            raise TypeError(f"register_op takes {name} as text, not {type(source).__name__}")
    _C.register_rows(row if isinstance(row, str) else json.dumps(_rows(row)), cuda_source, host_source)
    _C.drop_handles()


def _rows(given: Any) -> Any:
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, Sequence) or isinstance(given, bytes | bytearray):
        raise TypeError(f"register_op takes a row (a mapping), a list of rows, or JSON text of either, not {type(given).__name__}")
    for at, row in enumerate(given):
        if not isinstance(row, Mapping):
            raise TypeError(f"register_op takes rows that are mappings; item {at} of the list is {type(row).__name__}")
    return [dict(row) for row in given]


def register_check(name: str, check: Callable[[str, str, list[str | None]], bool | str | None]) -> None:
    """Adds a check that rows may name.

    Args:
        name: the word in a row's ``check`` list.
        check: called with the node's name, its target and its inputs' metas as text; returns True or None to accept, or the
            reason as a string.
    """
    _C.register_check(name, check)
    _C.drop_handles()
