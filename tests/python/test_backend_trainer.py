"""Hugging Face's Trainer and Accelerate with the names that they know: losses are eager's, through accumulation, clipping, a checkpoint and its resumption."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

for needed in ("transformers", "accelerate"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed", allow_module_level=True)

Launches = Callable[[], int]
STEPS = 20


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from accelerate.state import AcceleratorState

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    torch._dynamo.reset()
    AcceleratorState._reset_state(True)
    yield
    AcceleratorState._reset_state(True)
    torch._dynamo.reset()


class Sentences(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Random tokens; the class is their sum's parity."""

    def __init__(self) -> None:
        self.tokens = torch.randint(1, 60, (96, 12), generator=torch.Generator().manual_seed(3))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[at], "attention_mask": torch.ones(12, dtype=torch.long), "labels": self.tokens[at].sum() % 2}


def tiny_bert() -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    return BertForSequenceClassification(BertConfig(**sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, max_position_embeddings=16))


def trained(folder: Path, compiled: bool, resume: bool = False, **more: Any) -> list[float]:
    """The losses of a Trainer's run, by step."""
    from transformers import Trainer, TrainingArguments

    switch = {"torch_compile": True, "torch_compile_backend": "nvprims_nvfuser"} if compiled else {}
    common = {"max_steps": STEPS, "per_device_train_batch_size": 4, "learning_rate": 1e-3, "max_grad_norm": 0.5, "logging_steps": 1, "seed": 7}
    quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "save_steps": STEPS // 2}
    trainer = Trainer(tiny_bert(), TrainingArguments(str(folder), **{**common, **quiet, **switch, **more}), train_dataset=Sentences())
    trainer.train(resume_from_checkpoint=str(folder / f"checkpoint-{STEPS // 2}") if resume else None)
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@pytest.mark.parametrize("settings", [{"bf16": True}, {"gradient_accumulation_steps": 2}], ids=["bf16", "accumulated"])
def test_a_trainer_trains_as_in_eager(settings: dict[str, Any], tmp_path: Path, launches: Launches) -> None:
    eager = trained(tmp_path / "eager", False, **settings)
    assert launches() == 0
    ours = trained(tmp_path / "ours", True, **settings)
    assert launches() >= 10 * STEPS
    assert len(ours) == len(eager) == STEPS
    close = 2e-2 if settings.get("bf16") else 2e-4
    assert ours == pytest.approx(eager, rel=close, abs=close)


def test_a_checkpoint_is_taken_up_where_it_was_left(tmp_path: Path, launches: Launches) -> None:
    whole = trained(tmp_path, True)
    before = launches()
    assert before >= 10 * STEPS
    torch._dynamo.reset()
    resumed = trained(tmp_path, True, resume=True)
    assert launches() - before >= 5 * STEPS
    assert resumed == pytest.approx(whole, rel=1e-5, abs=1e-6)


def test_accelerate_takes_the_name(launches: Launches) -> None:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    losses: list[list[float]] = []
    for backend in (None, "nvprims_nvfuser"):
        AcceleratorState._reset_state(True)
        accelerator = Accelerator(cpu=True, mixed_precision="bf16", gradient_accumulation_steps=2, dynamo_backend=backend)
        model = tiny_bert()
        batches = torch.utils.data.DataLoader(Sentences(), batch_size=8)
        model, optimizer, batches = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3), batches)
        found = []
        for batch in batches:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                optimizer.zero_grad()
            found.append(float(loss.detach()))
        losses.append(found)
        assert launches() >= (0 if backend is None else 10 * len(found))
    assert losses[1] == pytest.approx(losses[0], rel=2e-2, abs=2e-2)


@pytest.mark.parametrize("name", ["with_trainer", "with_accelerate"])
def test_the_page_shows_what_runs(name: str, launches: Launches) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / f"{name}.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(compile(code, f"{name}.md", "exec"), {"__name__": "example"})  # noqa: S102
    assert launches() >= 10


def test_the_names_of_the_page_are_accelerates() -> None:
    from accelerate.utils import TorchDynamoPlugin

    keywords = TorchDynamoPlugin(backend="nvprims_nvfuser", mode="reduce-overhead", dynamic=True).to_kwargs()
    assert {name: keywords[name] for name in ("backend", "mode", "dynamic")} == {"backend": "nvprims_nvfuser", "mode": "reduce-overhead", "dynamic": True}


def test_the_environment_names_the_backend(monkeypatch: pytest.MonkeyPatch, launches: Launches) -> None:
    from accelerate import Accelerator

    monkeypatch.setenv("ACCELERATE_DYNAMO_BACKEND", "NVPRIMS_NVFUSER")
    model = Accelerator(cpu=True).prepare(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.LayerNorm(4)))
    model(torch.randn(3, 4)).sum().backward()
    assert launches() >= 2
