"""Graphs with modules, methods or torch functions: lowered once an input signature by tracing (``fxfuser.tracing``).

Parameters and buffers stay inputs of the lowered graph and are passed anew at each call, so a swapped parameter is seen.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fxfuser import _C, calls, tracing
from fxfuser.warnings import FallbackWarning

Road = Callable[[torch.fx.GraphModule, tuple[Any, ...], dict[str, Any], str, Any], Any]

_MAX_SIGNATURES = 64
_lock = threading.RLock()  # tracing changes global state of torch
_lowered: weakref.WeakKeyDictionary[torch.fx.GraphModule, dict[Any, tracing.Lowered | str | tracing.ValuesMatter]] = weakref.WeakKeyDictionary()
_told: weakref.WeakKeyDictionary[torch.fx.GraphModule, set[str]] = weakref.WeakKeyDictionary()

HOOKS = "the module has hooks, or a forward of its own instance"


def original(reason: str, lasting: bool = True) -> Road:
    """A road that runs the module itself and says so once; one that is not ``lasting`` is asked for again at the next call."""

    def run(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any], executor: str, parameters: Any) -> Any:
        if not lasting:
            _C.drop_handle(gm)
        return run_itself(gm, args, kwargs, executor == "strictly_nvfuser", reason)

    return run


def road(why: str) -> Road:
    """A road that lowers the module for each input signature and executes the lowered graph; ``why`` names what needs it."""

    def run(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any], executor: str, parameters: Any) -> Any:
        strict = executor == "strictly_nvfuser"
        reason = _what_a_trace_misses(gm, args, kwargs)
        if reason is not None:
            return run_itself(gm, args, kwargs, strict, reason, quiet=reason in _MODES)
        args = reading_of(gm, args, kwargs)
        lowered = lower(gm, args, kwargs)
        if isinstance(lowered, str):
            return run_itself(gm, args, kwargs, strict, f"{why} could not be lowered: {lowered}")
        values = _C.execute(
            lowered.module, list(state_of(gm).values()), pytree.tree_leaves((args, kwargs)), executor=executor, executor_parameters=parameters
        )
        return lowered.assemble(values)

    return run


def run_with_hooks(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any], strict: bool) -> Any:
    """A call of a module while something runs around or instead of its graph."""
    return run_itself(gm, args, kwargs, strict, HOOKS)


def run_in_mode(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any], strict: bool) -> Any:
    """A call while a mode is active: the mode sees each of the module's own calls."""
    return run_itself(gm, args, kwargs, strict, _MODE, quiet=True)


def run_itself(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any], strict: bool, reason: str, quiet: bool = False) -> Any:
    """``gm(*args)``, said once a module and reason.

    Raises:
        ValueError: ``strict``.
    """
    if not isinstance(gm, torch.fx.GraphModule):
        raise TypeError(f"execute takes a torch.fx.GraphModule, not {type(gm).__name__}")
    if strict:
        raise ValueError(f"strictly_nvfuser can't take this module: {reason}")
    if not quiet and is_news(gm, reason):
        warnings.warn(f"nothing is fused, fallback to aten executor: {reason}", FallbackWarning, stacklevel=3)
    fitting = [reading for _, reading in calls.readings(gm, args, kwargs)]
    if len(fitting) == 2 and _what_a_trace_misses(gm, args, kwargs) is None:
        args = reading_of(gm, args, kwargs)
    elif fitting:
        args = fitting[0]
    return gm(*args, **kwargs)


def is_news(gm: torch.fx.GraphModule, text: str) -> bool:
    """True the first time that a text is to be told of a module."""
    told = _told.setdefault(gm, set())
    if text in told:
        return False
    told.add(text)
    return True


def forget() -> None:
    """What was told may be told again."""
    _told.clear()


def state_of(gm: torch.fx.GraphModule) -> dict[str, torch.Tensor]:
    """Parameters and buffers by dotted name."""
    return {**dict(gm.named_parameters(remove_duplicate=False)), **dict(gm.named_buffers(remove_duplicate=False))}


