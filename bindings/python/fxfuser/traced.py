"""``make_traced``: a function traced once for each structure of its arguments, then executed."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from fxfuser import _C
from fxfuser.capability_mode import TorchRefsNvfuserCapabilityMode
from fxfuser.lowering import _lock, _settings, _sharing, _signature

_MAX_TRACES = 64


class _Restored(TorchDispatchMode):
    """Real tensors among fakes, which a trace meets where a function closes over them, are at its end what they were."""

    def __init__(self) -> None:
        super().__init__()
        self._written: list[tuple[torch.Tensor, torch.Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.is_mutable:
            with _disable_current_modes():  # the copy is none of the trace's ops
                for leaf in pytree.tree_leaves((args, kwargs)):
                    if isinstance(leaf, torch.Tensor) and not isinstance(leaf, FakeTensor) and not any(own is leaf for own, _ in self._written):
                        self._written.append((leaf, leaf.detach().clone()))
        return func(*args, **kwargs)

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        with torch.no_grad():
            for own, kept in self._written:
                own.copy_(kept)


class _Trace:
    """A graph over the tensors among the arguments, and how its flat results become what the function returned."""

    def __init__(self, fn: Callable[..., Any], leaves: list[Any], spec: Any) -> None:
        self.result_spec: Any = None
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

        def function(values: list[torch.Tensor]) -> list[Any]:
            rest = iter(values)
            args, kwargs = pytree.tree_unflatten([next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec)
            results, self.result_spec = pytree.tree_flatten(fn(*args, **kwargs))
            return results

        # On fakes: what the function writes to its arguments, or to what it closes over, is written when the graph runs.
        mode = FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=True)
        stand_ins = [mode.from_tensor(tensor) for tensor in tensors]
        with _Restored(), mode, TorchRefsNvfuserCapabilityMode():
            self.graph = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(stand_ins)

    def __call__(self, leaves: list[Any], executor: str, parameters: Any) -> Any:
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        results = _C.execute(self.graph, tensors, executor=executor, executor_parameters=parameters)
        return pytree.tree_unflatten(results, self.result_spec)


def _captured(fn: Callable[..., Any]) -> tuple[Any, ...]:
    """What a trace of ``fn`` holds besides its arguments: parameters and settings of a module, values of a closure."""
    if isinstance(fn, torch.nn.Module):
        state = [*fn.parameters(), *fn.buffers()]
        return (*map(id, state), *(_signature(tensor, False) for tensor in state), *(_settings(module) for module in fn.modules()))
    if isinstance(fn, functools.partial):
        return (*_captured(fn.func), *map(_held, (*fn.args, *fn.keywords.values())))
    owner = getattr(fn, "__self__", None)
    own = _captured(owner) if isinstance(owner, torch.nn.Module) else ()
    cells = getattr(fn, "__closure__", None) or ()
    return (*own, *(_held(cell.cell_contents) for cell in cells))


def _held(value: Any) -> Any:
    if isinstance(value, torch.nn.Module):
        return _captured(value)
    plain = isinstance(value, (bool, int, float, str, type(None), torch.dtype, torch.device))
    return _signature(value, False) if plain else (id(value), _signature(value, False) if isinstance(value, torch.Tensor) else None)


def make_traced(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A callable that traces ``fn`` to nvprims at the first call of each structure of arguments, and executes the trace.

    The structure is the nesting, the tensors' dtypes, shapes, strides and devices, and the values of all else. What ``fn`` closes
    over counts too; globals and attributes of other objects are taken as they are at the trace. The callable takes two keywords of
    its own, ``executor`` (``"aten"`` by default) and ``executor_parameters``.

    Args:
        fn: a function of tensors, numbers and nested containers of them.

    Example:
        >>> traced = make_traced(lambda a, b: torch.sigmoid(a) * b)
        >>> y = traced(torch.randn(3), 2.0, executor="nvfuser")
    """
    traces: OrderedDict[Any, _Trace] = OrderedDict()

    @functools.wraps(fn)
    def traced(*args: Any, executor: str = "aten", executor_parameters: Any = None, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        key: Any = (
            spec, tuple(_signature(leaf, False) for leaf in leaves), _sharing(tensors), tuple(tensor.requires_grad for tensor in tensors), torch.is_grad_enabled(),
            torch.get_default_dtype(), _captured(fn),
        )
        with _lock:  # tracing changes global state of torch
            try:
                trace = traces.get(key)
            except TypeError as error:
                raise TypeError(f"make_traced tells calls apart by their arguments, and one can't be hashed: {error}") from None
            if trace is None:
                trace = traces[key] = _Trace(fn, leaves, spec)
                if len(traces) > _MAX_TRACES:
                    traces.popitem(last=False)
            traces.move_to_end(key)
        return trace(leaves, executor, executor_parameters)

    return traced
