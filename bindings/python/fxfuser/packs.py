"""Packs: folders of compiled kernels that are made on one machine and read on another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch

from fxfuser import _C


def warm(gm: torch.fx.GraphModule, pack: str | os.PathLike[str], *args: Any, arch: str = "host",
         executor_parameters: Mapping[str, Any] | str | None = None, **kwargs: Any) -> int:
    """Compiles into the folder ``pack`` every kernel that calls with such inputs need. Nothing is run, and no GPU is needed.

    Args:
        gm: the module.
        pack: a folder, made if it is not there; kernels that it holds already stay.
        *args, **kwargs: inputs to plan for (fake tensors will do); none to plan for the traced ones.
        arch: ``"host"`` for this machine's processor, or ``"sm_90"`` and the like.
        executor_parameters: as in ``execute``.

    Returns:
        How many kernels there are.

    Raises:
        TypeError: ``gm`` is no GraphModule, or arguments don't fit it.
        ValueError: a graph that has no program of its own (it is lowered for its inputs, or runs as it is), or an unknown ``arch``.
        RuntimeError: a kernel does not compile, or the folder can't be used.
    """
    from fxfuser import calls, fx_import, parameters

    options = parameters.resolve(executor_parameters)
    if not isinstance(gm, torch.fx.GraphModule):
        raise TypeError(f"warm takes a torch.fx.GraphModule, not {type(gm).__name__}")
    try:
        if not _C.has_program(gm):
            fx_import.import_graph(gm)
    except (fx_import.NeedsLowering, fx_import.RunsOriginal) as error:
        raise ValueError(f"there is nothing to compile beforehand: {error}") from None
    return _C.program_warm(gm, "nvfuser", options, calls.example_leaves(gm, args, kwargs), arch, os.fspath(pack))


def load_cache(pack: str | os.PathLike[str]) -> int:
    """Reads compiled kernels from ``pack`` too, after the cache folder. The folder is never written.

    Returns:
        How many of its kernels fit this library, compiler, processor and device.

    Raises:
        ValueError: none does (the text says what they were made for), or the folder is not safe to load code from.
    """
    return _C.load_pack(os.path.abspath(os.fspath(pack)))
