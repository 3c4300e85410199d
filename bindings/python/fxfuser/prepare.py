"""A GraphModule as a callable with its options bound."""

from __future__ import annotations

from typing import Any

import torch

from fxfuser import _C
from fxfuser.report import Report, explain


class CompiledGraph:
    """What ``prepare`` returns: call it like the module it was made from.

    Example:
        >>> run = prepare(gm, rounding="eager")
        >>> y = run(x)
        >>> print(run.report())
    """

    __slots__ = ("_arguments", "_executor", "_module", "_parameters")

    def __init__(self, module: torch.fx.GraphModule, executor: str, parameters: dict[str, Any]) -> None:
        self._module = module
        self._executor = executor
        self._parameters = parameters
        self._arguments: tuple[Any, ...] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module on its own arguments; see ``execute``."""
        return _C.execute(self._module, *args, executor=self._executor, executor_parameters=self._parameters, **kwargs)

    def report(self, *args: Any) -> Report:
        """What is fused for these inputs (or for the traced ones), and why the rest is not."""
        return explain(self._module, *args, executor=self._executor, executor_parameters=self._parameters)

    def source(self, kernel: int | str) -> str:
        """The text of a generated kernel, by its index in the report or its name."""
        return self.report().source(kernel)


def prepare(gm: torch.fx.GraphModule, *, executor: str = "nvfuser", **options: Any) -> CompiledGraph:
    """A callable that executes ``gm`` with these options.

    Args:
        gm: the module.
        executor: as in ``execute``.
        **options: keys of ``executor_parameters``.

    Raises:
        TypeError: ``gm`` is no GraphModule; an option of a wrong type.
        ValueError: an unknown executor, or a value that an option can't have.
    """
    if not isinstance(gm, torch.fx.GraphModule):
        raise TypeError(f"prepare takes a torch.fx.GraphModule, not {type(gm).__name__}")
    _C.check_options(executor, options)
    return CompiledGraph(gm, executor, dict(options))
