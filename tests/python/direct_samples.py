"""Samples of overloads that OpInfo's functions never dispatch to: prims, Scalar overloads, backward formulas, factories.

A line gives an overload and its arguments; tensors are made per dtype, and what eager refuses for a dtype is no sample.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import fxfuser
import torch
import torch.fx
from samples import Sample
from torch.utils import _pytree as pytree


class Maker:
    """Arguments of one dtype."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.random = torch.Generator().manual_seed(7)

    def t(self, *shape: int) -> torch.Tensor:
        shape = shape or (4, 7)
        if self.dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=self.random).bool()
        if self.dtype.is_floating_point:
            return (torch.randn(shape, generator=self.random) * 1.5).to(self.dtype)
        return torch.randint(0 if self.dtype == torch.uint8 else -6, 7, shape, generator=self.random).to(self.dtype)

    def positive(self, *shape: int) -> torch.Tensor:
        return self.t(*shape).abs() + 1 if self.dtype != torch.bool else self.t(*shape)

    def unit(self) -> torch.Tensor:
        return torch.sigmoid(self.t()) if self.dtype.is_floating_point else self.t()

    def small(self) -> torch.Tensor:
        """Shift counts and exponents."""
        return torch.randint(0, 4, (4, 7), generator=self.random).to(self.dtype)

    def flags(self) -> torch.Tensor:
        return torch.randint(0, 2, (4, 7), generator=self.random).bool()

    def index(self, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, high, shape, generator=self.random)


Arguments = Callable[[Maker], tuple[Any, ...]]

_UNARY_PRIMS = """abs acos acosh asin asinh atan atanh bitwise_not ceil clone cos cosh erf erf_inv erfc exp exp2 expm1 floor
isfinite lgamma log log10 log1p log2 neg reciprocal round rsqrt sign signbit sin sinh sqrt tan tanh trunc view_of""".split()
_BINARY_PRIMS = """add atan2 bitwise_and bitwise_or bitwise_xor div eq fmax fmin fmod ge gt hypot le lt maximum minimum mul ne
nextafter remainder sub""".split()
_UNARY_ATEN = """_foreach none adjoint alias arctan2 celu contiguous detach elu fix gelu hardsigmoid leaky_relu lift_fresh_copy
negative relu relu6 selu silu softplus special_erf special_erfc special_erfinv special_exp2 special_expit special_expm1
special_log1p""".split()


def _one(m: Maker) -> tuple[Any, ...]:
    return (m.t(),)


def _two(m: Maker) -> tuple[Any, ...]:
    return m.t(), m.t()


def _scalar(m: Maker) -> tuple[Any, ...]:
    return m.t(), (1.5 if m.dtype.is_floating_point else 2)


def _whole(m: Maker) -> tuple[Any, ...]:
    return m.small(), 2


def _lists(m: Maker) -> tuple[Any, ...]:
    return [m.t(), m.t(3)], [m.t(), m.positive(3)]


def _list(m: Maker) -> tuple[Any, ...]:
    return ([m.positive(), m.positive(3)],)


def _list_scalar(m: Maker) -> tuple[Any, ...]:
    return [m.t(), m.t(3)], 3


def _batch_norm(m: Maker) -> tuple[Any, ...]:
    return m.t(2, 3, 4), m.t(3), m.t(3), m.t(3), m.positive(3)


