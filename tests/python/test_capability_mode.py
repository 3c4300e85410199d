"""TorchRefsNvfuserCapabilityMode: which calls become nvprims, which stay whole, and that a trace costs what it holds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import NvfuserPrimsMode, TorchRefsNvfuserCapabilityMode, execute
from numerics import check_close
from torch._prims.context import TorchRefsMode
from torch.fx.experimental.proxy_tensor import make_fx

F = torch.nn.functional
Launches = Callable[[], int]


def trace(fn: Callable[..., Any], *args: Any, tracing_mode: str = "real", **options: Any) -> torch.fx.GraphModule:
    with TorchRefsNvfuserCapabilityMode(**options):
        return make_fx(fn, tracing_mode=tracing_mode)(*args)


def targets(gm: torch.fx.GraphModule) -> list[str]:
    return [str(node.target).removesuffix(".default") for node in gm.graph.nodes if isinstance(node.target, torch._ops.OpOverload)]


def run(gm: torch.fx.GraphModule, fn: Callable[..., Any], *args: Any, executor: str = "strictly_nvfuser") -> None:
    """gm, executed and as it is, gives what fn gives; kernels ran."""
    torch.testing.assert_close(gm(*args), fn(*args), rtol=2e-3, atol=1e-4)
    before = sum(fxfuser.stats()["launches"].values())
    check_close(execute(gm, *args, executor=executor, executor_parameters={"on_error": "raise"}), gm(*args), "traced")
    assert sum(fxfuser.stats()["launches"].values()) > before


X = torch.rand(4, 8) + 0.5
STATS = [torch.rand(8) + 0.5 for _ in range(4)]
WHOLE: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "sigmoid": (torch.sigmoid, ["neg", "exp", "add", "div"]),
    "number minus tensor": (lambda x: 1 - x, ["sub"]),
    "softmax": (lambda x: torch.softmax(x, -1), ["amax", "broadcast_in_dim", "broadcast_in_dim", "sub", "exp", "sum", "broadcast_in_dim", "broadcast_in_dim", "div"]),
    "mean": (lambda x: x.mean(-1), ["sum", "div"]),
    "gelu": (F.gelu, ["mul", "mul", "erf", "add", "mul"]),
    "mT and T": (lambda x: x.mT.exp().T + x, ["transpose", "exp", "transpose", "add"]),
    "half": (lambda x: x.to(torch.half) * 2, ["convert_element_type", "convert_element_type", "mul", "convert_element_type"]),
    "view and reshape": (lambda x: x.view(2, 16).reshape(32).exp().view(4, -1), ["view", "view", "exp", "view"]),
    "overload": (torch.ops.aten.sin.default, ["sin"]),
    "packet": (torch.ops.aten.cos, ["cos"]),
    "full": (lambda x: x + torch.full((8,), 2.0), ["full", "broadcast_in_dim", "add"]),
    "batch norm in inference": (lambda x: F.batch_norm(x, *STATS, False), ["native_batch_norm"]),
    "native batch norm": (lambda x: torch.native_batch_norm(x, None, None, *STATS[:2], False, 0.1, 1e-5)[0], ["native_batch_norm"]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_goes_to_nvprims(name: str) -> None:
    fn, expected = WHOLE[name]
    gm = trace(fn, X)
    assert targets(gm) == [f"nvprims.{prim}" for prim in expected]
    run(gm, fn, X)


STAY: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "no prim at all": (lambda x: torch.sigmoid(torch.digamma(x)), ["aten.digamma", "nvprims.neg", "nvprims.exp", "nvprims.add", "nvprims.div"]),
    "a prim without an nvprim": (lambda x: torch.acosh(x + 1).exp(), ["nvprims.add", "aten.acosh", "nvprims.exp"]),
    "a part without one": (lambda x: F.mish(x).exp(), None),  # type: ignore[dict-item]
    "a cast to uint8": (lambda x: x.to(torch.uint8).to(torch.float32) + x, ["aten._to_copy", "aten._to_copy", "nvprims.add"]),
    "log_softmax by overload": (lambda x: torch.ops.aten._log_softmax.default(x, -1, False) + 1, ["aten._log_softmax", "nvprims.add"]),
    "in place": (lambda x: (x + 1).relu_().exp(), ["nvprims.add", "aten.relu_", "nvprims.exp"]),
    "matmul": (lambda x: (x @ x.T).exp(), ["nvprims.transpose", "aten.mm", "nvprims.exp"]),
}


@pytest.mark.parametrize("name", STAY)
def test_stays_whole(name: str) -> None:
    fn, expected = STAY[name]
    gm = trace(fn, X)
    if expected is not None:
        assert targets(gm) == expected
    gm.graph.lint()
    assert all(node.users or node.op in ("placeholder", "output") for node in gm.graph.nodes), "an attempt left nodes behind"
    run(gm, fn, X, executor="nvfuser")


def test_complex_numbers_stay_whole() -> None:
    x = torch.randn(3, 4, dtype=torch.complex64)
    for fn in (torch.exp, lambda t: torch.var_mean(t, 1), lambda t: t.mT.contiguous()):
        gm = trace(fn, x)
        assert not any(target.startswith("nvprims") for target in targets(gm))
        torch.testing.assert_close(execute(gm, x), fn(x))


def test_layer_norm_holds_var_mean_and_runs(launches: Launches) -> None:
    x = torch.randn(10, 64, dtype=torch.float16)
    gm = trace(lambda t: torch.native_layer_norm(t, (64,), None, None, 1e-6), x)
    assert "nvprims.var_mean.main" in targets(gm) and all(target.startswith("nvprims.") for target in targets(gm))
    y, mean, rstd = gm(x)  # a plain tuple: the graph runs as it is
    assert type(gm(x)) is tuple and y.dtype == torch.float16
    ours = execute(gm, x, executor="strictly_nvfuser")
    assert launches() == 1
    for a, b in zip(ours, (y, mean, rstd), strict=True):
        torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.var_mean(x, 1), lambda x: torch.var_mean(x, True), lambda x: torch.var_mean(x, False), lambda x: torch.var_mean(x, [0], True, True),
        lambda x: torch.var_mean(x, 1, correction=2, keepdim=True), lambda x: torch.var_mean(x), lambda x: torch.ops.aten.var_mean.correction(x, [1], correction=0),
        lambda x: torch.ops.aten.var_mean.dim(x, [1], False, True), lambda x: torch.ops.aten.var_mean(x, False),
    ],
)
def test_var_mean_in_all_its_forms(call: Callable[[Any], Any]) -> None:
    gm = trace(call, X)
    assert targets(gm) == ["nvprims.var_mean.main"]
    run(gm, call, X)


def test_training_batch_norm_updates_its_statistics() -> None:
    x, mean, var = torch.randn(4, 3, 5), torch.zeros(3), torch.ones(3)

    def fn(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, mean, var, training=True).exp()

    gm = trace(fn, x, mean.clone(), var.clone())
    assert targets(gm) == ["nvprims.native_batch_norm", "nvprims.exp"]
    ours, eager = (mean.clone(), var.clone()), (mean.clone(), var.clone())
    torch.testing.assert_close(execute(gm, x, *ours), fn(x, *eager))
    torch.testing.assert_close(ours, eager)
    assert not torch.equal(ours[0], mean)


@pytest.mark.parametrize("training", [False, True])
def test_cudnn_batch_norm_forms(training: bool) -> None:
    x = torch.randn(4, 8, 5)
    expected = torch.native_batch_norm(x, *STATS[:2], STATS[2].clone(), STATS[3].clone(), training, 0.1, 1e-5)
    with TorchRefsNvfuserCapabilityMode():
        out = torch.ops.aten.cudnn_batch_norm(x, *STATS[:2], STATS[2].clone(), STATS[3].clone(), training, 0.1, 1e-5)
        grads = torch.ops.aten.cudnn_batch_norm_backward(x, x * 2, STATS[0], None, None, *expected[1:], 1e-5, out[3]) if training else ()
    assert len(out) == 4 and out[3].dtype == torch.uint8 and out[3].numel() == 0
    torch.testing.assert_close(out[:3], expected)
    for ours, eager in zip(grads, torch.ops.aten.native_batch_norm_backward(x * 2, x, STATS[0], None, None, *expected[1:], True, 1e-5, [True] * 3) if training else (), strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-4)


def test_rand_like_keeps_its_keywords() -> None:
    gm = trace(lambda x: torch.rand_like(x, dtype=torch.float64) + x, X)
    assert targets(gm)[0] == "nvprims.rand_like"
    torch.manual_seed(5)
    out = execute(gm, X)
    torch.manual_seed(5)
    torch.testing.assert_close(out, torch.rand(4, 8, dtype=torch.float64) + X)


def test_view_copy_is_no_view() -> None:
    gm = trace(lambda x: torch.view_copy(x, (32,)), X)
    assert execute(gm, X).data_ptr() != X.data_ptr()


def test_skip_ops() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x).cos().view(32)

    assert targets(trace(fn, X, skip_ops=("torch.sin",))) == ["aten.sin", "nvprims.cos", "nvprims.view"]
    assert targets(trace(fn, X, skip_ops=("torch.Tensor.view",))) == ["nvprims.sin", "nvprims.cos", "aten.view"]
    assert targets(trace(torch.sigmoid, X, skip_ops=("prims.exp.default",))) == ["aten.sigmoid"]


def test_skip_ops_is_no_string() -> None:
    for mode in (TorchRefsNvfuserCapabilityMode, NvfuserPrimsMode):
        with pytest.raises(TypeError, match=r"skip_ops is a collection of names, not one string: \('torch.sin',\)"):
            mode(skip_ops="torch.sin")


def test_modes_nest_and_end_with_what_raises() -> None:
    mode = TorchRefsNvfuserCapabilityMode()
    with mode, mode, TorchRefsNvfuserCapabilityMode(skip_ops=("torch.sin",)):
        assert targets(make_fx(lambda x: torch.cos(x) + torch.softmax(x, -1))(X)).count("nvprims.cos") == 1
    with mode, mode:
        assert targets(make_fx(torch.cos)(X)) == ["nvprims.cos"]
        with pytest.raises(KeyError):
            make_fx(lambda x: {}[torch.sin(x)])(X)
        assert "nvprims.var_mean.main" in targets(make_fx(lambda x: F.layer_norm(x, (8,)))(X))
    assert targets(make_fx(torch.cos)(X)) == ["aten.cos"]


def test_an_attempt_takes_back_all_that_it_added() -> None:
    """Results that were indexed too: the attempt ends after var_mean and its getitems."""
    gm = trace(lambda x: F.layer_norm(x, (8,)).exp(), X, skip_ops=("prims.rsqrt.default",))
    assert [str(node.target) for node in gm.graph.nodes if node.op == "call_function"][-1] == "nvprims.exp.default"
    assert targets(gm) == ["aten.native_layer_norm", "nvprims.exp"]
    gm.graph.lint()
    names = {node.name for node in gm.graph.nodes}
    assert not any(name.startswith(("var_mean", "sub")) for name in names)
    run(gm, lambda x: F.layer_norm(x, (8,)).exp(), X)


def test_push_and_the_prims_mode() -> None:
    with TorchRefsNvfuserCapabilityMode.push():
        assert targets(make_fx(torch.exp)(X)) == ["nvprims.exp"]
    for mode in (NvfuserPrimsMode(), NvfuserPrimsMode.push()):
        with mode, TorchRefsMode():
            assert targets(make_fx(torch.sigmoid)(X)) == ["nvprims.neg", "nvprims.exp", "nvprims.add", "nvprims.div"]
    with NvfuserPrimsMode(skip_ops=("prims.exp.default",)), TorchRefsMode():
        assert targets(make_fx(torch.sigmoid)(X)) == ["nvprims.neg", "prims.exp", "nvprims.add", "nvprims.div"]


def test_eager_under_the_mode() -> None:
    with TorchRefsNvfuserCapabilityMode():
        out = torch.softmax(X, -1), torch.digamma(X), X.mT
    torch.testing.assert_close(out, (torch.softmax(X, -1), torch.digamma(X), X.mT))


def test_errors_are_the_calls_own() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="size|shape|match"), TorchRefsNvfuserCapabilityMode():
            torch.add(torch.randn(3), torch.randn(4))
    assert any("get_isolated_graphmodule failed on decomposition" in str(warning.message) for warning in told)
    with TorchRefsNvfuserCapabilityMode():
        assert torch.add(X, 1).shape == X.shape  # the mode works on


# function, a shape, a shape of the same rank, kernels
SYMBOLIC: dict[str, tuple[Callable[[torch.Tensor], Any], tuple[int, ...], tuple[int, ...], int]] = {
    "an op that stays whole": (lambda x: torch.sigmoid(x) + torch.acosh(torch.exp(x) + 1), (4, 8), (6, 9), 1),
    "layer norm": (lambda x: F.layer_norm(x, x.shape[-1:]), (4, 8), (9, 10), 1),
    "native layer norm": (lambda x: torch.native_layer_norm(x, x.shape[-1:], None, None, 1e-5), (4, 8), (9, 10), 1),
    "softmax": (lambda x: torch.softmax(x, -1), (4, 8), (9, 10), 1),
    "view": (lambda x: x.view(x.shape[0] * x.shape[1], x.shape[2]).sin().view(x.shape) + 1, (2, 4, 8), (3, 5, 7), 1),
    "var_mean": (lambda x: torch.var_mean(x, dim=1)[0] + 1, (4, 8), (9, 10), 1),
    "var_mean unbiased": (lambda x: torch.var_mean(x, True)[0] + 1, (4, 8), (9, 10), 1),
    "batch norm": (lambda x: F.batch_norm(x, None, None, training=True), (4, 3, 8), (6, 3, 5), 1),
    "full": (lambda x: torch.full((x.shape[0], 1), 2.0) * x, (4, 8), (9, 10), 1),
    "sizes as numbers": (lambda x: x * x.shape[0] / x.numel(), (4, 8), (9, 10), 1),
    "mT": (lambda x: (x * 2).mT.exp(), (4, 8), (9, 10), 1),
    "expand": (lambda x: x.sum(0).expand(x.shape[0], -1) + x, (4, 8), (9, 10), 1),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes(name: str, launches: Launches) -> None:
    """One trace for all sizes: sizes are nodes of the graph, and the mode lowers what it lowers of a concrete trace."""
    fn, first, second, kernels = SYMBOLIC[name]
    gm = trace(fn, torch.rand(first) + 0.5, tracing_mode="symbolic")
    gm.graph.lint()
    concrete = trace(fn, torch.rand(first) + 0.5)
    assert {target for target in targets(concrete) if "nvprims" in target} <= set(targets(gm))
    for count, shape in enumerate((first, second), 1):
        x = torch.rand(shape) + 0.5
        torch.testing.assert_close(execute(gm, x, executor_parameters={"on_error": "raise"}), fn(x), rtol=1e-4, atol=1e-5)
        assert launches() == count * kernels


def test_retracing_a_trace_finds_what_was_missed() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return F.instance_norm(x)

    x = torch.randn(2, 3, 8)
    gm = trace(trace(fn, x), x)
    assert any(target.startswith("nvprims.") for target in targets(gm))
    torch.testing.assert_close(execute(gm, x), fn(x), rtol=1e-4, atol=1e-5)


def test_the_cost_of_a_trace_is_near_linear() -> None:
    """Depth of nesting and length: a ratio of two lengths in one process."""

    def chain(length: int) -> float:
        def fn(x: torch.Tensor) -> torch.Tensor:
            for _ in range(length):
                x = F.layer_norm(torch.acosh(torch.softmax(x, -1) + 1), (8,))
            return x

        start = time.perf_counter()
        gm = trace(fn, X)
        seconds = time.perf_counter() - start
        assert len(targets(gm)) > 15 * length
        return seconds

    chain(4)
    short = min(chain(8) for _ in range(3))
    assert min(chain(64) for _ in range(2)) < 4 * 8 * short
