"""fxfuser: runs a PyTorch FX graph with generated, fused kernels on CUDA and on the host.

``execute(gm, *args)`` is the call; ``prepare`` gives a callable, ``explain`` says what is fused and why the rest is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fxfuser import _version

_version.check_torch()

from fxfuser import _C as _C  # noqa: E402  (the torch check must come first)
from fxfuser import _setup  # noqa: E402
from fxfuser._C import CompiledGraph  # noqa: E402
from fxfuser.frontend import DataType, Fusion, FusionCache, FusionDefinition  # noqa: E402
from fxfuser.packs import load_cache, warm  # noqa: E402
from fxfuser.prepare import prepare  # noqa: E402
from fxfuser.report import Report, explain  # noqa: E402
from fxfuser.rows import register_check, register_op  # noqa: E402
from fxfuser.warnings import FallbackWarning  # noqa: E402

if TYPE_CHECKING:
    from fxfuser.capability_mode import NvfuserPrimsMode, TorchRefsNvfuserCapabilityMode
    from fxfuser.traced import make_traced

_setup.configure(_C)

execute = _C.execute
reset_stats = _C.reset_stats
record_kernels = _C.record_kernels
__version__ = _version.VERSION


_TRACING = {"NvfuserPrimsMode": "capability_mode", "TorchRefsNvfuserCapabilityMode": "capability_mode", "make_traced": "traced"}


def __getattr__(name: str) -> Any:
    """The tracing names, imported when they are first asked for: torch's references take a while to load."""
    if name not in _TRACING:
        raise AttributeError(f"module 'fxfuser' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"fxfuser.{_TRACING[name]}"), name)


def stats() -> dict[str, object]:
    """Counters since start or the last ``reset_stats()``.

    Returns:
        ``calls``, ``launches`` (a dict by target), ``aten_steps``, ``view_steps``, ``compiles``, ``plan_hits``, ``plan_misses``,
        ``kernel_memory_hits``, ``kernel_disk_hits``, ``missing_kernels`` (not in the cache while ``compile`` was ``"never"``),
        ``fallbacks``, ``graph_replays``, ``host_memory`` (of large CPU outputs since start: ``kept_bytes`` now without a tensor, blocks
        that were ``fresh`` and ``reused``), ``kernels`` (launches by kernel name, filled only while ``record_kernels(True)`` holds) and ``miss_reasons``.

    Example:
        >>> stats()["launches"]["host"]
        0
    """
    return _C.stats()


def clear_caches(disk: bool = False) -> None:
    """Drops every plan and kernel held in memory, kept memory of CPU outputs, and the once-only warnings; ``disk=True`` empties the cache folder too."""
    from fxfuser import lowering  # late: it imports torch's tracing

    _C.drop_handles()
    _C.drop_fusion_programs()
    lowering.forget()
    _C.clear_caches(disk)


__all__ = [
    "CompiledGraph",
    "DataType",
    "FallbackWarning",
    "Fusion",
    "FusionCache",
    "FusionDefinition",
    "NvfuserPrimsMode",
    "Report",
    "TorchRefsNvfuserCapabilityMode",
    "clear_caches",
    "execute",
    "explain",
    "load_cache",
    "make_traced",
    "prepare",
    "record_kernels",
    "register_check",
    "register_op",
    "reset_stats",
    "stats",
    "warm",
]