SEED = torch.tensor(0x299F31D0A4093822)
SEEDED: list[tuple[str, Arguments]] = [
    ("fxfuser.random_bits.default", lambda m: (SEED, 3, [4, 7])),
    ("fxfuser.random_bits.default", lambda m: (SEED, (1 << 32) + 1, [2, 3, 5])),
    ("fxfuser.seeded_bernoulli.p", lambda m: (m.t(), 0.3, None, SEED, 4)),
    ("fxfuser.seeded_dropout.default", lambda m: (m.t(), 0.5, True, SEED, 5)),
    ("fxfuser.seeded_native_dropout.default", lambda m: (m.t(3, 4, 5).transpose(0, 1), 0.25, None, SEED, 6)),
    ("fxfuser.seeded_rand.default", lambda m: ([4, 7], m.dtype, None, None, None, SEED, 7)),
    ("fxfuser.seeded_rand_like.default", lambda m: (m.t(), None, None, None, None, None, SEED, 8)),
    ("fxfuser.seeded_uniform.default", lambda m: (m.t(), -2.0, 3.0, None, SEED, 9)),
]
TABLE: list[tuple[str, Arguments]] = [
    *SEEDED,
    *((f"prims.{name}.default", _one) for name in _UNARY_PRIMS),
    *((f"prims.{name}.default", _two) for name in _BINARY_PRIMS),
    *((f"aten.{name}.default", _one) for name in _UNARY_ATEN if hasattr(torch.ops.aten, name)),
    *((f"aten.{name}.Scalar", _scalar) for name in "add copysign div eq floor_divide fmod ge gt le lt mul ne remainder rsub sub".split()),
    *((f"aten.bitwise_{name}.Scalar", _whole) for name in "and or xor".split()),
    *((f"aten.__{name}__.Scalar", _whole) for name in "and or xor lshift rshift".split()),
    *((f"aten.__{name}__.Tensor", lambda m: (m.t(), m.small())) for name in "and or xor lshift rshift".split()),
    *((f"aten.bitwise_{name}_shift.Tensor_Scalar", _whole) for name in "left right".split()),
    *((f"aten._foreach_{name}.default", _list) for name in "abs exp neg reciprocal sigmoid sqrt tanh".split()),
    *((f"aten._foreach_{name}.List", _lists) for name in "add sub mul div".split()),
    *((f"aten._foreach_{name}.Scalar", _list_scalar) for name in "add sub mul div".split()),
    *((f"aten.{name}.default", _two) for name in "arctan2 sigmoid_backward tanh_backward silu_backward gelu_backward hardswish_backward hardsigmoid_backward mish_backward".split()),
    *((f"aten.{name}.Tensor", _two) for name in "multiply subtract".split()),
    *((f"aten.{name}.default", lambda m: (m.t(), m.t(), 1)) for name in "l1_loss mse_loss huber_loss smooth_l1_loss soft_margin_loss".split()),
    *((f"aten._foreach_{name}.ScalarList", lambda m: ([m.t(), m.t(3)], [3, 2])) for name in "add sub mul div clamp_min clamp_max minimum maximum".split()),
    *((f"aten._foreach_{name}.Scalar", _list_scalar) for name in "clamp_min clamp_max minimum maximum".split()),
    *((f"aten._foreach_{name}.List", _lists) for name in "clamp_min clamp_max minimum maximum".split()),
    ("aten.glu.default", lambda m: (m.t(4, 6), -1)),
    ("aten.glu.default", lambda m: (m.t(4, 3, 2).permute(2, 0, 1), 0)),
    ("prims.pow.default", lambda m: (m.t(), m.small())),
    ("prims.shift_left.default", lambda m: (m.t(), m.small())),
    ("prims.shift_right_arithmetic.default", lambda m: (m.t(), m.small())),
    ("prims.where.default", lambda m: (m.flags(), m.t(), m.t())),
    ("prims.amax.default", lambda m: (m.t(), [1])),
    ("prims.amin.default", lambda m: (m.t(), [0])),
    ("prims.sum.default", lambda m: (m.t(), [0])),
    ("prims.sum.default", lambda m: (m.t(), [0, 1])),
    ("prims.prod.default", lambda m: (m.unit(), [1])),
    ("prims.var.default", lambda m: (m.t(), [1], 1)),
    ("prims.broadcast_in_dim.default", lambda m: (m.t(7), [2, 4, 7], [2])),
    ("prims.broadcast_in_dim.default", lambda m: (m.t(4, 1), [3, 4, 7], [1, 2])),
    ("prims.cat.default", lambda m: ([m.t(2, 3), m.t(4, 3)], 0)),
    ("prims.convert_element_type.default", lambda m: (m.t(), torch.float32)),
    ("prims.convert_element_type.default", lambda m: (m.t(), torch.float16)),
    ("prims.convert_element_type.default", lambda m: (m.t(), torch.int32)),
    ("prims.reshape.default", lambda m: (m.t(), [7, 4])),
    ("prims.squeeze.default", lambda m: (m.t(4, 1, 7), [1])),
    ("prims.transpose.default", lambda m: (m.t(2, 3, 4), [2, 0, 1])),
    ("aten._fused_rms_norm.default", lambda m: (m.t(), [7], m.t(7), 1e-5)),
    ("aten._log_softmax_backward_data.default", lambda m: (m.t(), torch.log_softmax(m.t(), 1), 1, m.dtype)),
    ("aten._softmax_backward_data.default", lambda m: (m.t(), torch.softmax(m.t(), 0), 0, m.dtype)),
    ("aten._native_batch_norm_legit_no_training.default", lambda m: (*_batch_norm(m), 0.1, 1e-5)),
    ("aten._native_batch_norm_legit.no_stats", lambda m: (m.t(2, 3, 4), m.t(3), m.t(3), True, 0.1, 1e-5)),
    ("aten._native_batch_norm_legit.default", lambda m: (*_batch_norm(m), False, 0.1, 1e-5)),
    ("aten._prelu_kernel.default", lambda m: (m.t(), m.t(1, 7))),
    ("aten._reshape_alias.default", lambda m: (m.t(), [7, 4], [4, 1])),
    ("aten._safe_softmax.default", lambda m: (torch.where(m.flags(), m.t(), float("-inf")), 1)),
    ("aten._safe_softmax.default", lambda m: (torch.full((3, 5), float("-inf"), dtype=m.dtype), 1)),
    ("aten._unsafe_view.default", lambda m: (m.t(), [28])),
    ("aten.all.dims", lambda m: (m.t(), [1])),
    ("aten.any.dims", lambda m: (m.t(), [0, 1])),
    ("aten.clamp.default", lambda m: (m.t(), 1, 3)),
    ("aten.clamp.default", lambda m: (m.t(), None, 2)),
    ("aten.clamp_max.default", _scalar),
    ("aten.clamp_min.default", _scalar),
    ("aten.clip.default", lambda m: (m.t(), 1, 3)),
    ("aten.concat.default", lambda m: ([m.t(2, 3), m.t(2, 5)], 1)),
    ("aten.div.Scalar_mode", lambda m: (m.t(), 2, {"rounding_mode": "floor"})),
    ("aten.div.Scalar_mode", lambda m: (m.t(), 3, {"rounding_mode": "trunc"})),
    ("aten.pow.Scalar", lambda m: (2, m.small())),
    ("aten.dropout.default", lambda m: (m.t(), 0.5, False)),
    ("aten.native_dropout.default", lambda m: (m.t(), 0.5, False)),
    ("aten.elu_backward.default", lambda m: (m.t(), 1.0, 1.0, 1.0, False, m.t())),
    ("aten.elu_backward.default", lambda m: (m.t(), 1.5, 1.1, 0.7, True, m.t())),
    ("aten.gelu.default", lambda m: (m.t(),)),
    ("aten.hardtanh_backward.default", lambda m: (m.t(), m.t(), -1.0, 1.0)),
    ("aten.leaky_relu_backward.default", lambda m: (m.t(), m.t(), 0.1, False)),
    ("aten.softplus_backward.default", lambda m: (m.t(), m.t(), 1.0, 20.0)),
    ("aten.threshold_backward.default", lambda m: (m.t(), m.t(), 0)),
    ("aten.mse_loss_backward.default", lambda m: (m.t(), m.t(), m.t(), 0)),
    ("aten.mse_loss_backward.default", lambda m: (m.t(1)[0], m.t(), m.t(), 1)),
    ("aten.log_sigmoid_backward.default", lambda m: (m.t(), m.t(), m.t(0))),
    ("aten.nll_loss_backward.default", lambda m: (m.t(4), m.t(), m.index(7, 4), None, 0, -100, m.t(1)[0])),
    ("aten.nll_loss_backward.default", lambda m: (m.t(1)[0], m.t(), m.index(7, 4), None, 1, -100, m.positive(1)[0])),
    ("aten.native_layer_norm_backward.default",
     lambda m: (m.t(), m.t(), [7], *torch.native_layer_norm(m.t(), [7], None, None, 1e-5)[1:], m.t(7), m.t(7), [True, True, True])),
    ("aten.native_batch_norm_backward.default", lambda m: (m.t(2, 3, 4), *_batch_norm(m)[:2], *_batch_norm(m)[3:], m.t(3), m.positive(3), True, 1e-5, [True, True, True])),
    ("aten.native_batch_norm_backward.default", lambda m: (m.t(2, 3, 4), *_batch_norm(m)[:2], *_batch_norm(m)[3:], m.t(3), m.positive(3), False, 1e-5, [True, True, True])),
    ("aten.native_group_norm_backward.default", lambda m: (m.t(2, 6, 5), m.t(2, 6, 5), m.t(2, 3), m.positive(2, 3), m.t(6), 2, 6, 5, 3, [True, True, True])),
    ("aten.index.Tensor", lambda m: (m.t(5, 6), [m.index(5, 3)])),
    ("aten.index.Tensor", lambda m: (m.t(5, 6), [None, m.index(6, 2, 2)])),
    ("aten.movedim.int", lambda m: (m.t(2, 3, 4), 0, 2)),
    ("aten.swapaxes.default", lambda m: (m.t(2, 3, 4), 0, 2)),
    ("aten.norm.Scalar", lambda m: (m.t(), 2)),
    ("aten.norm.ScalarOpt_dim", lambda m: (m.t(), 2, [1])),
    ("aten.select_copy.int", lambda m: (m.t(), 1, 3)),
    ("aten.slice_copy.Tensor", lambda m: (m.t(), 1, 1, 6, 2)),
    ("aten.split.sizes", lambda m: (m.t(), [3, 4], 1)),
    ("aten.to.dtype_layout", lambda m: (m.t(), {"dtype": torch.float32})),
    ("aten.to.other", lambda m: (m.t(), torch.zeros(2, dtype=torch.float64))),
    ("aten.type_as.default", lambda m: (m.t(), torch.zeros(2, dtype=torch.float32))),
    ("aten.where.Scalar", lambda m: (m.flags(), 1.5, 2.5)),
    ("aten.where.ScalarOther", lambda m: (m.flags(), m.t(), 2)),
    ("aten.where.ScalarSelf", lambda m: (m.flags(), 1, m.t())),
    ("aten.xlogy.Scalar_Other", lambda m: (m.positive(), 2)),
    ("aten.xlogy.Scalar_Self", lambda m: (2, m.positive())),
]
# A tensor beside them, so that a factory has company in its group.
FACTORIES: list[tuple[str, Arguments]] = [
    ("aten.arange.default", lambda m: (7, {"dtype": m.dtype, "device": torch.device("cpu")})),
    ("aten.arange.start", lambda m: (1, 8, {"dtype": m.dtype, "device": torch.device("cpu")})),
    ("aten.arange.start_step", lambda m: (0, 14, 2, {"dtype": m.dtype, "device": torch.device("cpu")})),
    ("aten.full.default", lambda m: ([4, 7], 2, {"dtype": m.dtype, "device": torch.device("cpu")})),
    ("aten.ones.default", lambda m: ([4, 7], {"dtype": m.dtype, "device": torch.device("cpu")})),
    ("aten.zeros.default", lambda m: ([7], {"dtype": m.dtype, "device": torch.device("cpu")})),
    ("aten.scalar_tensor.default", lambda m: (1, {"dtype": m.dtype, "device": torch.device("cpu")})),
]


