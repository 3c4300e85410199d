"""executor_parameters: both keys of 2022, alone and together, per call on one module, as a dictionary or a stored name."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute, prepare
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

Launches = Callable[[], int]
X = torch.rand(4, 6) + 0.5


@pytest.fixture
def single() -> torch.fx.GraphModule:
    """One supported op: fused or not as the flag says, in a graph that is supported as a whole."""
    return make_fx(torch.sigmoid)(X)


@pytest.fixture
def chain() -> torch.fx.GraphModule:
    """sin alone, digamma unsupported, then a pair."""
    return make_fx(lambda t: torch.digamma(t.sin() + 0).exp().log())(X)


@pytest.mark.parametrize(
    ("parameters", "kernels"),
    [
        (None, 1), ({}, 1), ({"allow_single_op_fusion": True}, 1), ({"allow_single_op_fusion": False}, 0), ({"use_python_fusion_cache": False}, 1), ({"use_python_fusion_cache": True}, 1),
        ({"use_python_fusion_cache": False, "allow_single_op_fusion": False}, 0), ({"use_python_fusion_cache": False, "allow_single_op_fusion": True}, 1), ("default", 1),
        (MappingProxyType({"allow_single_op_fusion": False}), 0),
    ],
    ids=str,
)
def test_single_op(single: torch.fx.GraphModule, parameters: Any, kernels: int, launches: Launches) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fxfuser.FallbackWarning)
        for _ in range(2):
            check_close(execute(single, X, executor_parameters=parameters), torch.sigmoid(X), str(parameters))
    assert launches() == 2 * kernels


def test_settings_are_mixed_on_one_module(launches: Launches) -> None:
    gm = make_fx(lambda t: torch.digamma(t.sin()).exp().log())(X)
    expected, total = gm(X), 0
    for single, cache in [*itertools.product((True, False), (True, False))] * 2:
        check_close(execute(gm, X, executor_parameters={"allow_single_op_fusion": single, "use_python_fusion_cache": cache}), expected, f"{single} {cache}")
        total += 2 if single else 1
        assert launches() == total


def test_a_changed_dictionary_is_read_again(single: torch.fx.GraphModule, launches: Launches) -> None:
    parameters = {"allow_single_op_fusion": True}
    execute(single, X, executor_parameters=parameters)
    parameters["allow_single_op_fusion"] = False
    execute(single, X, executor_parameters=parameters)
    assert launches() == 1


def test_strict_ignores_the_single_op_flag(single: torch.fx.GraphModule, launches: Launches) -> None:
    check_close(execute(single, X, executor="strictly_nvfuser", executor_parameters={"allow_single_op_fusion": False}), torch.sigmoid(X), "strict")
    assert launches() == 1


@pytest.mark.parametrize("name", ["default", "strict", "latency", "debug"])
def test_stored_dictionaries(chain: torch.fx.GraphModule, name: str, launches: Launches) -> None:
    check_close(execute(chain, X, executor_parameters=name), chain(X), name)
    assert launches() >= 1


def test_bound_by_prepare(single: torch.fx.GraphModule, launches: Launches) -> None:
    run = prepare(single, allow_single_op_fusion=False)
    check_close(run(X), torch.sigmoid(X), "prepared")
    assert launches() == 0


@pytest.mark.parametrize(("key", "value"), [("allow_single_op_fusion", 1), ("allow_single_op_fusion", None), ("use_python_fusion_cache", "no"), ("use_python_fusion_cache", 0.0)])
def test_flags_are_booleans(single: torch.fx.GraphModule, key: str, value: Any) -> None:
    with pytest.raises(TypeError, match=key):
        execute(single, X, executor_parameters={key: value})


def test_an_unknown_key_warns_and_the_rest_holds(single: torch.fx.GraphModule, launches: Launches) -> None:
    with pytest.warns(UserWarning, match="(?s)none_of_ours.*allow_single_op_fusion.*use_python_fusion_cache"):
        execute(single, X, executor_parameters={"none_of_ours": True, "allow_single_op_fusion": False})
    assert launches() == 0
