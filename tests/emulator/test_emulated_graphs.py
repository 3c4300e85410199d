"""Random graphs through the emulator."""

from __future__ import annotations

import fxfuser
from numerics import check_close
from random_graphs import traced


def test_random_graphs_emulated() -> None:
    for seed in range(100, 112):
        gm, inputs = traced(seed)
        before = fxfuser.stats()["launches"]["cuda"]
        ours = fxfuser.execute(gm, *inputs, executor_parameters={"on_error": "raise"})
        assert fxfuser.stats()["launches"]["cuda"] > before, f"seed {seed}: nothing was fused"
        check_close(ours, gm(*inputs), f"seed {seed}")
