"""Many threads and streams on one module, and the memory that a call takes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx


@pytest.mark.parametrize(("options", "count"), [({}, 4), ({"cuda_graph": True}, 4), ({"cuda_graph": True}, 32)], ids=["plain", "cuda_graph", "cuda_graph_all_streams"])
def test_eight_threads_and_many_streams(options: dict[str, Any], count: int) -> None:
    gm = make_fx(lambda x: torch.digamma(torch.tanh(x * 1.125) + 2.5).softmax(-1) * x)(torch.randn(4, 4, device="cuda"))
    streams = [torch.cuda.Stream() for _ in range(count)]  # torch has 32
    inputs = [torch.randn(64 + index % 3, 128, device="cuda") for index in range(160)]
    expected = [gm(x) for x in inputs]
    torch.cuda.synchronize()
    before = fxfuser.stats()["launches"]["cuda"]

    def call(index: int) -> torch.Tensor:
        with torch.cuda.stream(streams[index % count]):
            return execute(gm, inputs[index], executor_parameters={"on_error": "raise", **options})

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(call, range(len(inputs))))
    torch.cuda.synchronize()
    for index, (ours, eager) in enumerate(zip(results, expected, strict=True)):
        check_close(ours, eager, f"call {index}")
    assert fxfuser.stats()["launches"]["cuda"] >= before + 2 * len(inputs)


def test_peak_memory_is_not_above_eagers() -> None:
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True, norm_first=True).cuda().eval().requires_grad_(False)
    x = torch.randn(16, 128, 256, device="cuda")
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        gm = torch.export.export(layer, (x,)).module()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)

    def peak(call: Any) -> int:
        for _ in range(2):
            call()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        base = torch.cuda.memory_allocated()
        out = call()
        torch.cuda.synchronize()
        assert out.shape == x.shape
        return torch.cuda.max_memory_allocated() - base

    before = fxfuser.stats()["launches"]["cuda"]
    ours, eager = peak(lambda: execute(gm, x)), peak(lambda: gm(x))
    assert fxfuser.stats()["launches"]["cuda"] > before
    assert ours <= eager, f"{ours} bytes, eager takes {eager}"
