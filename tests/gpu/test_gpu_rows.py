"""Every row in every dtype on the GPU, many samples to one graph."""

from __future__ import annotations

import pytest
import torch
from measured import measured
from table_check import check_rows

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.bool)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_on_cuda(dtype: torch.dtype) -> None:
    measured(f"cuda_targets_{str(dtype).removeprefix('torch.')}", check_rows(dtype, "cuda"))
