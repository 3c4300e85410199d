"""Every row's CUDA text, compiled and run in the emulator."""

from __future__ import annotations

import fxfuser
import pytest
import torch
from measured import measured
from table_check import check_rows

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_emulated(dtype: torch.dtype) -> None:
    before = fxfuser.stats()["launches"]["cuda"]
    measured(f"emulated_targets_{str(dtype).removeprefix('torch.')}", check_rows(dtype, each=1))
    assert fxfuser.stats()["launches"]["cuda"] > before
    assert fxfuser.stats()["launches"]["host"] == 0
