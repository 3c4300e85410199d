"""Version counters and bases of results and inputs are eager's, call after call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
import torch.nn.functional as F
from fxfuser import execute
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree


def written(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    return y.add_(1).mul_(3)


GRAPHS: dict[str, Callable[[torch.Tensor], Any]] = {
    "a view of a value": lambda x: torch.sin(x).view(6, 4),
    "a value and its views": lambda x: (lambda y: (y, y.t(), y.view(24)))(torch.sin(x)),
    "a view of a view": lambda x: torch.sin(x).t()[1:],
    "parts": lambda x: torch.split(torch.sin(x), 2),
    "a view of an input": lambda x: (x.t(), torch.sin(x)),
    "an input written once": lambda x: x.add_(1),
    "an input written twice": lambda x: (x.add_(1).mul_(2), torch.sin(x)),
    "an input written after it was read": lambda x: (torch.sin(x), x.mul_(2), x.add_(1)),
    "parts of an input written": lambda x: (x[0].add_(1), x.t().mul_(2), torch.sin(x)),
    "a value written twice": written,
    "a value written, beside another": lambda x: (torch.relu_(x + 1), torch.sin(x)),
    "a value written through a view": lambda x: (lambda y: (y[0].add_(1), y))(torch.sin(x)),
    "running statistics": lambda x: F.batch_norm(torch.sin(x), x[0].clone(), x[1].abs() + 1, None, None, True),
}


def base_of(tensor: torch.Tensor, among: list[torch.Tensor]) -> Any:
    """None, the place of the base among these tensors, or the base's geometry."""
    if tensor._base is None:
        return None
    places = [i for i, other in enumerate(among) if other is tensor._base]
    return places or (tensor._base.shape, tensor._base.stride(), tensor.storage_offset())


@pytest.mark.parametrize("name", GRAPHS)
def test_results_and_inputs(name: str) -> None:
    gm = make_fx(GRAPHS[name])(torch.randn(4, 6))
    ours, eager = torch.randn(4, 6), torch.randn(4, 6)
    before = fxfuser.stats()["launches"]["host"]
    for _ in range(3):
        got, want = pytree.tree_leaves(execute(gm, ours, executor_parameters={"on_error": "raise"})), pytree.tree_leaves(gm(eager))
        for a, b in zip(got, want, strict=True):
            assert a._version == b._version
            assert base_of(a, [ours, *got]) == base_of(b, [eager, *want])
        assert ours._version == eager._version
    assert fxfuser.stats()["launches"]["host"] > before


def test_inputs_written_together() -> None:
    """The copies of several inputs are one step; each input's counter rises by its own writes."""

    def step(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        a.add_(1)
        b.mul_(2)
        c.add_(b).mul_(3)
        d.mul_(3).add_(1)
        return torch.sin(a)

    gm = make_fx(step)(*(torch.randn(4, 6) for _ in range(4)))
    ours = [torch.randn(4, 6) for _ in range(4)]
    eager = [tensor.clone() for tensor in ours]
    before = fxfuser.stats()["launches"]["host"]
    for _ in range(3):
        torch.testing.assert_close(execute(gm, *ours, executor_parameters={"on_error": "raise"}), gm(*eager))
        torch.testing.assert_close(ours, eager)
        assert [tensor._version for tensor in ours] == [tensor._version for tensor in eager]
    assert fxfuser.stats()["launches"]["host"] > before
