"""Models that two processes train together under the backend, as in eager; collectives run as they are, waits as late as possible."""

from __future__ import annotations

import copy
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fxfuser
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.fx.experimental.proxy_tensor import make_fx
from torch.profiler import ProfilerActivity, profile

pytestmark = pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="this torch has no gloo")

WORLD = 2


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(8, 16)
        self.leave = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.leave(torch.tanh(self.enter(x)) * torch.sigmoid(self.enter(x)))


def trained(model: nn.Module, call: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Losses and weights after three steps; a bucket of gradients may be laid out anew after the first."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = call(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    found = {"losses": torch.stack(losses)}
    for name, parameter in model.named_parameters():
        weight = parameter.detach()
        found[name.removeprefix("module.")] = (weight.full_tensor() if hasattr(weight, "full_tensor") else weight).clone()
    return found


def by_data_parallel(model: nn.Module) -> tuple[nn.Module, Any]:
    wrapped = nn.parallel.DistributedDataParallel(model)
    return wrapped, wrapped


def by_sharding(model: nn.Module) -> tuple[nn.Module, Any]:
    from torch.distributed.fsdp import fully_shard

    fully_shard(model, mesh=init_device_mesh("cpu", (WORLD,)))
    return model, model


def by_tensor_parallel(model: nn.Module) -> tuple[nn.Module, Any]:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    made = parallelize_module(model, init_device_mesh("cpu", (WORLD,)), {"enter": ColwiseParallel(), "leave": RowwiseParallel()})
    return made, made


KINDS = {"data parallel": by_data_parallel, "sharded": by_sharding, "tensor parallel": by_tensor_parallel}


def work(rank: int, port: int, kind: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    start = Net()
    x = torch.randn(WORLD, 6, 8)[0 if kind == "tensor parallel" else rank]
    eager_model, eager = KINDS[kind](copy.deepcopy(start))
    expected = trained(eager_model, eager, x)
    before = sum(fxfuser.stats()["launches"].values())
    model, call = KINDS[kind](copy.deepcopy(start))
    found = trained(model, torch.compile(call, backend="fxfuser"), x)
    assert found.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=1e-6, msg=lambda text, name=name: f"{name}: {text}")
    assert sum(fxfuser.stats()["launches"].values()) >= before + 3
    dist.destroy_process_group()


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_train_as_eager(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(work, (port, kind), WORLD)


@pytest.fixture
def one_process() -> Iterator[None]:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield
    dist.destroy_process_group()


def test_waits_are_as_late_as_possible(one_process: None, launches: Callable[[], int]) -> None:
    """A collective starts where the graph has it; what does not read its result runs before the wait."""
    from torch.distributed._functional_collectives import all_reduce

    def function(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = torch.ops._c10d_functional.wait_tensor(all_reduce(torch.sin(x) * 2, "sum", dist.group.WORLD))
        table = total.view(2, -1)
        other = torch.mm(w, w)
        return torch.cos(table) * 2, torch.digamma(other)

    x, w = torch.rand(4, 4), torch.rand(4, 4) + 1
    gm = make_fx(function)(x, w)
    targets = [str(node.target) for node in gm.graph.nodes]
    assert targets.index("_c10d_functional.wait_tensor.default") < targets.index("aten.mm.default")
    ours, eager = fxfuser.execute(gm, x, w), function(x, w)
    torch.testing.assert_close(ours, eager)
    with profile(activities=[ProfilerActivity.CPU]) as trace:
        fxfuser.execute(gm, x, w)
    names = [event.name for event in sorted(trace.events(), key=lambda event: event.time_range.start)]
    start, wait = names.index("_c10d_functional::all_reduce"), names.index("_c10d_functional::wait_tensor")
    assert start < names.index("aten::mm") < wait < names.index("aten::digamma"), names
    assert launches() == 4
