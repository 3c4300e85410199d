"""Our own openings of ops without a row: what torch's decompositions write through copies becomes paddings and concatenations; a
matrix product that sums over one element is a multiplication."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.ops import aten


def _placed(grad: torch.Tensor, dim: int, start: int, size: int) -> torch.Tensor:
    """`grad` among zeros: `start` before it along `dim`, `size` in all."""
    after = size - start - grad.shape[dim]
    padding = [0, 0] * (grad.dim() - 1 - dim) + [start, after]
    plain = grad if grad.is_contiguous() else grad.clone(memory_format=torch.contiguous_format)  # eager's zeros are contiguous
    padded: torch.Tensor = aten.constant_pad_nd.default(plain, padding, 0)
    return padded


def _is_known(*numbers: Any) -> bool:
    return all(number is None or isinstance(number, int) for number in numbers)


def _bounds(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Where a slice of step one begins and ends, both within the size."""
    first, last, _ = slice(start, end).indices(size)
    return first, max(first, last)


def slice_backward(grad: torch.Tensor, sizes: list[int], dim: int, start: int, end: int, step: int) -> Any:
    dim = dim % len(sizes)
    if step != 1 or not _is_known(sizes[dim], start, end):
        return NotImplemented
    return _placed(grad, dim, _bounds(sizes[dim], start, end)[0], sizes[dim])


def select_backward(grad: torch.Tensor, sizes: list[int], dim: int, index: int) -> Any:
    dim = dim % len(sizes)
    if not _is_known(sizes[dim], index):
        return NotImplemented
    return _placed(grad.unsqueeze(dim), dim, index % sizes[dim], sizes[dim])


def _replaced(self: torch.Tensor, src: torch.Tensor, dim: int, start: int, end: int) -> torch.Tensor:
    """`self` with `src` in place of what lies between `start` and `end` along `dim`."""
    parts = [src.to(self.dtype)]
    if start > 0:
        parts.insert(0, aten.slice.Tensor(self, dim, 0, start))
    if end < self.shape[dim]:
        parts.append(aten.slice.Tensor(self, dim, end, self.shape[dim]))
    joined: torch.Tensor = aten.cat.default(parts, dim) if len(parts) > 1 else parts[0].clone()
    return joined


def slice_scatter(self: torch.Tensor, src: torch.Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    dim = dim % self.dim()
    if step != 1 or not _is_known(self.shape[dim], start, end):
        return NotImplemented
    first, last = _bounds(self.shape[dim], start, end)
    shape = [*self.shape[:dim], last - first, *self.shape[dim + 1 :]]
    return _replaced(self, src.expand(shape), dim, first, last)


def select_scatter(self: torch.Tensor, src: torch.Tensor, dim: int, index: int) -> Any:
    dim = dim % self.dim()
    if not _is_known(self.shape[dim], index):
        return NotImplemented
    at = index % self.shape[dim]
    return _replaced(self, src.unsqueeze(dim), dim, at, at + 1)


def copy(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> Any:
    if self.device != src.device or self.dtype.is_complex != src.dtype.is_complex:
        return NotImplemented
    return src.to(self.dtype).expand(self.shape).clone(memory_format=torch.contiguous_format)


def product(self: torch.Tensor, other: torch.Tensor) -> Any:
    """`mm` and `bmm`."""
    if not (_is_known(self.shape[-1]) and self.shape[-1] == 1 and self.is_floating_point()):
        return NotImplemented
    return self * other


OWN: dict[Any, Callable[..., Any]] = {
    aten.slice_backward.default: slice_backward,
    aten.select_backward.default: select_backward,
    aten.slice_scatter.default: slice_scatter,
    aten.select_scatter.default: select_scatter,
    aten.copy.default: copy,
    aten.mm.default: product,
    aten.bmm.default: product,
}
