"""A graph of AOTAutograd's as a callable in its boxed convention: one list of inputs, which is emptied."""

from __future__ import annotations

from typing import Any

import torch
import torch.fx
from torch._functorch._aot_autograd.runtime_wrappers import _AnalyzeCustomOpInputOutputMode as AnalysisOfCustomOps
from torch._library.utils import is_builtin
from torch.utils._python_dispatch import _disable_current_modes, _get_current_dispatch_mode

from fxfuser import _C

OURS = frozenset(("fxfuser", "nvprims"))  # namespaces whose ops say in their schemas what they return


class Boxed:
    """Runs a forward or backward graph. The program is made at the first call, and anew when it was dropped."""

    def __init__(self, graph: torch.fx.GraphModule, parameters: dict[str, Any]) -> None:
        self.graph = graph
        self.parameters = parameters
        self.only_builtin = all(_is_builtin(node.target) for body in _bodies(graph) for node in body.graph.nodes if node.op == "call_function")
        self.fresh = True
        self._boxed_call = True  # in the instance: wrappers of torch's copy its dictionary

    def __call__(self, inputs: list[Any]) -> Any:
        if self.fresh:
            self.fresh = False
            for body in _bodies(self.graph):
                body.recompile()
                _ = body.code  # a lazy module generates its code only now
            # torch watches the first call for custom ops that return what they were given; a graph without one has nothing to show.
            if self.only_builtin and isinstance(_get_current_dispatch_mode(), AnalysisOfCustomOps):
                with _disable_current_modes():
                    return _C.execute_boxed(self.graph, inputs, self.parameters)
        return _C.execute_boxed(self.graph, inputs, self.parameters)


def _bodies(graph: torch.fx.GraphModule) -> list[torch.fx.GraphModule]:
    """The graph and those that its higher-order ops call."""
    return [module for module in graph.modules() if isinstance(module, torch.fx.GraphModule)]


def _is_builtin(target: Any) -> bool:
    if isinstance(target, torch._ops.OpOverload):
        return bool(is_builtin(target)) or target.namespace in OURS
    if isinstance(target, torch._ops.HigherOrderOperator):
        return type(target).__module__.startswith("torch.") and not target.name().startswith("triton")
    return True  # getitem and arithmetic on sizes
