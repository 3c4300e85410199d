"""The option ``fused_rng``: Philox in the kernels, from a seed a call: known answers, statistics, reproducibility, and a backward
pass that draws the forward pass's masks again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser.backend.random import seeded_forms
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

Launches = Callable[[], int]
OPTION = {"fused_rng": True}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", fxfuser.FallbackWarning)
        yield


def compiled(function: Callable[..., Any], **keywords: Any) -> Callable[..., Any]:
    made: Callable[..., Any] = torch.compile(function, backend="fxfuser", fullgraph=True, options=OPTION, **keywords)
    return made


def seed_of(number: int) -> torch.Tensor:
    """A number of 64 bits as int64."""
    return torch.tensor(number - (1 << 64) if number >= 1 << 63 else number)


def drawn(seed: torch.Tensor, node: int, *shape: int) -> torch.Tensor:
    """What a generated kernel draws."""
    gm = make_fx(lambda seed: torch.ops.fxfuser.random_bits(seed, node, shape) + 0)(seed)
    made: torch.Tensor = fxfuser.execute(gm, seed, executor="strictly_nvfuser")
    return made


# Philox4x32-10 by the known-answer file of its authors' library: counter (four words), key (two), output (four).
ALL = 0xFFFFFFFF
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ALL, ALL, ALL, ALL), (ALL, ALL), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


def philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """The ten rounds in whole numbers."""
    x, (k0, k1) = list(counter), key
    for _ in range(10):
        a, b = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [(b >> 32) ^ x[1] ^ k0, b & ALL, (a >> 32) ^ x[3] ^ k1, a & ALL]
        k0, k1 = (k0 + 0x9E3779B9) & ALL, (k1 + 0xBB67AE85) & ALL
    return tuple(x)


@pytest.mark.parametrize("counter, key, words", KNOWN)
def test_the_rounds_give_the_known_answers(counter: tuple[int, ...], key: tuple[int, ...], words: tuple[int, ...]) -> None:
    assert philox(counter, key) == words


@pytest.mark.parametrize("seed, node", [(0, 0), (0x299F31D0A4093822, 7), (0xFFFFFFFFFFFFFFFF, ALL), (5, (1 << 32) + 3)])
def test_kernels_and_aten_draw_the_words_of_philox(seed: int, node: int, launches: Launches) -> None:
    """Element e has word e % 4 of the counter (e // 4, node) under the key that the seed is."""
    key = (seed & ALL, seed >> 32)
    expected = [word for group in range(6) for word in philox((group, 0, node & ALL, node >> 32), key)]
    ours = drawn(seed_of(seed), node, 3, 7)
    assert launches() == 1
    assert ours.flatten().tolist() == expected[:21]
    assert torch.equal(ours, torch.ops.fxfuser.random_bits(seed_of(seed), node, [3, 7]))


def random_ops(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    out, mask = torch.native_dropout(x, 0.3, True)
    return out, mask, torch.bernoulli(x, 0.2), torch.rand(17, 130), torch.rand_like(x), torch.ops.aten.uniform(x, -2.0, 3.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_each_op_through_execute(dtype: torch.dtype, launches: Launches) -> None:
    """Dtypes, layouts and ranges are eager's; a kernel draws them all; ATen with the same seed gives the same bits."""
    x = torch.randn(130, 17, dtype=dtype).t()
    gm = make_fx(random_ops)(x)
    torch.manual_seed(3)
    ours = fxfuser.execute(gm, x, executor_parameters=OPTION)
    assert launches() >= 1
    for a, b in zip(ours, gm(x), strict=True):
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
    out, mask, chosen, rand, like, uniform = ours
    assert torch.equal(out == 0, ~mask | (x == 0)) and 0.6 < mask.double().mean() < 0.8
    torch.testing.assert_close(out[mask], (x / 0.7)[mask])
    assert set(chosen.unique().tolist()) == {0.0, 1.0} and 0.1 < chosen.double().mean() < 0.3
    for values, low, high in ((rand, 0, 1), (like, 0, 1), (uniform, -2, 3)):
        assert low <= float(values.min()) and float(values.max()) <= high
        assert abs(float(values.double().mean()) - (low + high) / 2) < 0.06 * (high - low)
    assert not bool((rand == 1).any() or (like == 1).any())
    torch.manual_seed(3)
    by_aten = fxfuser.execute(gm, x, executor_parameters={**OPTION, "compile": "never", "skip_ops": ["random_bits", "seeded_native_dropout"]})
    torch.testing.assert_close(by_aten[0], out)


def test_every_random_node_is_fused(launches: Launches) -> None:
    gm = make_fx(random_ops)(torch.randn(8, 9))
    statuses = {row["target"]: row["status"] for row in fxfuser.explain(gm, torch.randn(8, 9), executor_parameters=OPTION).nodes()}
    assert statuses.pop("fxfuser.random_seed.default") == "aten"
    assert len(statuses) == 5 and set(statuses.values()) == {"fused"}, statuses
    before = fxfuser.stats()
    fxfuser.execute(gm, torch.randn(8, 9), executor_parameters=OPTION)
    assert fxfuser.stats()["aten_steps"] - before["aten_steps"] == 1  # the seed
    assert launches() >= 1


def test_without_the_option_the_stream_is_eagers(launches: Launches) -> None:
    x = torch.randn(64, 33)
    function = nn.Sequential(nn.Tanh(), nn.Dropout(0.4))
    found = []
    for call in (function, torch.compile(function, backend="fxfuser")):
        torch.manual_seed(11)
        found.append(call(x))
    torch.testing.assert_close(found[1], found[0])
    assert launches() >= 1


def chi_square(values: torch.Tensor, bins: int) -> float:
    counts = torch.histc(values.double(), bins, 0, 1)
    expected = values.numel() / bins
    return float(((counts - expected) ** 2 / expected).sum())


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    a, b = a.double() - a.double().mean(), b.double() - b.double().mean()
    return float((a * b).mean() / (a.std() * b.std()))


def test_statistics(launches: Launches) -> None:
    """Means, a chi-square over 256 bins, and no correlation between neighbouring elements, nodes and calls. Of 2^20 numbers the
    standard error of a mean is 0.00028 and of a correlation 0.00098; of chi-square with 255 degrees of freedom 22.6."""
    call = compiled(lambda x: (torch.rand_like(x), torch.rand_like(x), torch.nn.functional.dropout(x, 0.25)))
    x = torch.ones(1 << 20)
    first, second, dropped = call(x)
    again = call(x)[0]
    assert launches() >= 2
    for values in (first, second, again):
        assert abs(float(values.double().mean()) - 0.5) < 5 * 0.00028
        assert abs(chi_square(values, 256) - 255) < 6 * 22.6
    assert abs(float((dropped == 0).double().mean()) - 0.25) < 5 * 0.00043
    for lag in (1, 2, 3, 4, 32):
        assert abs(correlation(first[:-lag], first[lag:])) < 5 * 0.00098
    for a, b in ((first, second), (first, again), (first, (dropped == 0).float())):
        assert abs(correlation(a, b)) < 5 * 0.00098 and not torch.equal(a, b)


class Block(nn.Module):
    """A linear layer between two dropouts: both masks are needed backward."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(self.linear(nn.functional.dropout(torch.tanh(x), 0.5)), 0.5)


def test_a_seed_reproduces_and_calls_differ(launches: Launches) -> None:
    net, x = Block(), torch.randn(32, 64)
    call = compiled(net)
    found = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        found.append([call(x).detach(), call(x).detach()])
    assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])
    assert not torch.equal(found[0][0], found[0][1]) and not torch.equal(found[0][0], found[2][0])
    assert launches() >= 6


@pytest.mark.parametrize("partition", ["bytes", "torch"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_gradient_is_zero_where_the_output_is(partition: str, dynamic: bool, launches: Launches) -> None:
    call = torch.compile(lambda x: nn.functional.dropout(x, 0.3), backend="fxfuser", fullgraph=True, dynamic=dynamic, options={**OPTION, "partition": partition})
    for rows in (7, 64, 129):
        x = torch.randn(rows, 33, requires_grad=True)
        y = call(x)
        (grad,) = torch.autograd.grad(y.sum(), x)
        assert torch.equal(y == 0, grad == 0) and 0.15 < float((y == 0).double().mean()) < 0.45
        torch.testing.assert_close(grad[grad != 0], torch.full_like(grad[grad != 0], 1 / 0.7))
    assert launches() == 6


def test_a_gradient_in_another_layout_has_the_same_mask(launches: Launches) -> None:
    call = compiled(lambda x: nn.functional.dropout(x, 0.5).transpose(1, 2).contiguous())
    x = torch.randn(3, 20, 30, requires_grad=True)
    y = call(x)
    y.backward(torch.ones_like(y))
    assert x.grad is not None and torch.equal(y.transpose(1, 2) == 0, x.grad == 0)
    assert launches() == 2


def test_the_mask_is_not_saved(launches: Launches) -> None:
    saved: list[torch.Tensor] = []
    x = torch.randn(50, 64, requires_grad=True)
    net = Block()
    call = compiled(net)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        y = call(x)
    sizes = sorted(t.numel() * t.element_size() for t in saved)
    assert sizes[0] == 8 and all(t.dtype != torch.bool for t in saved)
    # The seed, the weight and the input (its tanh and both masks are computed again).
    assert sum(size == 8 for size in sizes) == 1
    assert sum(sizes) <= 8 + net.linear.weight.numel() * 4 + 2 * x.numel() * 4
    y.sum().backward()
    assert launches() >= 3


def reference(x: torch.Tensor, weight: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return ((torch.tanh(x) * first * 2) @ weight.t()) * second * 2


@pytest.mark.parametrize("checkpointed", [False, True])
def test_gradients_are_those_of_the_masks(checkpointed: bool, launches: Launches) -> None:
    """The masks are read off the results of two runs with one seed; then plain autograd gives the gradients."""
    net = Block(16)
    x = torch.randn(40, 16, requires_grad=True)
    masks: list[torch.Tensor] = []

    def function(x: torch.Tensor, ones: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = nn.functional.dropout(torch.tanh(x), 0.5)
        y = nn.functional.dropout(net.linear(first), 0.5)
        return y, first

    def whole(x: torch.Tensor, ones: torch.Tensor) -> Any:
        return checkpoint(function, x, ones, use_reentrant=False) if checkpointed else function(x, ones)

    torch.manual_seed(8)
    y, first = compiled(whole)(x, torch.ones(1))
    masks = [(first != 0).float(), (y != 0).float()]
    ours = torch.autograd.grad(y.square().sum(), [x, net.linear.weight])
    expected = reference(x, net.linear.weight, *masks)
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(ours, torch.autograd.grad(expected.square().sum(), [x, net.linear.weight]), rtol=1e-4, atol=1e-5)
    assert launches() >= 3


def test_equal_layers_share_a_kernel(kernels: Callable[[], dict[str, int]]) -> None:
    """The number of a node is an argument of the kernel."""
    net = nn.Sequential(*(Block(16) for _ in range(3)))
    call = compiled(net)
    with torch.no_grad():
        call(torch.randn(8, 16))
    assert sum(kernels().values()) == 4 and len(kernels()) == 3, kernels()


def test_sizes_are_arguments(launches: Launches) -> None:
    call = compiled(lambda x: torch.tanh(nn.functional.dropout(x, 0.5)) * 2, dynamic=True)
    call(torch.randn(4, 12))
    before = fxfuser.stats()["compiles"]
    for rows in (9, 33):
        y = call(torch.randn(rows, 12))
        assert 0.2 < float((y == 0).double().mean()) < 0.8
    assert fxfuser.stats()["compiles"] == before
    assert launches() == 3


def test_what_has_its_own_generator_keeps_it(launches: Launches) -> None:
    x = torch.rand(64)
    graph = torch.fx.Graph()
    given = graph.placeholder("x")
    chosen = graph.call_function(torch.ops.aten.bernoulli.p, (given, 0.5), {"generator": graph.get_attr("generator")})
    graph.output((graph.call_function(torch.ops.aten.sin.default, (chosen,)), graph.call_function(torch.ops.aten.rand_like.default, (given,))))
    given.meta["val"] = chosen.meta["val"] = x
    root = torch.nn.Module()
    root.generator = torch.Generator().manual_seed(4)
    y, _ = fxfuser.execute(torch.fx.GraphModule(root, graph), x, executor_parameters=OPTION)
    torch.testing.assert_close(y, torch.sin(torch.ops.aten.bernoulli.p(x, 0.5, generator=torch.Generator().manual_seed(4))))
    assert seeded_forms()[torch.ops.aten.bernoulli.p](x, 0.5, generator=root.generator) is NotImplemented


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_probabilities_at_the_ends(p: float) -> None:
    x = torch.randn(40, requires_grad=True)
    y = compiled(lambda x: nn.functional.dropout(x, p) * 1)(x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(y, x * (1 - p))
    torch.testing.assert_close(grad, torch.full_like(x, 1 - p))


@pytest.mark.parametrize("shape", [(), (0, 4), (1, 1), (3, 0)])
def test_small_and_empty(shape: tuple[int, ...]) -> None:
    gm = make_fx(lambda x: torch.rand_like(x) + 1)(torch.ones(shape))
    y = fxfuser.execute(gm, torch.ones(shape), executor_parameters=OPTION)
    assert y.shape == shape and bool(((y >= 1) & (y < 2)).all())


def test_a_bad_seed_is_told() -> None:
    with pytest.raises(RuntimeError, match="one int64"):
        torch.ops.fxfuser.random_bits(torch.zeros(2), 0, [4])
    with pytest.raises(TypeError, match="fused_rng.*True or False"):
        fxfuser.prepare(make_fx(torch.sin)(torch.ones(2)), fused_rng=1)
