"""The ``Fusion`` / ``FusionDefinition`` frontend: a computation written down op by op, compiled once for all equal definitions.

Example:
    >>> with FusionDefinition() as fd:
    ...     x = fd.define_tensor(2)
    ...     fd.add_output(fd.ops.sum(fd.ops.relu(x * 2.0), [1]))
    >>> (y,) = fd.execute([torch.randn(4, 5)])
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch

from fxfuser import _C

DataType = _C.DataType
Fusion = _C.Fusion
FusionCache = _C.FusionCache
Scalar = _C.Scalar
Tensor = _C.Tensor
compute_contiguity = _C.compute_contiguity


def _method(name: str) -> Callable[..., Any] | None:
    """The op of this name as a method of ``Operators``, with the signature and the documentation of its row."""
    found = _C.op_signature(name)
    if found is None:
        return None

    def method(self: Operators, *args: Any, **kwargs: Any) -> Any:
        return self._definition._call(name, args, kwargs)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    optional = False  # ATen's keyword-only arguments may have none after one that has a default
    for parameter, has_default, default in found[1]:
        optional = optional or has_default
        parameters.append(inspect.Parameter(parameter, kind, default=default if has_default else None if optional else inspect.Parameter.empty))
    method.__name__ = name
    method.__qualname__ = f"Operators.{name}"
    method.__doc__ = found[0]
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return method


class Operators:
    """The ops of a definition, ``fd.ops.add(x, y)``: one for each row of the op table, and ATen's others by their names.

    ``dir(fd.ops)`` lists them, ``help(fd.ops.add)`` says what one takes.
    """

    def __init__(self, definition: FusionDefinition) -> None:
        self._definition = definition

    def __getattr__(self, name: str) -> Any:
        method = None if name.startswith("_") else _method(name)
        if method is None:
            raise AttributeError(f"fd.ops has no '{name}': neither a row of the op table nor an ATen op has that name")
        setattr(Operators, name, method)
        return getattr(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_C.frontend_ops()})


class FusionDefinition(_C.FusionDefinition):
    """A computation under construction, a context manager: what its body defines becomes a fusion when the body ends.

    Args:
        fusion: the ``Fusion`` to fill in, or the id of a defined one; a new one when left out.
        max_length: how many records the definition may have.

    A subclass may write its body as a method ``definition(self)``, which the first ``execute`` calls.
    """

    Operators = Operators

    def __init__(self, fusion: Fusion | int | None = None, max_length: int = 1024) -> None:
        super().__init__(fusion, max_length)
        self.ops = Operators(self)

    def definition(self) -> None:
        """The body, in a subclass."""
        raise NotImplementedError("Fusion is empty! Write a body: `with FusionDefinition() as fd: ...`, or a subclass with definition()")

    def execute(self, inputs: Iterable[Any], **options: Any) -> list[torch.Tensor]:
        """Runs the completed definition; see ``Fusion.execute``.

        Args:
            inputs: tensors and numbers, one an input in order of definition.
            **options: ``device``, ``strict`` and keys of ``executor_parameters``.

        Raises:
            NotImplementedError: nothing was defined, or nothing is an output.
            ValueError, TypeError: an input of a wrong rank, size, dtype or kind, named by its index.
        """
        fusion = self._fusion()
        if not fusion.defined():
            with self:
                self.definition()
        return fusion.execute(inputs, **options)

    def validate(
        self, inputs: Iterable[Any], reference: Iterable[torch.Tensor] | None = None, *, rtol: float | None = None, atol: float | None = None, **options: Any
    ) -> list[torch.Tensor]:
        """Runs the definition and compares the results, inputs that it writes included, with ``reference``.

        Without a reference they are compared with what the same ops give one by one through ATen. The inputs stay as they are.

        Returns:
            The results.

        Raises:
            AssertionError: a result differs; the message names it.
        """
        given = list(inputs)
        ours = [value.clone() if isinstance(value, torch.Tensor) else value for value in given]
        results = self.execute(ours, **options)
        if reference is None:
            theirs = [value.clone() if isinstance(value, torch.Tensor) else value for value in given]
            expected = self.execute(theirs, aten=True)
            for index, (ran, wanted) in enumerate(zip(ours, theirs, strict=True)):
                if isinstance(ran, torch.Tensor):
                    _compare(ran, wanted, f"input {index}, as written", rtol, atol)
        else:
            expected = list(reference)
        if len(results) != len(expected):
            raise AssertionError(f"the definition returns {len(results)} results, the reference has {len(expected)}")
        for index, (ran, wanted) in enumerate(zip(results, expected, strict=True)):
            _compare(ran, wanted, f"output {index}", rtol, atol)
        return results


def _compare(ours: torch.Tensor, expected: torch.Tensor, what: str, rtol: float | None, atol: float | None) -> None:
    torch.testing.assert_close(ours, expected, rtol=rtol, atol=atol, equal_nan=True, msg=lambda text: f"{what}: {text}")


__all__ = ["DataType", "Fusion", "FusionCache", "FusionDefinition", "Operators", "Scalar", "Tensor", "compute_contiguity"]
