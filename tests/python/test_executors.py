"""What the three executors take and refuse, in the words that callers match."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import FallbackWarning, TorchRefsNvfuserCapabilityMode, execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

Launches = Callable[[], int]
X = torch.rand(4, 4) + 0.5
CONSTANT = torch.rand(4)
STRICT = "strictly_nvfuser"


class Tagged(torch.Tensor):
    pass


def traced(fn: Callable[..., Any], *args: Any) -> torch.fx.GraphModule:
    with torch.no_grad(), TorchRefsNvfuserCapabilityMode():
        return make_fx(fn)(*args)


def hooked() -> torch.fx.GraphModule:
    gm = traced(torch.sigmoid, X)
    execute(gm, X)  # attached before the hook
    gm.register_forward_hook(lambda *_: None)
    return gm


def refused_with_grad() -> Any:
    return execute(traced(torch.sigmoid, X), X.clone().requires_grad_(), executor=STRICT)


def refused_with_autocast() -> Any:
    with torch.autocast("cpu"):
        return execute(traced(torch.sigmoid, X), X, executor=STRICT)


def lowered() -> torch.fx.GraphModule:
    return torch.fx.symbolic_trace(lambda x: x.exp().sin())


REFUSED: dict[str, tuple[Callable[[], Any], type[BaseException], str]] = {
    "a node without a row": (lambda: execute(traced(lambda x: torch.digamma(x.exp()), X), X, executor=STRICT), ValueError, r"digamma \(aten.digamma.default\)"),
    "all nodes without rows": (lambda: execute(traced(lambda x: torch.digamma(x) @ x.sin(), X), X, executor=STRICT), ValueError, "(?s)2 of 3 nodes.*aten.digamma.*aten.mm"),
    "too few arguments": (lambda: execute(traced(torch.add, X, X), X, executor=STRICT), AssertionError, "Number of placeholder nodes in the graph must match"),
    "too many arguments": (lambda: execute(traced(torch.sin, X), X, X, executor=STRICT), AssertionError, "Number of placeholder nodes in the graph must match"),
    "an identity graph": (lambda: execute(make_fx(lambda x: x)(X), X, executor=STRICT), AssertionError, "Graph must contain at least one call_function node"),
    "a None output": (lambda: execute(traced(lambda x: (x + 1, None), X), X, executor=STRICT), AssertionError, "output from codegen has to be tensor type.*output 1.*None"),
    "a number output": (lambda: execute(traced(lambda x: (3, x + 1), X), X, executor=STRICT), AssertionError, "output from codegen has to be tensor type.*output 0"),
    "a method without a row": (lambda: execute(torch.fx.symbolic_trace(lambda x: x.digamma() + 1), X, executor=STRICT), ValueError, "aten.digamma"),
    "a module without a row": (lambda: execute(torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 4).requires_grad_(False))), X, executor=STRICT), ValueError, "aten.addmm|aten.linear|aten.mm"),
    "an input that requires grad": (refused_with_grad, ValueError, "requires grad"),
    "the same, lowered": (lambda: execute(lowered(), X.clone().requires_grad_(), executor=STRICT), ValueError, "requires grad"),
    "a tensor subclass": (lambda: execute(traced(torch.sigmoid, X), X.as_subclass(Tagged), executor=STRICT), ValueError, "Tagged"),
    "hooks": (lambda: execute(hooked(), X, executor=STRICT), ValueError, "hooks"),
    "autocast": (refused_with_autocast, ValueError, "autocast"),
    "an unknown executor": (lambda: execute(traced(torch.sin, X), X, executor="cudnn"), ValueError, "cudnn.*aten.*nvfuser.*strictly_nvfuser"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
    with pytest.raises(error, match=message):  # a cached graph is refused again
        call()


TAKEN: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "no arguments": (lambda: torch.ones(3) * 2, ()),
    "a constant": (lambda x: x + CONSTANT, (X,)),
    "a constant only": (lambda: CONSTANT.exp() * 2, ()),
    "CPU tensors": (torch.sigmoid, (X,)),
    "an input among the outputs": (lambda x: (x + 1, x), (X,)),
    "a number argument": (lambda x, y: x * y, (X, 3.0)),
    "an empty tensor beside others": (lambda x, y: (x.exp(), y.exp()), (X, torch.empty(0, 3))),
}


@pytest.mark.parametrize("name", TAKEN)
def test_strict_takes(name: str, launches: Launches) -> None:
    fn, args = TAKEN[name]
    gm = make_fx(fn)(*args)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_close(execute(gm, *args, executor=STRICT), fn(*args), name)
    assert launches() == (2 if "empty" in name else 1)  # tensors of different sizes are different kernels


def test_strict_takes_a_lowered_module(launches: Launches) -> None:
    check_close(execute(lowered(), X, executor=STRICT), X.exp().sin(), "lowered")
    assert launches() == 1


@pytest.mark.parametrize("fn", [lambda x: x, lambda x: (x.exp(), None), lambda x: (3, x.exp()), lambda x: torch.digamma(x.exp()).sin()])
def test_nvfuser_runs_what_strict_refuses(fn: Callable[..., Any], launches: Launches) -> None:
    gm = make_fx(fn)(X)
    ours, eager = execute(gm, X), fn(X)
    torch.testing.assert_close(ours, eager)
    assert launches() == sum("exp" in str(node.target) or "sin" in str(node.target) for node in gm.graph.nodes)


def test_a_graph_with_nothing_to_fuse_says_so_once(launches: Launches) -> None:
    gm = make_fx(torch.digamma)(X)
    for category in (UserWarning, RuntimeWarning, FallbackWarning):
        fxfuser.clear_caches()
        with pytest.warns(category, match="is not supported by nvFuser.*fallback to aten executor"):
            check_close(execute(gm, X), torch.digamma(X), "digamma")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        execute(gm, X)
    assert launches() == 0


def test_aten_runs_the_module(launches: Launches) -> None:
    for fn in (torch.sigmoid, torch.digamma):
        check_close(execute(traced(fn, X), X, executor="aten"), fn(X), "aten")
    assert launches() == 0
