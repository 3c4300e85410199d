"""Bad input: one clear error that names what was seen and what is allowed, and later calls unharmed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from torch.fx.experimental.proxy_tensor import make_fx


@pytest.fixture
def gm() -> torch.fx.GraphModule:
    return make_fx(lambda x: x.exp() + 1)(torch.randn(3))


X = torch.randn(3)
CASES: list[tuple[str, Callable[[Any], Any], type[BaseException], str]] = [
    ("unknown executor", lambda gm: execute(gm, X, executor="fast"), ValueError, "aten.*nvfuser.*strictly_nvfuser"),
    ("executor is no string", lambda gm: execute(gm, X, executor=3), TypeError, "string"),
    ("too few arguments", lambda gm: execute(gm), TypeError, "Number of placeholder nodes in the graph must match"),
    ("too many arguments", lambda gm: execute(gm, X, X), TypeError, "takes 1 and was given 2"),
    ("too many, strict", lambda gm: execute(gm, X, X, executor="strictly_nvfuser"), AssertionError, "Number of placeholder nodes"),
    ("parameter of a wrong type", lambda gm: execute(gm, X, executor_parameters={"allow_single_op_fusion": "yes"}), TypeError, "allow_single_op_fusion"),
    ("parameter of a wrong value", lambda gm: execute(gm, X, executor_parameters={"rounding": "up"}), ValueError, "rounding.*default.*eager"),
    ("parameters of a wrong type", lambda gm: execute(gm, X, executor_parameters=[1]), TypeError, "dictionary"),
    ("unknown stored parameters", lambda gm: execute(gm, X, executor_parameters="fastest"), ValueError, "debug.*default.*latency.*strict"),
    ("no module", lambda gm: execute(lambda x: x, X), TypeError, "GraphModule"),
    ("nothing at all", lambda gm: execute(), TypeError, "module is missing"),
    ("unknown key in a row", lambda gm: fxfuser.register_op({"op": "bad1", "targets": {"demo.bad1.default": "self"}, "kind": "pointwise", "dtypes": "float", "result": "default", "colour": "red", "expr": "{self}"}), ValueError, "bad1.*colour"),
    ("expression outside the grammar", lambda gm: fxfuser.register_op({"op": "bad2", "targets": {"demo.bad2.default": "self"}, "kind": "pointwise", "dtypes": "float", "result": "default", "expr": "system({self})"}), ValueError, "bad2.*system"),
    ("unknown hole", lambda gm: fxfuser.register_op({"op": "bad3", "targets": {"demo.bad3.default": "self"}, "kind": "pointwise", "dtypes": "float", "result": "default", "expr": "{other}"}), ValueError, "bad3.*other"),
    ("target that has a row", lambda gm: fxfuser.register_op({"op": "bad4", "targets": {"aten.exp.default": "self"}, "kind": "pointwise", "dtypes": "float", "result": "default", "expr": "exp({self})"}), ValueError, "aten.exp.default"),
    ("row that is no JSON", lambda gm: fxfuser.register_op("{"), ValueError, "."),
]


@pytest.mark.parametrize(("what", "call", "error", "message"), CASES, ids=[case[0] for case in CASES])
def test_bad_input(gm: torch.fx.GraphModule, what: str, call: Callable[[Any], Any], error: type[BaseException], message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}"):
        call(gm)
    torch.testing.assert_close(execute(gm, X), X.exp() + 1)


def test_unknown_parameter_warns_and_names_the_known_ones(gm: torch.fx.GraphModule) -> None:
    with pytest.warns(UserWarning, match="(?s)fast_mode.*allow_single_op_fusion"):
        out = execute(gm, X, executor_parameters={"fast_mode": True})
    torch.testing.assert_close(out, X.exp() + 1)


def test_strict_lists_every_node_it_cannot_take() -> None:
    gm = make_fx(lambda x: torch.digamma(x.exp()) + torch.lgamma(x) @ x)(torch.rand(3) + 1)
    with pytest.raises(ValueError, match="(?s)digamma.*dot|dot.*digamma"):
        execute(gm, torch.rand(3) + 1, executor="strictly_nvfuser")


def test_cycles_and_foreign_nodes_are_told_by_name() -> None:
    graph = torch.fx.Graph()
    first = graph.call_function(torch.ops.aten.sin.default, (graph.placeholder("x"),))
    second = graph.call_function(torch.ops.aten.cos.default, (first,))
    graph.output(second)
    cyclic = torch.fx.GraphModule(torch.nn.Module(), graph)
    first.args = (second,)
    cyclic.recompile()
    with pytest.raises(ValueError, match="sin.*aten.sin.default.*cos"):
        execute(cyclic, X)
    other = torch.fx.Graph()
    foreign = other.placeholder("elsewhere")
    graph = torch.fx.Graph()
    graph.placeholder("x")
    graph.output(graph.call_function(torch.ops.aten.cos.default, (foreign,)))
    with pytest.raises(ValueError, match="cos.*elsewhere"):
        execute(torch.fx.GraphModule(torch.nn.Module(), graph), X)


def test_eager_errors_stay_eagers() -> None:
    gm = make_fx(lambda x, y: x + y)(torch.randn(3), torch.randn(3))
    with pytest.raises((RuntimeError, ValueError), match="3.*4|4.*3"):
        execute(gm, torch.randn(3), torch.randn(4))
    torch.testing.assert_close(execute(gm, X, X), X + X)
