"""The names under which code of 2022 reaches the fuser, answered by fxfuser.

``install()`` puts them in place and ``uninstall()`` takes them away again; ``with installed():`` does both.
``python -m fxfuser.compat script.py [arguments]`` runs a script with them in place. An ``nvfuser`` package that is installed is
never shadowed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import runpy
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch._prims.context
import torch._prims.executor

from fxfuser import capability_mode, compat_executor, nvprims
from fxfuser.traced import make_traced

_MISSING = object()
_FRONTEND = ("Fusion", "FusionDefinition", "FusionCache", "DataType", "Tensor", "Scalar", "compute_contiguity")
_undo: list[tuple[Any, str, Any]] = []  # (owner, name, what was there), last first to be put back


def _frontend(name: str) -> Any:
    """A name of the definition frontend.

    Raises:
        ImportError: this build has no frontend (an AttributeError would lose its text in ``from nvfuser import Fusion``).
        AttributeError: the frontend has no such name.
    """
    if importlib.util.find_spec("fxfuser.frontend") is None:
        raise ImportError(f"{name} needs fxfuser.frontend, which this build of fxfuser does not have")
    return getattr(importlib.import_module("fxfuser.frontend"), name)


def _definition_module(name: str, doc: str) -> types.ModuleType:
    """A module whose names are the frontend's, looked up when they are asked for."""
    module = types.ModuleType(name, doc)

    def find(attribute: str) -> Any:
        if attribute in _FRONTEND:
            return _frontend(attribute)
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}")

    module.__dict__["__getattr__"] = find
    module.__dict__["__dir__"] = lambda: sorted(_FRONTEND)
    return module


def _nvprims_module() -> types.ModuleType:
    module = types.ModuleType("torch._prims.nvfuser_prims", "torch.ops.nvprims, which importing fxfuser defines.")
    module.__dict__.update(nvprims=torch.ops.nvprims, register_nvprims=nvprims.register_nvprims)
    module.__dict__.update({name: getattr(torch.ops.nvprims, name) for name in nvprims.names()})
    return module


def _set(owner: Any, name: str, value: Any) -> None:
    store = owner if isinstance(owner, dict) else vars(owner)
    _undo.append((owner, name, store.get(name, _MISSING)))
    if isinstance(owner, dict):
        owner[name] = value
    else:
        setattr(owner, name, value)


def _add_module(name: str, module: types.ModuleType) -> None:
    _set(sys.modules, name, module)
    parent, _, leaf = name.rpartition(".")
    if parent:
        _set(sys.modules[parent], leaf, module)


def _nvfuser_is_installed() -> bool:
    return "nvfuser" in sys.modules or importlib.util.find_spec("nvfuser") is not None


def is_installed() -> bool:
    """True between ``install()`` and ``uninstall()``."""
    return bool(_undo)


def install() -> None:
    """Puts the old names in place; a second call does nothing.

    ``torch._prims.executor.execute`` then takes all three executors, ``"aten"`` by default; the capability modes are in
    ``torch._prims.context``; ``torch._prims.nvfuser_executor``, ``torch._prims.nvfuser_prims``, ``torch._C._nvfuser``, ``nvfuser`` and
    ``nvfuser._C`` can be imported.
    """
    if is_installed():
        return
    shadows = _nvfuser_is_installed()
    nvprims.register_nvprims()
    _set(torch._prims.executor, "execute", compat_executor.execute)
    _set(torch._prims.executor, "make_traced", make_traced)
    context = torch._prims.context
    for name in ("NvfuserPrimsMode", "TorchRefsNvfuserCapabilityMode"):
        _set(context, name, getattr(capability_mode, name))
    for name in ("_is_func_unsupported_nvfuser", "_is_node_supported_nvfuser"):
        _set(context, name, getattr(compat_executor, name))
    _set(context.TorchRefsMode, "push", classmethod(lambda cls, *args, **kwargs: cls(*args, **kwargs)))
    for name in ("getnvFuserDtype", "_torch_dtype_to_nvfuser_dtype_map"):
        _set(torch._prims_common, name, getattr(compat_executor, name))
    _add_module("torch._prims.nvfuser_executor", compat_executor)
    _add_module("torch._prims.nvfuser_prims", _nvprims_module())
    _add_module("torch._C._nvfuser", _definition_module("torch._C._nvfuser", "The definition frontend."))
    if not shadows:
        package = _definition_module("nvfuser", "The definition frontend.")
        package.__path__ = []
        _add_module("nvfuser", package)
        _add_module("nvfuser._C", _definition_module("nvfuser._C", "The definition frontend."))


def uninstall() -> None:
    """Puts back what was there before ``install()``."""
    while _undo:
        owner, name, before = _undo.pop()
        if isinstance(owner, dict):
            if before is _MISSING:
                owner.pop(name, None)
            else:
                owner[name] = before
        elif before is not _MISSING:
            setattr(owner, name, before)
        elif name in vars(owner):
            delattr(owner, name)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """The old names for the length of a ``with`` block; within ``install()`` it changes nothing.

    Example:
        >>> with installed():
        ...     from torch._prims.context import TorchRefsNvfuserCapabilityMode
    """
    before = is_installed()
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()


def main(arguments: list[str]) -> int:
    """Runs a script with the old names in place."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m fxfuser.compat script.py [arguments]")
        return 0 if arguments else 2
    script = Path(arguments[0])
    if not script.is_file():
        print(f"python -m fxfuser.compat: there is no file {script}", file=sys.stderr)
        return 2
    sys.argv = [str(script), *arguments[1:]]
    sys.path[0] = str(script.resolve().parent)
    install()
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    from fxfuser import compat  # the state is the importable module's, not this one's

    sys.exit(compat.main(sys.argv[1:]))
