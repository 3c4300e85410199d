"""What Dynamo calls with each graph: checks the keywords of ``torch.compile`` and hands the graph to AOTAutograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
from torch._dynamo.backends.common import aot_autograd

from fxfuser import _C
from fxfuser.backend.compiler import Boxed
from fxfuser.backend.decompositions import decompositions
from fxfuser.backend.partition_fn import PARTITIONS
from fxfuser.backend.random import keeping_seeds

# torch.compile's mode -> executor_parameters; a parameter that this build does not have is left out.
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {"cuda_graph": True},
    "max-autotune": {"cuda_graph": True},
    "max-autotune-no-cudagraphs": {},
}


# An option of the backend itself: who chooses what is saved between forward and backward.
PARTITION = "partition"


def partition_of(options: dict[str, Any] | None) -> Callable[..., Any]:
    """The partition function that ``options`` names.

    Raises:
        ValueError: an unknown name; the text lists the known ones.
    """
    name = (options or {}).get(PARTITION, "bytes")
    if name not in PARTITIONS:
        raise ValueError(f"{PARTITION} is {name!r}; it can be {', '.join(PARTITIONS)}")
    return PARTITIONS[name]


def parameters_of(mode: str | None, options: dict[str, Any] | None) -> dict[str, Any]:
    """``torch.compile``'s ``mode`` and ``options`` as ``executor_parameters``.

    Raises:
        ValueError: an unknown mode or option; the text lists the known ones.
        TypeError: an option of a wrong type.
    """
    known = [row["name"] for row in _C.option_docs()]
    options = {name: value for name, value in (options or {}).items() if name != PARTITION}
    if mode is not None and mode not in MODES:
        raise ValueError(f"mode is {mode!r}; it can be {', '.join(MODES)}")
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ValueError(f"options has an unknown key {unknown[0]!r}; known are {', '.join([PARTITION, *known])}")
    parameters = {name: value for name, value in MODES[mode or "default"].items() if name in known}
    parameters.update(options)
    _C.check_options("nvfuser", parameters)
    return parameters


class Backend:
    """A backend of ``torch.compile``: a callable of (graph, example inputs).

    Example:
        >>> step = torch.compile(model, backend="fxfuser")
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, gm: torch.fx.GraphModule, inputs: Sequence[Any], *, mode: str | None = None, options: dict[str, Any] | None = None) -> Callable[..., Any]:
        """Compiles one graph of Dynamo's; what it returns takes the graph's inputs."""
        parameters = parameters_of(mode, options)
        fused_rng = bool(parameters.get("fused_rng"))
        partition = partition_of(options)

        def compiler(graph: torch.fx.GraphModule, examples: Sequence[Any]) -> Boxed:
            return Boxed(graph, parameters)

        compiled: Callable[..., Any] = aot_autograd(
            fw_compiler=compiler,
            bw_compiler=compiler,
            inference_compiler=compiler,
            decompositions=decompositions(fused_rng),
            partition_fn=keeping_seeds(partition) if fused_rng else partition,
            keep_inference_input_mutations=True,
        )(gm, inputs)
        return compiled

    def reset(self) -> None:
        """Frees the plans of this process; ``torch._dynamo.reset()`` calls it."""
        _C.drop_handles()
