"""A real training run: scikit-learn's digits. At every step the loss stays with eager's, within what another order of its sums would do."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
STEPS, BATCH = 60, 64
ORDERS = (None, 1, 2, 3, 4)  # of the pictures in a batch; None leaves them as they were drawn


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.GroupNorm(4, 16), nn.GELU())
        self.head = nn.Linear(16 * 16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).flatten(1))


class Transformer(nn.Module):
    """One token a row of the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(8, 32)
        self.place = nn.Parameter(torch.zeros(8, 32))
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.enter(x[:, 0]) + self.place).mean(1))


def train(model: nn.Module, compiled: bool, order: int | None) -> torch.Tensor:
    """The loss at each step. `order` permutes each batch, which changes nothing but the order of the sums."""
    digits = datasets.load_digits()
    pictures = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(digits.target)
    batches = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    call = torch.compile(model, backend="fxfuser", fullgraph=True) if compiled else model
    losses = []
    for _ in range(STEPS):
        chosen = torch.randint(len(labels), (BATCH,), generator=batches)
        if order is not None:
            chosen = chosen[torch.randperm(BATCH, generator=torch.Generator().manual_seed(order))]
        loss = nn.functional.cross_entropy(call(pictures[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


@pytest.mark.parametrize("kind", [Convolutions, Transformer])
def test_the_loss_stays_in_the_band_of_eager(kind: type[nn.Module], launches: Callable[[], int]) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    start = kind()
    eager = torch.stack([train(copy.deepcopy(start), False, order) for order in ORDERS]).double()
    ours = train(copy.deepcopy(start), True, None).double()
    assert launches() >= 4 * STEPS
    middle = eager.mean(0)
    # Roundings only add up along a run: a step's band is the widest so far, and never narrower than two units in the last place.
    band = (eager - middle).abs().amax(0).cummax(0).values.clamp(min=2 * torch.finfo(torch.float32).eps * float(middle.max()))
    outside = (ours - middle).abs() > 2 * band
    assert not outside.any(), f"steps {outside.nonzero().flatten().tolist()}: {((ours - middle).abs() / band).max():.2f} times the band"
    assert ours[-5:].mean() < 0.7 * ours[:5].mean()
