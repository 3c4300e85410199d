"""Random aten graphs: pointwise, broadcast, views, reductions, joins, in-place writes and ops that stay with ATen, mixed."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten
UNARY: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    torch.sigmoid, torch.tanh, torch.relu, torch.neg, torch.sin, lambda x: x * 0.5 + 1, lambda x: torch.where(x > 0, x, 0.1 * x),
    lambda x: x.clamp(-1, 1), lambda x: torch.nn.functional.gelu(x), lambda x: torch.exp(-x.abs()), lambda x: x.to(torch.float64).to(x.dtype),
)
BINARY: tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], ...] = (
    torch.add, torch.sub, torch.mul, torch.maximum, lambda a, b: a / (b.abs() + 1), lambda a, b: torch.where(a > b, a, b),
)


class RandomGraph:
    """A function of `inputs` made of `steps` random ops; the same seed gives the same function."""

    def __init__(self, seed: int, steps: int = 14) -> None:
        self.seed = seed
        self.steps = steps
        choose = random.Random(seed)
        shapes = [(4, 6), (6,), (4, 1), (2, 3, 4), (24,), (4, 6)]
        generator = torch.Generator().manual_seed(seed)
        self.inputs = tuple(torch.randn(shape, generator=generator) for shape in choose.sample(shapes, 4))

    def __call__(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        choose = random.Random(self.seed + 1)
        values = list(inputs)
        for _ in range(self.steps):
            values.append(self._step(choose, values))
        results = choose.sample(values[len(inputs) :], 3)
        return tuple(value.clone() if any(value is other for other in inputs) else value for value in results)

    def _step(self, choose: random.Random, values: list[torch.Tensor]) -> torch.Tensor:
        x = choose.choice(values[-6:] if choose.random() < 0.7 else values)
        kind = choose.choice(("unary", "unary", "binary", "binary", "view", "reduce", "normalize", "join", "write", "aten", "read"))
        if kind == "unary":
            return choose.choice(UNARY)(x)
        if kind == "binary":
            fitting = [y for y in values if self._broadcasts(x, y)]
            return choose.choice(BINARY)(x, choose.choice(fitting))
        if kind == "view":
            return self._view(choose, x)
        if kind == "reduce" and x.dim() > 0:
            dim, keep = choose.randrange(x.dim()), choose.random() < 0.5
            return choose.choice((torch.sum, torch.mean, torch.amax, torch.amin))(x, dim, keepdim=keep)
        if kind == "normalize" and x.dim() > 0 and x.shape[-1] > 1:
            return torch.softmax(x, choose.randrange(x.dim())) if choose.random() < 0.5 else torch.layer_norm(x, x.shape[-1:])
        if kind == "join" and x.dim() > 0:
            return torch.cat([x, x * 2], choose.randrange(x.dim()))
        if kind == "write":
            fresh = x + 1
            return fresh.mul_(0.5) if choose.random() < 0.5 else fresh.add_(x)
        if kind == "aten":
            return x.cumsum(0) * 0.1 if x.dim() > 0 else x.digamma()
        if kind == "read" and x.dim() > 0:
            index = torch.tensor([choose.randrange(x.shape[0]) for _ in range(3)])
            return torch.index_select(x, 0, index)
        return x - 0.25

    def _view(self, choose: random.Random, x: torch.Tensor) -> torch.Tensor:
        kind = choose.choice(("flat", "transpose", "unsqueeze", "slice", "expand", "flip", "split"))
        if kind == "flat" or x.dim() == 0:
            return x.reshape(-1)
        if kind == "transpose":
            return x.transpose(0, x.dim() - 1)
        if kind == "unsqueeze":
            return x.unsqueeze(choose.randrange(x.dim() + 1))
        if kind == "slice":
            return x[choose.randrange(x.shape[0]) :] if choose.random() < 0.5 else x[..., ::2]
        if kind == "expand":
            return x.unsqueeze(0).expand(2, *x.shape)
        if kind == "flip":
            return x.flip(choose.randrange(x.dim()))
        size = x.shape[0]
        return x.split([size - size // 2, size // 2], 0)[0]

    @staticmethod
    def _broadcasts(x: torch.Tensor, y: torch.Tensor) -> bool:
        try:
            return len(torch.broadcast_shapes(x.shape, y.shape)) <= 5 and torch.broadcast_shapes(x.shape, y.shape).numel() <= 5000
        except RuntimeError:
            return False


def traced(seed: int) -> tuple[torch.fx.GraphModule, tuple[torch.Tensor, ...]]:
    graph = RandomGraph(seed)
    with torch.no_grad():
        return make_fx(graph)(*graph.inputs), graph.inputs
