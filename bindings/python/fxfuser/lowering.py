"""Graphs with modules, methods or torch functions: lowered once an input signature with ``make_fx``.

Parameters and buffers stay inputs of the lowered graph and are passed anew at each call, so a swapped parameter is seen.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from fxfuser import _C
from fxfuser.warnings import FallbackWarning

Road = Callable[[torch.fx.GraphModule, tuple[Any, ...], dict[str, Any], str, Any], Any]

_MAX_SIGNATURES = 64
_lowered: weakref.WeakKeyDictionary[torch.fx.GraphModule, dict[Any, torch.fx.GraphModule | str]] = weakref.WeakKeyDictionary()


def original(reason: str) -> Road:
    """A road that runs the module itself and says so once."""
    told = False

    def run(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any], executor: str, parameters: Any) -> Any:
        nonlocal told
        if executor == "strictly_nvfuser":
            raise ValueError(f"strictly_nvfuser can't take this module: {reason}")
        if not told:
            told = True
            warnings.warn(f"nothing is fused, fallback to aten executor: {reason}", FallbackWarning, stacklevel=3)
        return _call(gm, args, kwargs)

    return run


def road(why: str) -> Road:
    """A road that lowers the module for each input signature and executes the lowered graph; ``why`` names what needs it."""

    def run(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any], executor: str, parameters: Any) -> Any:
        state = state_of(gm)
        if torch.is_grad_enabled() and any(
            isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in [*state.values(), *pytree.tree_leaves((args, kwargs))]
        ):
            return _call(gm, args, kwargs)
        lowered = lower(gm, args, kwargs)
        if isinstance(lowered, str):
            return original(f"{why} could not be lowered: {lowered}")(gm, args, kwargs, executor, parameters)
        leaves = pytree.tree_leaves(_read(gm, args, kwargs))
        return _C.execute(lowered, list(state.values()), leaves, executor=executor, executor_parameters=parameters)

    return run


def state_of(gm: torch.fx.GraphModule) -> dict[str, torch.Tensor]:
    """Parameters and buffers by dotted name."""
    return {**dict(gm.named_parameters(remove_duplicate=False)), **dict(gm.named_buffers(remove_duplicate=False))}


def _placeholder_count(gm: torch.fx.GraphModule) -> int:
    return sum(1 for node in gm.graph.nodes if node.op == "placeholder")


def _read(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments in the reading that fits: execute(gm, *args), or execute(gm, args)."""
    if len(args) == 1 and not kwargs and isinstance(args[0], (tuple, list)):
        from fxfuser.fx_import import _tree_info

        if _tree_info(gm) is None and len(args[0]) == _placeholder_count(gm) != 1:
            return tuple(args[0]), kwargs
    return args, kwargs


def _call(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    args, kwargs = _read(gm, args, kwargs)
    return gm(*args, **kwargs)


def _signature(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return (leaf.dtype, tuple(leaf.shape), leaf.stride(), leaf.device, type(leaf))
    return (type(leaf), leaf)


def lower(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.fx.GraphModule | str:
    """The module as dispatcher overloads for inputs of this signature: a graph over (state, leaves), or why not."""
    args, kwargs = _read(gm, args, kwargs)
    leaves, spec = pytree.tree_flatten((args, kwargs))
    state = state_of(gm)
    modes = tuple(module.training for module in gm.modules())
    forward = type(gm).forward
    key = (forward, spec, tuple(map(_signature, leaves)), tuple(map(_signature, state.values())), modes)
    cache = _lowered.setdefault(gm, {})
    try:
        if key in cache:
            return cache[key]
    except TypeError as error:  # an argument that can't be a key
        return f"an argument is not hashable ({error})"
    if len(cache) >= _MAX_SIGNATURES:
        cache.pop(next(iter(cache)))
    cache[key] = _trace(gm, state, leaves, spec)
    return cache[key]


def _trace(gm: torch.fx.GraphModule, state: dict[str, torch.Tensor], leaves: list[Any], spec: Any) -> torch.fx.GraphModule | str:
    names = list(state)

    def function(values: list[torch.Tensor], inputs: list[Any]) -> Any:
        positional, keyword = pytree.tree_unflatten(inputs, spec)
        return torch.func.functional_call(gm, dict(zip(names, values, strict=True)), positional, keyword)

    try:
        with torch.no_grad():
            return make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(list(state.values()), leaves)
    except Exception as error:  # whatever tracing raises is the reason
        return f"{type(error).__name__}: {error}".splitlines()[0]
