"""The text that stands for codegen/cuda/device/00_machine.cuh on the CPU: the files of tests/emulator/machine, in order."""

from __future__ import annotations

from pathlib import Path


def machine_text() -> str:
    return "".join(part.read_text() for part in sorted((Path(__file__).resolve().parent / "machine").glob("*.h")))
