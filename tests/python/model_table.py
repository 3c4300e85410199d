"""Models of `transformers`, `timm` and our own in small configurations with random weights: what the backend is tried on.

A row says how a model is made and what it is fed; nothing is downloaded. `build(name)` gives a model in training mode without
dropout, its keyword or positional inputs, and `result(output)` the tensor that is compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

TEXT = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 64}
DECODER = {**TEXT, "num_key_value_heads": 2, "attention_dropout": 0.0, "use_cache": False, "pad_token_id": 0}
IMAGE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32, "patch_size": 8}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@dataclass(frozen=True)
class Row:
    """`source` is transformers, timm or own; `kind` says what the model is fed."""

    source: str
    model: str
    kind: str
    config: dict[str, Any] = field(default_factory=dict)


def hugging_face(model: str, kind: str, **config: Any) -> Row:
    return Row("transformers", model, kind, config)


def timm_model(model: str, **config: Any) -> Row:
    return Row("timm", model, "image64" if config.get("img_size") == 64 else "image32", {"num_classes": 10, **config})


ROWS: dict[str, Row] = {
    "bert": hugging_face("BertModel", "tokens", **TEXT, **NO_DROPOUT),
    "roberta": hugging_face("RobertaModel", "tokens", **TEXT, **NO_DROPOUT),
    "electra": hugging_face("ElectraModel", "tokens", **TEXT, **NO_DROPOUT, embedding_size=16),
    "albert": hugging_face("AlbertModel", "tokens", **TEXT, **NO_DROPOUT, embedding_size=16),
    "distilbert": hugging_face("DistilBertModel", "tokens", vocab_size=64, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64, dropout=0.0, attention_dropout=0.0),
    "deberta": hugging_face("DebertaV2Model", "tokens", **TEXT, **NO_DROPOUT, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8),
    "gpt2": hugging_face("GPT2LMHeadModel", "tokens", vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False),
    "llama": hugging_face("LlamaForCausalLM", "tokens", **DECODER),
    "qwen2": hugging_face("Qwen2ForCausalLM", "tokens", **DECODER),
    "mistral": hugging_face("MistralForCausalLM", "tokens", **DECODER, sliding_window=8),
    "gemma": hugging_face("GemmaForCausalLM", "tokens", **DECODER, head_dim=8),
    "phi": hugging_face("PhiForCausalLM", "tokens", **DECODER, resid_pdrop=0.0, embd_pdrop=0.0),
    "olmo2": hugging_face("Olmo2ForCausalLM", "tokens", **DECODER),
    "opt": hugging_face("OPTForCausalLM", "tokens", vocab_size=64, hidden_size=32, word_embed_proj_dim=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, max_position_embeddings=64, dropout=0.0, use_cache=False),
    "falcon": hugging_face("FalconForCausalLM", "tokens", vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, use_cache=False),
    "bloom": hugging_face("BloomForCausalLM", "tokens", vocab_size=64, hidden_size=32, n_layer=2, n_head=4, hidden_dropout=0.0, attention_dropout=0.0, use_cache=False),
    "gpt_neox": hugging_face("GPTNeoXForCausalLM", "tokens", **TEXT, use_cache=False),
    "t5": hugging_face("T5ForConditionalGeneration", "encoder_decoder", vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0, use_cache=False),
    "bart": hugging_face("BartModel", "encoder_decoder", vocab_size=64, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64, dropout=0.0, use_cache=False),
    "whisper_encoder": hugging_face("WhisperModel.encoder", "mel", d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=16, max_source_positions=32, dropout=0.0),
    "wav2vec2": hugging_face("Wav2Vec2Model", "audio", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, conv_dim=[16, 16], conv_kernel=[10, 3], conv_stride=[5, 2], num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4, hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0, layerdrop=0.0, mask_time_prob=0.0, apply_spec_augment=False),
    "vit": hugging_face("ViTModel", "image32", **IMAGE, **NO_DROPOUT),
    "deit": hugging_face("DeiTModel", "image32", **IMAGE, **NO_DROPOUT),
    "dinov2": hugging_face("Dinov2Model", "image32", **IMAGE, **NO_DROPOUT),
    "beit": hugging_face("BeitModel", "image32", **IMAGE, **NO_DROPOUT, use_relative_position_bias=True, drop_path_rate=0.0),
    "segformer": hugging_face("SegformerModel", "image64", num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 2], hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], drop_path_rate=0.0, **NO_DROPOUT),
    "clip": hugging_face("CLIPModel", "clip", text_config={**TEXT, "eos_token_id": 63, "bos_token_id": 62, "pad_token_id": 1}, vision_config=dict(IMAGE), projection_dim=16),
    "mamba": hugging_face("MambaForCausalLM", "tokens", vocab_size=64, hidden_size=32, state_size=4, num_hidden_layers=1, use_cache=False),
    "resnet": timm_model("resnet18"),
    "resnext": timm_model("resnext26ts"),
    "efficientnet": timm_model("efficientnet_b0"),
    "mobilenetv3": timm_model("mobilenetv3_small_100"),
    "regnet": timm_model("regnety_002"),
    "densenet": timm_model("densenet121", block_config=(2, 2)),
    "convnext": timm_model("convnext_atto", depths=(1, 1, 1, 1)),
    "swin": timm_model("swin_tiny_patch4_window7_224", img_size=32, window_size=4, embed_dim=24, depths=(2, 2), num_heads=(2, 4), drop_path_rate=0.0),
    "mlp_mixer": timm_model("mixer_s16_224", img_size=64),
    "poolformer": timm_model("poolformer_s12"),
    "ghostnet": timm_model("ghostnet_050", drop_rate=0.0),
    "unet": Row("own", "UNet", "image32"),
    "lstm": Row("own", "Recurrent", "sequence"),
    "conv_transformer": Row("own", "ConvTransformer", "image32"),
}


class UNet(nn.Module):
    """Two levels down, two up, with group normalization and skips."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(self._block(*pair) for pair in ((3, 8), (8, 16), (16, 32)))
        self.up = nn.ModuleList(nn.ConvTranspose2d(wide, wide // 2, 2, stride=2) for wide in (32, 16))
        self.join = nn.ModuleList(self._block(wide, wide // 2) for wide in (32, 16))
        self.head = nn.Conv2d(8, 2, 1)

    @staticmethod
    def _block(given: int, made: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(given, made, 3, padding=1), nn.GroupNorm(4, made), nn.SiLU(), nn.Conv2d(made, made, 3, padding=1), nn.GroupNorm(4, made), nn.SiLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else nn.functional.max_pool2d(x, 2))
            kept.append(x)
        for up, join, skip in zip(self.up, self.join, kept[-2::-1], strict=True):
            x = join(torch.cat([up(x), skip], 1))
        return self.head(nn.functional.interpolate(x, scale_factor=2.0, mode="nearest"))


class Recurrent(nn.Module):
    """An LSTM, cell by cell, and a readout."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(12, 24)
        self.head = nn.Linear(24, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = x.new_zeros(x.shape[0], 24)
        memory = hidden
        seen = []
        for step in x.unbind(1):
            hidden, memory = self.cell(step, (hidden, memory))
            seen.append(self.head(hidden))
        return torch.log_softmax(torch.stack(seen, 1), -1)


class ConvTransformer(nn.Module):
    """A convolutional stem before torch's own transformer layers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=4, padding=1))
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=first) for first in (True, False))
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def inputs_of(kind: str, draw: int = 0) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword inputs of a kind; the same at each call with the same `draw`."""
    numbers = torch.Generator().manual_seed(7 + draw)
    tokens = torch.randint(2, 60, (2, 16), generator=numbers)
    mask = torch.ones(2, 16, dtype=torch.long)
    mask[1, 12:] = 0
    if kind == "tokens":
        return (), {"input_ids": tokens, "attention_mask": mask}
    if kind == "encoder_decoder":
        return (), {"input_ids": tokens, "attention_mask": mask, "decoder_input_ids": tokens[:, :10].contiguous()}
    if kind == "clip":
        return (), {"input_ids": tokens, "attention_mask": mask, "pixel_values": torch.randn(2, 3, 32, 32, generator=numbers)}
    shapes = {"image32": (4, 3, 32, 32), "image64": (2, 3, 64, 64), "mel": (2, 16, 64), "audio": (2, 400), "sequence": (3, 6, 12)}
    return (torch.randn(shapes[kind], generator=numbers),), {}


def build(name: str) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    """The model of a row, with weights that depend on nothing but the row, and its inputs."""
    row = ROWS[name]
    torch.manual_seed(0)
    if row.source == "own":
        model: nn.Module = globals()[row.model]()
    elif row.source == "timm":
        import timm

        model = timm.create_model(row.model, **row.config)
    else:
        import transformers

        cls, _, part = row.model.partition(".")
        model_class = getattr(transformers, cls)
        model = model_class(model_class.config_class(**row.config))
        model = getattr(model, part) if part else model
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model.train(), *inputs_of(row.kind)


def result(output: Any) -> torch.Tensor:
    """The tensor that a model is judged by."""
    if isinstance(output, torch.Tensor):
        return output
    for name in ("logits", "logits_per_image", "last_hidden_state"):
        if getattr(output, name, None) is not None:
            found: torch.Tensor = getattr(output, name)
            return found
    raise TypeError(f"no tensor to compare in {type(output).__name__}")
