"""Graphs with modules, methods or torch functions: lowered once an input signature with ``make_fx``.

Parameters and buffers stay inputs of the lowered graph and are passed anew at each call, so a swapped parameter is seen.
"""

from __future__ import annotations

import threading
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
_lock = threading.RLock()  # tracing changes global state of torch
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
        return call_module(gm, args, kwargs)

    return run


def road(why: str) -> Road:
    """A road that lowers the module for each input signature and executes the lowered graph; ``why`` names what needs it."""

    def run(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any], executor: str, parameters: Any) -> Any:
        state = state_of(gm)
        if torch.is_grad_enabled() and any(
            isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in [*state.values(), *pytree.tree_leaves((args, kwargs))]
        ):
            return _run_as_is("an input or parameter requires grad while grad mode is on", gm, args, kwargs, executor)
        if _is_opaque(gm):
            return _run_as_is("autocast is on, or the module has hooks or tensors that are no parameters", gm, args, kwargs, executor)
        lowered = lower(gm, args, kwargs)
        if isinstance(lowered, str):
            return original(f"{why} could not be lowered: {lowered}")(gm, args, kwargs, executor, parameters)
        leaves = pytree.tree_leaves(_read(gm, args, kwargs))
        return _C.execute(lowered, list(state.values()), leaves, executor=executor, executor_parameters=parameters)

    return run


def _run_as_is(reason: str, gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any], executor: str) -> Any:
    if executor == "strictly_nvfuser":
        raise ValueError(f"strictly_nvfuser can't take this call: {reason}")
    return call_module(gm, args, kwargs)


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


def call_module(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    args, kwargs = _read(gm, args, kwargs)
    return gm(*args, **kwargs)


def _is_opaque(gm: torch.fx.GraphModule) -> bool:
    """True when a call depends on what a trace can't see change: hooks, casts by autocast, tensors that are no parameters."""
    if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
        return True
    for module in gm.modules():
        if module._forward_hooks or module._forward_pre_hooks or "forward" in module.__dict__:
            return True
        if module is not gm and any(isinstance(value, torch.Tensor) for value in module.__dict__.values()):
            return True
    return False


def _settings(module: torch.nn.Module) -> Any:
    """What a module's forward may read beside its parameters: its plain attributes."""
    plain = (int, float, bool, str, tuple, type(None), torch.dtype, torch.device)
    values = tuple((name, repr(value)) for name, value in module.__dict__.items() if not name.startswith("__") and isinstance(value, plain))
    return (id(module), type(module), values)


def _sharing(tensors: list[Any]) -> tuple[int, ...]:
    """For each tensor the first place where the same object stands: a trace takes equal objects for one input."""
    first: dict[int, int] = {}
    return tuple(first.setdefault(id(tensor), at) for at, tensor in enumerate(tensors))


def _signature(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return (leaf.dtype, tuple(leaf.shape), leaf.stride(), leaf.device, type(leaf))
    if isinstance(leaf, float):
        return (float, leaf.hex())  # 0.0 and -0.0 differ
    return (type(leaf), leaf)


def lower(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.fx.GraphModule | str:
    """The module as dispatcher overloads for inputs of this signature: a graph over (state, leaves), or why not."""
    args, kwargs = _read(gm, args, kwargs)
    leaves, spec = pytree.tree_flatten((args, kwargs))
    state = state_of(gm)
    tensors = [leaf for leaf in [*state.values(), *leaves] if isinstance(leaf, torch.Tensor)]
    settings = tuple(_settings(module) for module in gm.modules())
    key = (type(gm).forward, spec, tuple(map(_signature, leaves)), tuple(map(_signature, state.values())), _sharing(tensors), settings, torch.get_default_dtype())
    with _lock:
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
