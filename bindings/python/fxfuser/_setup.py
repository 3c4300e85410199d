"""Tells the native part where this Python installation keeps things."""

from __future__ import annotations

import atexit
import importlib.util
import os
from types import ModuleType


def nvrtc_folders() -> list[str]:
    """Folders of the packages that torch depends on which may hold NVRTC, FXFUSER_NVRTC first."""
    folders = [path for path in os.environ.get("FXFUSER_NVRTC", "").split(os.pathsep) if path]
    spec = importlib.util.find_spec("nvidia")
    for root in list(spec.submodule_search_locations or []) if spec else []:
        for part in ("cu13", "cuda_nvrtc"):
            folder = os.path.join(root, part, "lib")
            if os.path.isdir(folder):
                folders.append(folder)
    return folders


def library_path() -> str | None:
    """The code-generation library beside this package, when it lies there."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libfxfuser_codegen.so")
    return path if os.path.exists(path) else None


def configure(native: ModuleType) -> None:
    """Hands both to the native part; a missing library is told at the first call, not at import."""
    path = library_path()
    if path is not None:
        native.set_library_path(path)
        native.set_nvrtc_path(nvrtc_folders())
        native.use_graph_capture()
        atexit.register(native.finish_background)
