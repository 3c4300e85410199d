"""Helpers of the GPU tests."""

from __future__ import annotations

import json
import os
from pathlib import Path


def measured(name: str, value: int) -> None:
    """Records a coverage number for tests/run.py to hold against its floor."""
    folder = os.environ.get("FXF_MEASURED")
    if folder:
        Path(folder, f"{name}.json").write_text(json.dumps({"value": value}))
