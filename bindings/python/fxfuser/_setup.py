"""Tells the native part where this Python installation keeps things."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import logging
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


def configure(native: ModuleType) -> None:
    """Hands them to the native part, which loads the library; one that can't be loaded is told at the first call that needs it."""
    with contextlib.suppress(RuntimeError):
        native.set_nvrtc_path(nvrtc_folders())
        native.use_graph_capture()
        native.use_group_printer()
        native.use_loggers([logging.getLogger(f"fxfuser.{topic}") for topic in ("compile", "cache", "guard")])
        atexit.register(native.finish_background)
