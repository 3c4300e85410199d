"""Functions that rows bring along, in CUDA kernels of every form."""

from __future__ import annotations

import torch
from cases import run_cases
from fxfuser import register_op
from own_functions import CUBE, row, sources


def test_functions_of_rows() -> None:
    with torch.library._scoped_library("own_functions", "FRAGMENT") as lib:
        lib.define("cube(Tensor a) -> Tensor")
        lib.impl("cube", lambda a: a * a * a, "CompositeExplicitAutograd")
        cube = torch.ops.own_functions.cube.default
        register_op(row(cube, "cube({a})"), **sources(CUBE))
        x = torch.rand(40, 64)
        kernels = run_cases([
            (lambda a: cube(a) + 1, (x,)),
            (lambda a: cube(a).sum(-1), (x.clone(),)),
            (lambda a: cube(a).sum(0), (x.clone(),)),
            (lambda a: torch.softmax(cube(a), -1), (x.to(torch.bfloat16),)),
            (lambda a: (cube(a).t() * 2).contiguous(), (x.clone(),)),
        ])
    assert all("__device__ T cube(T x)" in kernel["source"] for kernel in kernels)
