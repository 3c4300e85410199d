"""Forward and backward graphs of twelve models, saved as files, so that the set of real graphs exists everywhere.

    python benchmarks/model_graphs.py FOLDER

A file holds the GraphModule and example inputs (torch.save). Weights are random, shapes small.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch.utils import _pytree as pytree

Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


class FirstOutput(torch.nn.Module):
    """The tensor that a transformers model returns first."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        out = self.model(*args)
        return out if isinstance(out, torch.Tensor) else next(value for value in out.values() if isinstance(value, torch.Tensor))


def _tokens(length: int = 24, batch: int = 2) -> torch.Tensor:
    return torch.randint(0, 90, (batch, length))


def _transformer(name: str, **settings: Any) -> Callable[[], Made]:
    def make() -> Made:
        import transformers

        config = getattr(transformers, f"{name}Config")(**settings)
        for key, value in {"use_cache": False, "return_dict": True}.items():
            setattr(config, key, value)
        config._attn_implementation = "eager"
        return FirstOutput(getattr(transformers, f"{name}Model")(config)), (_tokens(),)

    return make


def _image_model(name: str, size: int = 64, **settings: Any) -> Callable[[], Made]:
    def make() -> Made:
        import timm

        return timm.create_model(name, num_classes=10, **settings), (torch.randn(2, 3, size, size),)

    return make


class TinyVit(torch.nn.Module):
    """A vision transformer in plain torch: patches, four blocks, mean pooling."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.patches = torch.nn.Conv2d(3, width, 8, 8)
        layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = torch.nn.ModuleList([torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False) for _ in range(4)])
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.norm(x.mean(1))


class TinyCnn(torch.nn.Module):
    """Convolutions, batch norm, residuals."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, width, 3, padding=1)
        self.norms = torch.nn.ModuleList([torch.nn.BatchNorm2d(width) for _ in range(4)])
        self.convs = torch.nn.ModuleList([torch.nn.Conv2d(width, width, 3, padding=1) for _ in range(4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for norm, conv in zip(self.norms, self.convs, strict=True):
            x = x + conv(torch.relu(norm(x)))
        return x.mean((2, 3))


class TinyMixer(torch.nn.Module):
    """An MLP-mixer: transposes between layer norms and GELUs."""

    def __init__(self, tokens: int = 64, width: int = 48) -> None:
        super().__init__()
        self.patches = torch.nn.Conv2d(3, width, 8, 8)
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width) for _ in range(4)])
        self.mix = torch.nn.ModuleList([torch.nn.Sequential(torch.nn.Linear(n, 2 * n), torch.nn.GELU(), torch.nn.Linear(2 * n, n)) for n in (tokens, width) * 2])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        for index, (norm, mix) in enumerate(zip(self.norms, self.mix, strict=True)):
            y = norm(x)
            x = x + (mix(y.transpose(1, 2)).transpose(1, 2) if index % 2 == 0 else mix(y))
        return x.mean(1)


_SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100}
MODELS: dict[str, Callable[[], Made]] = {
    "bert": _transformer("Bert", **_SMALL),
    "roberta": _transformer("Roberta", **_SMALL),
    "distilbert": _transformer("DistilBert", dim=64, n_layers=2, n_heads=4, hidden_dim=128, vocab_size=100),
    "gpt2": _transformer("GPT2", n_embd=64, n_layer=2, n_head=4, vocab_size=100, n_positions=64),
    "llama": _transformer("Llama", **_SMALL, num_key_value_heads=2),
    "qwen2": _transformer("Qwen2", **_SMALL, num_key_value_heads=2),
    "mistral": _transformer("Mistral", **_SMALL, num_key_value_heads=2, sliding_window=None),
    "tiny_vit": lambda: (TinyVit(), (torch.randn(2, 3, 64, 64),)),
    "tiny_cnn": lambda: (TinyCnn(), (torch.randn(2, 3, 32, 32),)),
    "tiny_mixer": lambda: (TinyMixer(), (torch.randn(2, 3, 64, 64),)),
    "gru_cells": lambda: (GruCells(), (torch.randn(6, 4, 32),)),
    "swiglu_mlp": lambda: (SwiGlu(), (torch.randn(16, 96),)),
}


class SwiGlu(torch.nn.Module):
    """RMS norm and gated linear units."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.norm = torch.nn.RMSNorm(width)
        self.gate, self.up, self.down = (torch.nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))


class GruCells(torch.nn.Module):
    """A recurrent network unrolled over its steps: chains of gates."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(width, 3 * width)
        self.outer = torch.nn.Linear(width, 3 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(x[0])
        for step in x.unbind(0):
            a, b = self.inner(step).chunk(3, -1), self.outer(state).chunk(3, -1)
            reset, update = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
            state = torch.lerp(torch.tanh(a[2] + reset * b[2]), state, update)
        return state


def graphs_of(make: Callable[[], Made]) -> dict[str, tuple[torch.fx.GraphModule, tuple[Any, ...]]]:
    """The forward and backward graphs that AOTAutograd makes of a training step, with the inputs they ran on."""
    torch.manual_seed(0)
    model, inputs = make()
    model.train(False)  # no dropout: graphs of numbers only
    found: dict[str, tuple[torch.fx.GraphModule, tuple[Any, ...]]] = {}

    def keep(part: str) -> Callable[..., Any]:
        def compiler(gm: torch.fx.GraphModule, _: Any) -> Any:
            name = f"{part}{sum(key.startswith(part) for key in found) or ''}"

            def run(*args: Any) -> Any:
                found[name] = (gm, tuple(arg.detach().clone() if isinstance(arg, torch.Tensor) else arg for arg in args))
                return gm(*args)

            return make_boxed_func(run)

        return compiler

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch._dynamo.reset()
        compiled = torch.compile(model, backend=aot_autograd(fw_compiler=keep("forward"), bw_compiler=keep("backward")))
        pytree.tree_leaves(compiled(*inputs))[0].float().pow(2).mean().backward()
    return found


def save_all(folder: Path) -> None:
    """Writes the graphs of every model that can be made here."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        for part, (gm, inputs) in graphs_of(make).items():
            torch.save({"graph": gm, "inputs": inputs}, folder / f"{name}-{part}.pt")


def load_graph(path: Path) -> tuple[torch.fx.GraphModule, tuple[Any, ...]]:
    """A saved graph and its inputs; also reads .pt2 exports with example inputs."""
    if path.suffix == ".pt2":
        program = torch.export.load(str(path))
        args, _ = program.example_inputs
        return program.module(), tuple(args)
    held = torch.load(path, weights_only=False)
    return held["graph"], held["inputs"]


if __name__ == "__main__":
    save_all(Path(sys.argv[1]))
