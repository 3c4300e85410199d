"""The version, and the one check that must come before the native part is loaded."""

from __future__ import annotations

VERSION = "0.1.0"
TORCH_SERIES = "2.11"


def check_torch() -> None:
    """Raises ImportError naming both versions when the installed torch is not of the series that this build is for."""
    try:
        from torch.version import __version__ as found
    except ModuleNotFoundError as error:
        raise ImportError(f"fxfuser {VERSION} needs torch {TORCH_SERIES}.x, and no torch is installed") from error
    if not found.startswith(TORCH_SERIES + "."):
        raise ImportError(f"fxfuser {VERSION} is built for torch {TORCH_SERIES}.x, but torch {found} is installed")
