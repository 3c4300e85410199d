"""Every row, every dtype: run in generated host kernels against ATen, with the layouts that eager gives."""

from __future__ import annotations

import pytest
import torch
from measured import measured
from samples import DTYPES
from table_check import check_rows

TWICE = (torch.float32,)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_on_host(dtype: torch.dtype) -> None:
    measured(f"host_targets_{str(dtype).removeprefix('torch.')}", check_rows(dtype, each=2 if dtype in TWICE else 1))