def _overload(target: str) -> Any:
    space, name, overload = target.split(".")
    fxfuser._C.load()  # defines its own ops
    return getattr(getattr(getattr(torch.ops, space), name, None), overload, None)


def _graph(overload: Any, arguments: tuple[Any, ...], companion: torch.Tensor | None) -> tuple[torch.fx.Graph, tuple[Any, ...]]:
    kwargs = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
    positional = arguments[:-1] if kwargs else arguments
    graph = torch.fx.Graph()
    given: list[torch.Tensor] = []

    def place(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        given.append(leaf)
        return graph.placeholder(f"a{len(given)}")

    node = graph.call_function(overload, pytree.tree_map(place, positional), kwargs)
    value = overload(*positional, **kwargs)
    node.meta["val"] = value
    if companion is not None:
        given.append(companion)
        result: Any = graph.call_function(torch.ops.aten.add.Tensor, (node, graph.placeholder("beside")))
    elif isinstance(value, (tuple, list)):
        result = tuple(graph.call_function(operator.getitem, (node, i)) for i, part in enumerate(value) if isinstance(part, torch.Tensor))
    else:
        result = node
    graph.output(result)
    return graph, tuple(given)


def direct_samples(dtype: torch.dtype) -> Iterator[Sample]:
    for factory, (target, make) in [(False, line) for line in TABLE] + [(True, line) for line in FACTORIES]:
        overload = _overload(target)
        if overload is None:
            continue
        maker = Maker(dtype)
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                graph, args = _graph(overload, make(maker), maker.t() if factory else None)
        except Exception:  # eager has no such op for this dtype
            continue
        yield Sample("direct", target, dtype, graph, args)
