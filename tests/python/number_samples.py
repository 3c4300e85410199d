"""Calls of every overload of the table that takes numbers, as functions of a tensor and one number."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

aten = torch.ops.aten
Call = Callable[[torch.Tensor, Any], torch.Tensor]

# Overloads (tensor, number).
_PLAIN = """add.Scalar sub.Scalar mul.Scalar div.Scalar rsub.Scalar add.Tensor sub.Tensor mul.Tensor div.Tensor fmod.Scalar remainder.Scalar
floor_divide.Scalar eq.Scalar ne.Scalar lt.Scalar le.Scalar gt.Scalar ge.Scalar pow.Tensor_Scalar copysign.Scalar clamp.default clip.default
clamp_min.default clamp_max.default hardshrink.default softshrink.default leaky_relu.default celu.default elu.default xlogy.Scalar_Other
bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar bitwise_left_shift.Tensor_Scalar bitwise_right_shift.Tensor_Scalar""".split()
_FOREACH = "add sub mul div clamp_min clamp_max maximum minimum pow".split()


def _turned(x: torch.Tensor) -> torch.Tensor:
    return x.flip(0)


def _each(op: Any, x: torch.Tensor, number: Any) -> torch.Tensor:
    return op([x], number)[0]


def _each_own(op: Any, x: torch.Tensor, number: Any) -> torch.Tensor:
    return op([x, x], [number, 1])[0]


CALLS: dict[str, Call] = {
    **{name: getattr(getattr(aten, name.split(".")[0]), name.split(".")[1]) for name in _PLAIN},
    **{f"_foreach_{name}.Scalar": partial(_each, getattr(aten, f"_foreach_{name}").Scalar) for name in _FOREACH},
    **{f"_foreach_{name}.ScalarList": partial(_each_own, getattr(aten, f"_foreach_{name}").ScalarList) for name in _FOREACH},
    "add.Tensor alpha": lambda x, s: aten.add.Tensor(x, _turned(x), alpha=s),
    "sub.Tensor alpha": lambda x, s: aten.sub.Tensor(x, _turned(x), alpha=s),
    "rsub.Tensor alpha": lambda x, s: aten.rsub.Tensor(x, _turned(x), alpha=s),
    "add.Scalar alpha": lambda x, s: aten.add.Scalar(x, 1, s),
    "_foreach_add.List alpha": lambda x, s: aten._foreach_add.List([x], [_turned(x)], alpha=s)[0],
    "addcmul value": lambda x, s: aten.addcmul(x, _turned(x), x, value=s),
    "addcdiv value": lambda x, s: aten.addcdiv(x, _turned(x), x, value=s),
    "lerp.Scalar": lambda x, s: aten.lerp.Scalar(x, _turned(x), s),
    "div.Scalar_mode floor": lambda x, s: aten.div.Scalar_mode(x, s, rounding_mode="floor"),
    "div.Scalar_mode trunc": lambda x, s: aten.div.Scalar_mode(x, s, rounding_mode="trunc"),
    "pow.Scalar": lambda x, s: aten.pow.Scalar(s, x),
    "xlogy.Scalar_Self": lambda x, s: aten.xlogy.Scalar_Self(s, x),
    "clamp.default max": lambda x, s: aten.clamp.default(x, None, s),
    "clamp.default low": lambda x, s: aten.clamp.default(x, s, 2),
    "clamp.default high": lambda x, s: aten.clamp.default(x, -1, s),
    "hardtanh low": lambda x, s: aten.hardtanh(x, s, 2),
    "hardtanh high": lambda x, s: aten.hardtanh(x, -1, s),
    "hardtanh_backward": lambda x, s: aten.hardtanh_backward(_turned(x), x, -1, s),
    "elu scale": lambda x, s: aten.elu(x, 1, s, 1),
    "elu input_scale": lambda x, s: aten.elu(x, 1, 1, s),
    "elu_backward alpha": lambda x, s: aten.elu_backward(_turned(x), s, 1, 1, False, x),
    "leaky_relu_backward": lambda x, s: aten.leaky_relu_backward(_turned(x), x, s, False),
    "softplus beta": lambda x, s: aten.softplus(x, s, 20),
    "softplus threshold": lambda x, s: aten.softplus(x, 1, s),
    "softplus_backward beta": lambda x, s: aten.softplus_backward(_turned(x), x, s, 20),
    "threshold": lambda x, s: aten.threshold(x, s, 5),
    "threshold value": lambda x, s: aten.threshold(x, 1, s),
    "threshold_backward": lambda x, s: aten.threshold_backward(_turned(x), x, s),
    "masked_fill.Scalar": lambda x, s: aten.masked_fill.Scalar(x, x > 0, s),
    "where.ScalarSelf": lambda x, s: aten.where.ScalarSelf(x > 0, s, x),
    "where.ScalarOther": lambda x, s: aten.where.ScalarOther(x > 0, x, s),
    "constant_pad_nd": lambda x, s: aten.constant_pad_nd(x, [1, 2], s),
    "full_like": lambda x, s: aten.full_like(x, s),
    "new_full": lambda x, s: aten.new_full(x, [5, 7], s),
    "nan_to_num": lambda x, s: aten.nan_to_num(x, s),
    "huber_loss": lambda x, s: aten.huber_loss(x, _turned(x), 0, s),
    "smooth_l1_loss": lambda x, s: aten.smooth_l1_loss(x, _turned(x), 0, s),
    "var.correction": lambda x, s: aten.var.correction(x.reshape(-1, 4), [1], correction=s),
    "linalg_vector_norm": lambda x, s: aten.linalg_vector_norm(x.reshape(-1, 4), s, [1]),
    "norm.ScalarOpt_dim": lambda x, s: aten.norm.ScalarOpt_dim(x.reshape(-1, 4), s, [1]),
}
NUMBERS: tuple[Any, ...] = (0.1, 1e-45, 1e-40, 65519.0, 65520.0, 70000.0, 1e39, -0.0, float("inf"), float("nan"), 3, 2**31, 2**53 + 1, True, -2, 300)
