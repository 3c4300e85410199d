"""Random numbers of the option ``fused_rng`` on the device: the words of ATen's fallback, a seed a replay, one mask forward and backward."""

from __future__ import annotations

import fxfuser
import pytest
import torch
import torch._dynamo
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

OPTION = {"fused_rng": True}


@pytest.mark.parametrize("shape", [(5,), (4096, 1023), (3, 70001)])
def test_kernels_draw_what_aten_computes(shape: tuple[int, ...]) -> None:
    seed = torch.tensor(-0x0123456789ABCDEF, device="cuda")
    gm = make_fx(lambda seed: torch.ops.fxfuser.random_bits(seed, 9, shape) + 1)(seed)
    before = fxfuser.stats()["launches"]["cuda"]
    ours = fxfuser.execute(gm, seed, executor="strictly_nvfuser")
    assert fxfuser.stats()["launches"]["cuda"] == before + 1
    assert torch.equal(ours, gm(seed))


def test_the_gradient_is_zero_where_the_output_is() -> None:
    torch._dynamo.reset()
    net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Dropout(0.2)).cuda().bfloat16()
    call = torch.compile(lambda x: net(x) + 0, backend="fxfuser", options=OPTION)
    dropped = torch.compile(lambda x: nn.functional.dropout(x, 0.2), backend="fxfuser", options=OPTION)
    x = torch.ones(1024, 256, device="cuda", dtype=torch.bfloat16)
    before = fxfuser.stats()["launches"]["cuda"]
    call(x).sum().backward()
    ones = torch.ones(1024, 512, device="cuda", requires_grad=True)
    y = dropped(ones)
    (grad,) = torch.autograd.grad(y.sum(), ones)
    assert torch.equal(y == 0, grad == 0) and 0.19 < float((y == 0).double().mean()) < 0.21
    assert fxfuser.stats()["launches"]["cuda"] >= before + 4


def test_a_captured_graph_draws_anew_at_each_replay() -> None:
    gm = make_fx(lambda x: torch.native_dropout(x, 0.5, True)[0] * 2)(torch.ones(1 << 16, device="cuda"))
    run = fxfuser.prepare(gm, fused_rng=True)
    x = torch.ones(1 << 16, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    before = fxfuser.stats()["launches"]["cuda"]
    with torch.cuda.graph(graph):
        y = run(x)
    assert fxfuser.stats()["launches"]["cuda"] == before + 1
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        for _ in range(2):
            graph.replay()
            found.append(y.clone())
    assert torch.equal(found[0], found[2]) and torch.equal(found[1], found[3])
    assert not torch.equal(found[0], found[1]) and not torch.equal(found[0], found[4])
