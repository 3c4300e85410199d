"""Random bits in kernels of each form: the words that ATen computes from the same seed, whatever order threads draw them in."""

from __future__ import annotations

from collections.abc import Callable

import fxfuser
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx


def mask(seed: torch.Tensor, node: int, *shape: int) -> torch.Tensor:
    """Of half of all elements."""
    return torch.ops.fxfuser.random_bits(seed, node, shape) < 1 << 31


FORMS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "pointwise": lambda x, s: x * mask(s, 1, *x.shape) * 2,
    "two_nodes": lambda x, s: x * mask(s, 1, *x.shape) + 3 * mask(s, 2, *x.shape),
    "rows": lambda x, s: torch.softmax(x, -1) * mask(s, 1, *x.shape),
    "row_sums": lambda x, s: (x * mask(s, 1, *x.shape)).sum(-1),
    "column_sums": lambda x, s: (x * mask(s, 1, *x.shape)).sum(0),
    "transposed": lambda x, s: ((x * mask(s, 1, *x.shape)).t() * 2).contiguous(),
    "layer_norm": lambda x, s: torch.nn.functional.layer_norm(x * mask(s, 1, *x.shape), x.shape[-1:]) + x,
}


@pytest.mark.parametrize("name", FORMS)
def test_masks_in_each_form(name: str) -> None:
    seed = torch.tensor(-0x0123456789ABCDEF)
    for rows, columns in ((9, 33), (64, 40)):
        x = torch.randn(rows, columns)
        gm = make_fx(FORMS[name])(x, seed)
        before = fxfuser.stats()["launches"]["cuda"]
        ours = fxfuser.execute(gm, x, seed, executor="strictly_nvfuser")
        assert fxfuser.stats()["launches"]["cuda"] > before
        torch.testing.assert_close(ours, gm(x, seed), rtol=1e-5, atol=1e-5)
