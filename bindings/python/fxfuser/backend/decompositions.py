"""What AOTAutograd opens while it traces: ops without a row whose parts all have one. An op with a row stays whole."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from torch._decomp import get_decompositions
from torch._ops import OpOverload
from torch.ops import aten

from fxfuser import _C
from fxfuser.backend.openings import OWN
from fxfuser.backend.random import seeded_forms

# Packets that torch's own decompositions open into rows and nothing else, at no more work: a test opens each. Reads by several
# indices, matmuls, convolutions, pools, attention, random ops and sums over a prefix stay with ATen.
OPENED = """
    _prelu_kernel_backward addr binary_cross_entropy_backward block_diag channel_shuffle count_nonzero diag_embed eye fill glu_backward
    huber_loss_backward ldexp linalg_cross log_sigmoid_forward logit logit_backward multi_margin_loss mvlgamma nansum
    narrow_copy native_dropout_backward pixel_shuffle pixel_unshuffle rot90 rrelu_with_noise_backward sinc smooth_l1_loss_backward
    soft_margin_loss soft_margin_loss_backward special_entr special_xlog1py squeeze_copy
""".split()


@functools.cache
def _opened() -> dict[Any, Callable[..., Any]]:
    torchs = get_decompositions([getattr(aten, name) for name in OPENED])
    return {overload: function for overload, function in torchs.items() if isinstance(overload, OpOverload) and not overload._schema.is_mutable} | OWN


def decompositions(fused_rng: bool = False) -> dict[Any, Callable[..., Any]]:
    """The table for a trace that starts now: rows may be registered at run time. ``fused_rng`` gives random ops their seeded forms."""
    whole = {target for row in json.loads(_C.ops_json()) for target in row["targets"]}
    opened = {overload: function for overload, function in _opened().items() if str(overload) not in whole}
    return opened | seeded_forms() if fused_rng else opened
