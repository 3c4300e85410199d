"""Remainders and powers of the CUDA text at special values: exact remainders, whatever the quotient, as eager's CUDA kernels give."""

from __future__ import annotations

from functools import partial

import fxfuser
import pytest
import torch
from test_special_values import pairs, values
from torch.fx.experimental.proxy_tensor import make_fx


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_fmod_is_exact(dtype: torch.dtype) -> None:
    x, y = pairs(dtype)
    gm = make_fx(lambda x, y: torch.fmod(x, y))(x, y)
    before = fxfuser.stats()["launches"]["cuda"]
    ours = fxfuser.execute(gm, x, y, executor_parameters={"on_error": "raise"})
    assert fxfuser.stats()["launches"]["cuda"] > before
    torch.testing.assert_close(ours, torch.fmod(x.double(), y.double()).to(dtype), rtol=0, atol=0, equal_nan=True)


def test_powers_of_half() -> None:
    x = values(torch.float16)
    for exponent in (0.5, -0.5):
        gm = make_fx(partial(torch.pow, exponent=exponent))(x)
        before = fxfuser.stats()["launches"]["cuda"]
        ours, eager = fxfuser.execute(gm, x, executor_parameters={"on_error": "raise"}), gm(x)
        assert fxfuser.stats()["launches"]["cuda"] > before
        torch.testing.assert_close(ours, eager, rtol=1e-3, atol=0, equal_nan=True)
        assert torch.equal(torch.signbit(ours[~ours.isnan()]), torch.signbit(eager[~eager.isnan()]))