def reading_of(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The positional arguments that the module takes: where both readings fit, the first that can be traced.

    Raises:
        TypeError: neither reading fits; the text names both.
    """
    return calls.choose(gm, args, kwargs, lambda reading: not isinstance(lower(gm, reading, kwargs), str))


_AUTOCAST, _MODE = "autocast is on", "a mode of torch's is active"
_MODES = (_AUTOCAST, _MODE)


def _what_a_trace_misses(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Why only the module itself may run: what a call depends on and a trace can't see change."""
    if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
        return _AUTOCAST
    if torch._C._len_torch_function_stack() > 0 or torch._C._len_torch_dispatch_stack() > 0:
        return _MODE
    tensors = [leaf for leaf in [*state_of(gm).values(), *pytree.tree_leaves((args, kwargs))] if isinstance(leaf, torch.Tensor)]
    if any(tensor.has_names() for tensor in tensors):
        return "an input has named dims"
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return (
            "an input or parameter requires grad while grad mode is on: "
            "call it under torch.no_grad() (or torch.inference_mode()) to run it fused"
        )
    if _C.has_overrides(gm):
        return HOOKS
    for module in gm.modules():
        if module is not gm and any(isinstance(value, torch.Tensor) for value in module.__dict__.values()):
            return "a submodule holds a tensor that is neither a parameter nor a buffer"
    return None


def _settings(module: torch.nn.Module) -> Any:
    """What a module's call depends on beside its parameters: its plain attributes, and a forward of its instance."""
    plain = (int, float, bool, str, tuple, type(None), torch.dtype, torch.device)
    values = tuple((name, repr(value)) for name, value in module.__dict__.items() if not name.startswith("__") and isinstance(value, plain))
    return (id(module), type(module), module.__dict__.get("forward"), values)


def _sharing(tensors: list[Any]) -> tuple[int, ...]:
    """For each tensor the first place where the same object stands: a trace takes equal objects for one input."""
    first: dict[int, int] = {}
    return tuple(first.setdefault(id(tensor), at) for at, tensor in enumerate(tensors))


def _signature(leaf: Any, by_kind: bool) -> Any:
    """What of an argument a trace depends on; ``by_kind``: of a number its type alone."""
    if isinstance(leaf, torch.Tensor):
        return (leaf.dtype, tuple(leaf.shape), leaf.stride(), leaf.device, type(leaf))
    if by_kind and tracing.is_number(leaf):
        return type(leaf)
    if isinstance(leaf, float):
        return (float, leaf.hex())  # 0.0 and -0.0 differ
    return (type(leaf), leaf)


def lower(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tracing.Lowered | str:
    """The module as dispatcher overloads for inputs of this signature: a graph over (state, leaves), or why not.

    Numbers are inputs of the lowered graph, of any value, unless what is computed depends on them (a dim, a branch).
    """
    leaves, spec = pytree.tree_flatten((args, kwargs))
    state = state_of(gm)
    tensors = [leaf for leaf in [*state.values(), *leaves] if isinstance(leaf, torch.Tensor)]
    settings = tuple(_settings(module) for module in gm.modules())
    facts = (type(gm).forward, spec, tuple(_signature(tensor, False) for tensor in state.values()), _sharing(tensors), settings, torch.get_default_dtype())
    with _lock:
        cache = _lowered.setdefault(gm, {})
        for by_kind in (True, False):
            key = (by_kind, facts, tuple(_signature(leaf, by_kind) for leaf in leaves))
            try:
                found = cache.pop(key, None)
            except TypeError as error:  # an argument that can't be a key
                return f"an argument is not hashable ({error})"
            if found is None:
                found = tracing.trace(gm, state, leaves, spec, by_kind)
            cache[key] = found  # the last one is the one used last
            if len(cache) > _MAX_SIGNATURES:
                cache.pop(next(iter(cache)))
            if not isinstance(found, tracing.ValuesMatter):
                return found
    raise AssertionError("a trace by values can't depend on values")
