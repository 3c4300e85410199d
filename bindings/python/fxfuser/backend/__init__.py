"""``torch.compile(model, backend="fxfuser")``: found by torch through the entry points, with no import."""

from __future__ import annotations

from fxfuser.backend.entry import Backend

fxfuser = Backend("fxfuser")
nvprims_nvfuser = Backend("nvprims_nvfuser")
nvprims_aten = Backend("nvprims_aten")

__all__ = ["Backend", "fxfuser", "nvprims_aten", "nvprims_nvfuser"]
