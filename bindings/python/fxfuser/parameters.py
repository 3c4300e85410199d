"""``executor_parameters``: a dictionary, or the name of a stored one."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping
from typing import Any


@functools.cache
def named() -> dict[str, dict[str, Any]]:
    """The stored dictionaries by name."""
    text = importlib.resources.files("fxfuser").joinpath("configs/parameters.json").read_text()
    return dict(json.loads(text))


def resolve(parameters: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """The dictionary that ``parameters`` means.

    Raises:
        ValueError: a name that is not stored (the message lists the stored ones).
        TypeError: neither a mapping with string keys nor a name.
    """
    if parameters is None:
        return {}
    if isinstance(parameters, str):
        if parameters not in named():
            raise ValueError(f"executor_parameters names {parameters!r}; stored are {', '.join(sorted(named()))}")
        return dict(named()[parameters])
    if not isinstance(parameters, Mapping):
        raise TypeError(f"executor_parameters must be a dictionary or the name of one, not {type(parameters).__name__}")
    for key in parameters:
        if not isinstance(key, str):
            raise TypeError(f"executor_parameters has a key that is not a string: {key!r}")
    return dict(parameters)
