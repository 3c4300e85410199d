"""Whole models of their real size with random weights on the CPU, in fp32 and bf16, at batch 1 and 8, beside eager and torch.compile."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from typing import Any

import fxfuser
import torch
from model_graphs import FirstOutput
from timing import facts, interleaved_ms
from torch.utils import _pytree as pytree

Made = tuple[torch.nn.Module, torch.Tensor]
LENGTH = 128


def _bert(width: int, layers: int, batch: int) -> Made:
    import transformers

    config = transformers.BertConfig(hidden_size=width, num_hidden_layers=layers, num_attention_heads=12, intermediate_size=4 * width, return_dict=True)
    return FirstOutput(transformers.BertModel(config)), torch.randint(0, 30000, (batch, LENGTH))


def _vision(name: str, batch: int) -> Made:
    import torchvision

    return getattr(torchvision.models, name)(weights=None), torch.randn(batch, 3, 224, 224)


MODELS: dict[str, Callable[[int], Made]] = {
    "MiniLM": lambda batch: _bert(384, 6, batch),
    "ResNet-50": lambda batch: _vision("resnet50", batch),
    "ConvNeXt-T": lambda batch: _vision("convnext_tiny", batch),
    "ViT-B": lambda batch: _vision("vit_b_16", batch),
    "BERT-base": lambda batch: _bert(768, 12, batch),
}


def _measure(name: str, batch: int, dtype: torch.dtype, options: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(0)
    model, x = MODELS[name](batch)
    model = model.eval().requires_grad_(False).to(dtype)
    x = x.to(dtype) if x.is_floating_point() else x
    with torch.inference_mode():
        gm = torch.export.export(model, (x,)).module()
        before = fxfuser.stats()
        start = time.perf_counter()
        ours = fxfuser.execute(gm, x)
        row: dict[str, Any] = {"name": f"{name} batch {batch} {str(dtype).removeprefix('torch.')}", "first_call_s": round(time.perf_counter() - start, 3)}
        row["kernels"] = fxfuser.stats()["launches"]["host"] - before["launches"]["host"]
        row["aten_steps"] = fxfuser.stats()["aten_steps"] - before["aten_steps"]
        eager = model(x)
        pairs = zip(pytree.tree_leaves(ours), pytree.tree_leaves(eager), strict=True)
        row["largest_difference"] = max(float((a.float() - b.float()).abs().max()) for a, b in pairs)
        runs: dict[str, Callable[[], Any]] = {"ours": lambda: fxfuser.execute(gm, x), "eager": lambda: model(x)}
        if not options.no_peer:
            torch._dynamo.reset()
            compiled = torch.compile(model)
            start = time.perf_counter()
            compiled(x)
            row["compile_first_call_s"] = round(time.perf_counter() - start, 3)
            runs["compile"] = lambda: compiled(x)
        times = interleaved_ms(runs, 3.0 if options.quick else 10.0)
    row |= {f"{peer}_ms": round(ms, 3) for peer, ms in times.items()}
    row["of_best"] = round(times["ours"] / min(ms for peer, ms in times.items() if peer != "ours"), 4)
    return row


def cpu_models(options: argparse.Namespace) -> dict[str, Any]:
    where = facts("cpu")
    rows = []
    for name in MODELS:
        for dtype in (torch.float32, torch.bfloat16):
            for batch in (1, 8):
                if re.search(options.filter, f"{name} batch {batch} {dtype}"):
                    rows.append(_measure(name, batch, dtype, options))
                    print(rows[-1], flush=True)
    return {**where, "set": "cpu-models", "rows": rows}
