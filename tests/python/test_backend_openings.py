"""Which ops AOTAutograd opens for the backend: none that has a row, and each into rows and views alone."""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser.backend.decompositions import OPENED, decompositions
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx
from torch.ops import aten
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

Samples = dict[Any, list[tuple[Any, Any]]]
# Not in torch's samples of ops, or only with more than their definitions.
BY_HAND: dict[str, tuple[Any, ...]] = {
    "aten.copy.default": (torch.rand(4, 3), torch.rand(3)),
    "aten.mm.default": (torch.rand(4, 1), torch.rand(1, 5)),
    "aten.bmm.default": (torch.rand(2, 4, 1), torch.rand(2, 1, 5)),
    "aten.eye.default": (4,),
    "aten.eye.m": (4, 3),
    "aten.rrelu_with_noise_backward.default": (torch.rand(4), torch.randn(4), torch.rand(4), 0.1, 0.3, True, False),
    "aten.native_dropout_backward.default": (torch.rand(4), torch.rand(4) > 0.5, 2.0),
    "aten.linalg_cross.default": (torch.rand(4, 3), torch.rand(4, 3)),
    "aten.logit_backward.default": (torch.rand(4), torch.rand(4), 0.1),
    "aten.smooth_l1_loss_backward.default": (torch.rand(4), torch.rand(4), torch.rand(4), 0, 1.0),
    "aten.huber_loss_backward.default": (torch.rand(4), torch.rand(4), torch.rand(4), 0, 1.0),
}


class Calls(TorchDispatchMode):
    """Keeps the arguments of a few calls of each op that is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = set(decompositions())
        self.seen: Samples = defaultdict(list)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in self.opened and len(self.seen[func]) < 4:
            self.seen[func].append(pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), (args, kwargs)))
        return func(*args, **kwargs)


@pytest.fixture(scope="module")
def samples() -> Samples:
    """Calls that torch's samples of its own ops lead to, forward and backward."""
    from torch.testing._internal.common_methods_invocations import op_db

    calls = Calls()
    names = {*OPENED, "fill", "slice", "select", "slice_scatter", "select_scatter", "copysign", "prelu", "glu"}
    for op in op_db:
        if not names & {op.name.split(".")[-1], op.name.split(".")[-1].replace("_", ""), op.aten_name} and "loss" not in op.name and "entropy" not in op.name:
            continue
        for _, sample in zip(range(6), op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd), strict=False):
            with calls:
                results = pytree.tree_leaves(op(sample.input, *sample.args, **sample.kwargs))
                results = [result for result in results if isinstance(result, torch.Tensor) and result.requires_grad]
                if results:
                    torch.autograd.backward([result.sum() for result in results])
    for overload in decompositions():
        if str(overload) in BY_HAND:
            calls.seen[overload].append((BY_HAND[str(overload)], {}))
    return calls.seen


def opened(overload: Any, args: Any, kwargs: Any) -> tuple[torch.fx.GraphModule, list[torch.Tensor]]:
    """The op as AOTAutograd traces it, and its tensors."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def call(*given: torch.Tensor) -> Any:
        rest = iter(given)
        made = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        full_args, full_kwargs = pytree.tree_unflatten(made, spec)
        return overload(*full_args, **full_kwargs)

    return make_fx(call, decomposition_table=decompositions(), tracing_mode="fake")(*tensors), tensors


def test_no_op_with_a_row_is_opened() -> None:
    whole = {target for row in json.loads(fxfuser._C.ops_json()) for target in row["targets"]}
    table = decompositions()
    assert len(table) >= 35
    assert not whole & {str(overload) for overload in table}
    for name in OPENED:  # a name whose ops all got rows of their own is to be taken out
        assert any(overload.overloadpacket is getattr(aten, name) for overload in table), name


def test_each_opens_into_rows(samples: Samples, launches: Callable[[], int]) -> None:
    whole = {target for row in json.loads(fxfuser._C.ops_json()) for target in row["targets"]}
    unseen = {str(overload).split(".")[1] for overload in decompositions()} - {str(overload).split(".")[1] for overload in samples}
    assert not unseen
    for overload, calls in samples.items():
        whole_calls = 0
        for args, kwargs in calls:
            graph, tensors = opened(overload, args, kwargs)
            targets = {str(node.target) for node in graph.graph.nodes if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)}
            assert targets <= whole | {str(overload)}, f"{overload} leaves {targets - whole}"
            whole_calls += str(overload) in targets  # a slice with a step, a product over more than one element
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", fxfuser.FallbackWarning)  # of views alone
                check_close(pytree.tree_leaves(fxfuser.execute(graph, *tensors)), pytree.tree_leaves(overload(*args, **kwargs)), str(overload))
        assert whole_calls < len(calls), f"{overload} never is opened"
    assert launches() >= 50


@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients_of_slices_are_eagers(dynamic: bool, launches: Callable[[], int]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x[:, 1:3] * 2 + x[:, -2:] * 3 + x[:, ::2][:, :2]
        return y.sum(1) * x.select(1, -1) + x[..., 2:100].sum()

    found = []
    for call in (function, torch.compile(function, backend="fxfuser", fullgraph=True, dynamic=dynamic)):
        x = torch.linspace(-1, 1, 24).view(6, 4).requires_grad_()
        y = call(x)
        y.square().sum().backward()
        found.append((y.detach(), x.grad))
    torch.testing.assert_close(found[1], found[0])
    assert launches() >= 2


def test_gradients_of_slices_of_a_transposed_tensor_are_fused(launches: Callable[[], int]) -> None:
    """Four dims whose strides look like channels-last: eager's zeros are contiguous, and so are ours."""
    given = torch.randn(2, 4, 8, 3).permute(0, 3, 1, 2)
    graph, tensors = opened(aten.slice_backward.default, (given, [2, 3, 9, 8], 2, 1, 5, 1), {})
    check_close(fxfuser.execute(graph, *tensors, executor="strictly_nvfuser"), aten.slice_backward.default(given, [2, 3, 9, 8], 2, 1, 5, 1), "slice_backward")
    assert launches() == 1
