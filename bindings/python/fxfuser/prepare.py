"""A GraphModule as a callable with its options bound."""

from __future__ import annotations

from typing import Any

import torch

from fxfuser._C import CompiledGraph


def prepare(gm: torch.fx.GraphModule, *, executor: str = "nvfuser", **options: Any) -> CompiledGraph:
    """A callable that executes ``gm`` with these options.

    Args:
        gm: the module.
        executor: as in ``execute``.
        **options: keys of ``executor_parameters``.

    Raises:
        TypeError: ``gm`` is no GraphModule; an option of a wrong type.
        ValueError: an unknown executor, or a value that an option can't have.
    """
    if not isinstance(gm, torch.fx.GraphModule):
        raise TypeError(f"prepare takes a torch.fx.GraphModule, not {type(gm).__name__}")
    return CompiledGraph(gm, executor, options)
