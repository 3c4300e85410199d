"""The smallest tensors that reach each emitter form of the CUDA target; run under compute-sanitizer by test_gpu_sanitizer."""

from __future__ import annotations

import fxfuser
import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx


def main() -> None:
    index = torch.tensor([[1, 5, 0], [3, 3, 2]], device="cuda")
    cases = [
        (lambda a: torch.sigmoid(a) * 2 + a, (33, 65)),
        (lambda a: torch.sigmoid(a) * 2 + a, (1024,)),
        (lambda a: torch.softmax(a, -1), (5, 7)),
        (lambda a: torch.softmax(a, -1), (5, 64)),
        (lambda a: torch.softmax(a, -1), (3, 4096)),
        (lambda a: F.layer_norm(a, (771,), a[0], a[1]), (9, 771)),
        (lambda a: torch.softmax(a, -1), (3, 50257)),
        (lambda a: torch.softmax(a, -1), (140, 100003)),
        (lambda a: (torch.softmax(a, -1), torch.softmax(a, -1).sum(0)), (4096, 1025)),
        (lambda a: a.sum(-1), (3, 1025)),
        (lambda a: torch.sigmoid(a + a[0]), (4096, 257)),
        (lambda a: torch.softmax(a, -1), (140, 100000)),
        (lambda a: torch.softmax(a, -1), (9, 1 << 20)),
        (lambda a: (torch.softmax(a, -1), torch.softmax(a, -1).sum(0)), (4096, 200)),
        (lambda a: (torch.softmax(a, -1), torch.softmax(a, -1).sum(0)), (4096, 1024)),
        (lambda a: (torch.softmax(a, -1), torch.softmax(a, -1).sum(0)), (300, 40000)),
        (lambda a: F.layer_norm(a, (40000,), a[0], a[1]), (40, 40000)),
        (lambda a: torch.ops.aten._native_batch_norm_legit.no_stats(a, None, None, True, 0.1, 1e-5)[0].relu(), (11, 20, 60, 51)),
        (lambda a: F.layer_norm(a, (768,)), (9, 768)),
        (lambda a: a.sum(-1), (3, 100)),
        (lambda a: a.sum(), (1 << 17,)),
        (lambda a: (a.argmax(-1), a.amax(-1)), (5, 1000)),
        (lambda a: a.sum(0), (700, 40)),
        (lambda a: a.mean(0), ((1 << 15) + 5, 7)),
        (lambda a: a.sum(1), (1 << 20, 1)),
        (lambda a: torch.softmax(a, 0), (60, 33)),
        (lambda a: torch.var_mean(a, 1), (4, 60, 9)),
        (lambda a: (a.t() * 2).contiguous(), (65, 130)),
        (lambda a: (a.t() * 2).contiguous(), (72, 136)),
        (lambda a: a.permute(0, 2, 1) + a.permute(0, 2, 1).contiguous(), (2, 33, 40)),
        (lambda a: F.embedding(index, a) * 2, (6, 24)),
        (lambda a: torch.cat([a, a * 2], 1) + 1, (3, 5)),
    ]
    kinds, tiers = set(), set()
    for dtype in (torch.float32, torch.bfloat16):
        for fn, shape in cases:
            x = torch.randn(shape, device="cuda").to(dtype)
            gm = make_fx(fn)(x)
            before = fxfuser.stats()["launches"]["cuda"]
            fxfuser.execute(gm, x, executor_parameters={"on_error": "raise"})
            torch.cuda.synchronize()
            assert fxfuser.stats()["launches"]["cuda"] > before
            schedules = [kernel["schedule"] for kernel in fxfuser.explain(gm, x).data["kernels"]]
            kinds |= {schedule.split(":")[0] for schedule in schedules}
            tiers |= {tier for schedule in schedules for tier in ("warp", "block", "cluster", "multipass", "refilled", "stages") if f"inner {tier}" in schedule or f" {tier}," in schedule}
    assert kinds == {"pointwise", "reduction", "normalization", "transpose"}, kinds
    assert tiers >= {"warp", "block", "multipass"} | ({"cluster", "refilled", "stages"} if torch.cuda.get_device_capability() >= (9, 0) else set()), tiers
    print("forms run:", fxfuser.stats()["launches"]["cuda"])


if __name__ == "__main__":
    main()
