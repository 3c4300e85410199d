"""What AOTAutograd opens while it traces: ops without a row that become pointwise rows and reductions. An op with a row stays whole."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from torch._decomp import get_decompositions
from torch.ops import aten

from fxfuser import _C

# Packets that torch's own decompositions open into rows. Reads, matmuls, convolutions, pools, attention and random ops stay.
OPENED = """
    _prelu_kernel addcdiv addcmul addmv celu celu_backward elu elu_backward glu glu_backward hardshrink hardsigmoid hardsigmoid_backward
    hardswish hardswish_backward hardtanh hardtanh_backward huber_loss_backward leaky_relu leaky_relu_backward lerp log_sigmoid_backward
    log_sigmoid_forward logit_backward mish mish_backward mse_loss native_batch_norm_backward native_group_norm_backward rsub
    sigmoid_backward silu silu_backward smooth_l1_loss_backward softplus softplus_backward softshrink tanh_backward threshold
    threshold_backward xlogy
""".split()


@functools.cache
def _opened() -> dict[Any, Callable[..., Any]]:
    return dict(get_decompositions([getattr(aten, name) for name in OPENED if hasattr(aten, name)]))


def decompositions() -> dict[Any, Callable[..., Any]]:
    """The table for a trace that starts now: rows may be registered at run time."""
    whole = {target for row in json.loads(_C.ops_json()) for target in row["targets"]}
    return {overload: function for overload, function in _opened().items() if str(overload) not in whole}
