"""Temporaries of a call are planned: the peak is never above eager's, on the first call neither, results are their own, and threads
share nothing. Bytes are counted by the profiler, which sees each allocation of the CPU's allocators."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from numerics import check_close
from torch.autograd.profiler import profile
from torch.fx.experimental.proxy_tensor import make_fx

Launches = Callable[[], int]
RAISE = {"on_error": "raise"}


def memory_of(call: Callable[[], Any]) -> tuple[int, int, Any]:
    """(most bytes at one time, allocations, what it returned)"""
    with profile(profile_memory=True) as prof:
        out = call()
    alive = most = count = 0
    for event in prof.kineto_results.events():
        if event.name() == "[memory]":
            alive += event.nbytes()
            most = max(most, alive)
            count += event.nbytes() > 0
    return most, count, out


def bert() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    import transformers

    config = transformers.BertConfig(hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=512, vocab_size=100, use_cache=False, return_dict=False)
    config._attn_implementation = "eager"
    return transformers.BertModel(config), (torch.randint(0, 90, (2, 64)),)


def resnet() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    import transformers

    config = transformers.ResNetConfig(layer_type="basic", depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], num_labels=10, return_dict=False)  # of 18 layers
    return transformers.ResNetForImageClassification(config), (torch.randn(2, 3, 64, 64),)


@pytest.mark.parametrize("make", [bert, resnet])
def test_models_need_no_more_than_eager(make: Callable[[], tuple[torch.nn.Module, tuple[torch.Tensor, ...]]], launches: Launches) -> None:
    model, inputs = make()
    model = model.eval().requires_grad_(False)
    with torch.no_grad():
        gm = torch.export.export(model, inputs).module()
        model(*inputs)
        eager, _, expected = memory_of(lambda: model(*inputs))
        first, plain, _ = memory_of(lambda: execute(gm, *inputs, executor_parameters=RAISE))
        assert first <= eager
        fxfuser.clear_caches()
        gm = torch.export.export(model, inputs).module()
        execute(gm, *inputs, executor_parameters=RAISE)
        before = launches()
        ours, count, out = memory_of(lambda: execute(gm, *inputs, executor_parameters=RAISE))
    assert launches() - before >= 15
    assert ours <= eager and count < plain, (ours, eager, count, plain)
    for left, right in zip(torch.utils._pytree.tree_leaves(out), torch.utils._pytree.tree_leaves(expected), strict=True):
        check_close(left, right, make.__name__)


def chain(x: torch.Tensor) -> torch.Tensor:
    for i in range(6):
        y = torch.digamma(torch.sigmoid(x) + i + 1)  # a value of a kernel, then one of ATen's
        x = torch.tanh(x * y.sum(-1, keepdim=True))
    return x


def test_a_chain_at_its_peak_everywhere_shares_what_it_can(launches: Launches) -> None:
    x = torch.rand(64, 64)
    gm = make_fx(chain)(x)
    least, without, _ = memory_of(lambda: execute(gm, x, executor_parameters=RAISE))  # each value by itself: a profiler hides what a plan is made from
    gm = make_fx(chain)(x)
    execute(gm, x, executor_parameters=RAISE)
    before = launches()
    ours, count, out = memory_of(lambda: execute(gm, x, executor_parameters=RAISE))
    kernels = launches() - before
    assert kernels >= 7 and count < without and ours <= least, (kernels, count, without, ours, least)
    check_close(out, gm(x), "a chain")
    assert out.untyped_storage().nbytes() == out.nbytes, "a result lies in no block"


def test_views_of_temporaries_that_are_returned_outlive_the_call(launches: Launches) -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = torch.sigmoid(x)
        b = torch.digamma(a + 1)
        c = torch.exp(b)
        d = torch.digamma(c + 1)
        return a[1:], torch.tanh(d), c.t()

    x = torch.rand(16, 24)
    gm = make_fx(fn)(x)
    kept = []
    for i in range(6):
        kept.append((execute(gm, x + i, executor_parameters=RAISE), gm(x + i)))
    for ours, right in kept:
        check_close(list(ours), list(right), "kept")
        assert [t._version for t in ours] == [t._version for t in right]
    assert launches() >= 12


seen: list[torch.Tensor] = []


@torch.library.custom_op("fxfuser_planned_memory::keep", mutates_args=())
def keep(x: torch.Tensor) -> torch.Tensor:
    """Keeps what it is given beyond the call."""
    seen.append(x)
    return x.clone()


@keep.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_what_another_library_keeps_is_never_written_again(launches: Launches) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        for i in range(4):
            x = torch.tanh(keep(torch.sigmoid(x) + i))
        return x

    x = torch.rand(8, 8)
    gm = make_fx(fn)(x)
    execute(gm, x, executor_parameters=RAISE)
    seen.clear()
    execute(gm, x, executor_parameters=RAISE)
    ours, contents = list(seen), [t.clone() for t in seen]
    execute(gm, x + 1, executor_parameters=RAISE)
    seen.clear()
    gm(x)
    for now, then, right in zip(ours, contents, seen, strict=True):
        assert torch.equal(now, then)
        check_close(now, right, "what was kept")
    assert launches() >= 12


def test_new_shapes_and_results_of_another_shape(launches: Launches) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        kept = torch.ops.aten.nonzero.default(torch.relu(x))
        y = torch.digamma(torch.sigmoid(kept.float()) + 1)
        z = torch.digamma(torch.exp(y) + 2)
        return torch.tanh(z).sum(0)

    gm = make_fx(fn, tracing_mode="real")(torch.randn(6, 7))
    for rows in (6, 6, 6, 9, 3, 6):
        x = torch.randn(rows, 7)
        check_close(execute(gm, x, executor_parameters=RAISE), gm(x), f"{rows} rows")
    assert launches() >= 12


def test_threads_have_blocks_of_their_own(launches: Launches) -> None:
    x = torch.rand(64, 64)
    gm = make_fx(chain)(x)
    execute(gm, x, executor_parameters=RAISE)
    failures: list[int] = []

    def work(seed: int) -> None:
        mine = x + seed
        right = execute(gm, mine, executor_parameters=RAISE)
        for _ in range(30):
            if not torch.equal(execute(gm, mine, executor_parameters=RAISE), right):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and launches() >= 4 * 31 * 6
