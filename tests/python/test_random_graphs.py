"""Random graphs on the host target: eager's values and layouts, inputs untouched, and most of it in generated kernels."""

from __future__ import annotations

import fxfuser
from numerics import check_close
from random_graphs import traced

SEEDS = range(40)


def test_random_graphs_equal_eager() -> None:
    shares = []
    for seed in SEEDS:
        gm, inputs = traced(seed)
        copies = [value.clone() for value in inputs]
        before = fxfuser.stats()["launches"]["host"]
        ours = fxfuser.execute(gm, *inputs, executor_parameters={"on_error": "raise"})
        assert fxfuser.stats()["launches"]["host"] > before, f"seed {seed}: nothing was fused"
        for value, copy in zip(inputs, copies, strict=True):
            assert value.equal(copy), f"seed {seed}: an input changed"
        check_close(ours, gm(*inputs), f"seed {seed}")
        shares.append(fxfuser.explain(gm, *inputs).data["totals"]["fused_share"])
    assert min(shares) > 0.5 and sum(shares) / len(shares) > 0.9, shares
