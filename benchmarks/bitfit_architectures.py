"""Which architectures of transformers can be trained privately: gradients against a loop.

Small models with random weights, in fp64. For each of them and each method the gradients of the
examples, and their norms, are compared with those of a plain backward pass for one example at a time.
"equal" is a relative error of at most 1e-6, with `exclude` where a user has to freeze what the refusal
names; messages of refusals are in the JSON; "-" is a model that has every bias; "wrong" ends the run
with status 1.
"""

import argparse
import copy
import json
import math
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from learning.bitfit import (
    PrivacyError,
    PrivacySettings,
    add_biases,
    causal_lm_loss,
    classification_loss,
    make_private,
)
from learning.bitfit.added import lacking
from learning.bitfit.losses import Batch, Loss
from learning.bitfit.select import Method, select

EXAMPLES, LENGTH, WORDS = 5, 8, 60
TOLERANCE = 1e-6
METHODS: tuple[tuple[str, Method, bool], ...] = (
    ("bitfit", "bitfit", False),
    ("added biases", "bitfit", True),
    ("full", "full", False),
    ("last layer", "last_layer", False),
)
_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 40,
}
_TEXT = {**_SIZES, "vocab_size": WORDS, "pad_token_id": 0}
_IMAGE = {**_SIZES, "image_size": 16, "patch_size": 4, "num_labels": 2}
_CONVOLUTIONS = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_labels": 2}
_SOUND = {
    **_SIZES,
    "conv_dim": (16, 16),
    "conv_kernel": (4, 4),
    "conv_stride": (2, 2),
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "num_labels": 2,
    "classifier_proj_size": 16,
    "mask_time_prob": 0.0,
    "layerdrop": 0.0,
}


@dataclass(frozen=True)
class Architecture:
    """A model that can be made small.

    Attributes:
        name: How it is called.
        model: Class of transformers.
        config: Class of its configuration.
        sizes: Arguments of the configuration.
        reads: What its batch holds.
        exclude: What a user has to freeze for biases.
    """

    name: str
    model: str
    config: str
    sizes: dict[str, Any]
    reads: str
    exclude: tuple[str, ...] = ()


def text(name: str, family: str, *exclude: str, **sizes: Any) -> Architecture:
    sizes = {**_TEXT, "num_labels": 2, **sizes}
    model = f"{family}ForSequenceClassification"
    return Architecture(name, model, f"{family}Config", sizes, "labels", exclude)


def writer(name: str, family: str, *exclude: str, **sizes: Any) -> Architecture:
    model = "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    return Architecture(name, model, f"{family}Config", {**_TEXT, **sizes}, "chat", exclude)


def image(name: str, family: str, *exclude: str, side: int = 16, **sizes: Any) -> Architecture:
    model = f"{family}ForImageClassification"
    return Architecture(name, model, f"{family}Config", sizes, f"pixels {side}", exclude)


def sound(name: str, family: str, *exclude: str, **sizes: Any) -> Architecture:
    model = f"{family}ForSequenceClassification"
    return Architecture(name, model, f"{family}Config", {**_SOUND, **sizes}, "sound", exclude)


_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 40}
_DEBERTA = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
_V3 = {"share_att_key": True, "norm_rel_ebd": "layer_norm", "position_buckets": 8}
_T5 = {"d_model": 32, "d_kv": 16, "d_ff": 40, "num_layers": 2, "num_heads": 2}
_BART = {
    **{f"{end}_layers": 2 for end in ("encoder", "decoder")},
    **{f"{end}_attention_heads": 2 for end in ("encoder", "decoder")},
    **{f"{end}_ffn_dim": 40 for end in ("encoder", "decoder")},
    "max_position_embeddings": 40,
}
_SWIN = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": [1, 1],
    "num_heads": [2, 2],
    "window_size": 4,
    "num_labels": 2,
}
_ONE = {"num_key_value_heads": 1}

ARCHITECTURES = (
    text("BERT", "Bert"),
    text("RoBERTa", "Roberta", pad_token_id=1),
    text("XLM-R", "XLMRoberta", pad_token_id=1),
    text("DistilBERT", "DistilBert", dim=32, n_layers=2, n_heads=2, hidden_dim=40),
    text("ALBERT", "Albert", embedding_size=16),
    text("ELECTRA", "Electra", embedding_size=16),
    text("MPNet", "MPNet", pad_token_id=1),
    text("ESM", "Esm", "*contact_head*", mask_token_id=3),
    text("DeBERTa v2", "DebertaV2", "*pos_query_proj*", "*pos_key_proj*", **_DEBERTA),
    text(
        "DeBERTa v3", "DebertaV2", "*key_proj*", "*query_proj*", "*encoder.LayerNorm*",
        type_vocab_size=0, position_biased_input=False, **_DEBERTA, **_V3,
    ),
    text("ModernBERT", "ModernBert", reference_compile=False, cls_token_id=1, sep_token_id=2),
    text("BigBird", "BigBird", "*pooler*", max_position_embeddings=40),
    text("Longformer", "Longformer", attention_window=4, max_position_embeddings=40),
    text("XLNet", "XLNet", d_model=32, n_layer=2, n_head=2, d_inner=40),
    text("BART", "Bart", d_model=32, pad_token_id=1, **_BART),
    Architecture(
        "T5 encoder", "T5ForTokenClassification", "T5Config",
        {**_T5, "vocab_size": WORDS, "num_labels": 2}, "mean",
    ),
    writer("GPT-2", "GPT2", **_GPT),
    writer("GPT-J", "GPTJ", rotary_dim=4, **_GPT),
    writer(
        "GPT-Neo", "GPTNeo", num_layers=2, num_heads=2, max_position_embeddings=40,
        attention_types=[[["global", "local"], 1]], window_size=4,
    ),
    writer("GPT-NeoX", "GPTNeoX"),
    writer("Bloom", "Bloom", n_layer=2, n_head=2),
    writer("Falcon", "Falcon", bias=True),
    writer("OPT", "OPT", "*fc?.*", "*layers.*final_layer_norm*", ffn_dim=40, word_embed_proj_dim=32),
    writer("Llama", "Llama", **_ONE),
    writer("Mistral", "Mistral", **_ONE),
    writer("Mixtral", "Mixtral", num_local_experts=2, **_ONE),
    writer("Gemma", "Gemma", head_dim=16, **_ONE),
    writer("OLMo", "Olmo", **_ONE),
    writer("Phi", "Phi", **_ONE),
    writer("Phi-3", "Phi3", **_ONE),
    writer("Qwen2", "Qwen2", **_ONE),
    writer("Qwen3", "Qwen3", head_dim=16, **_ONE),
    writer("SmolLM3", "SmolLM3", **_ONE),
    writer("StableLM", "StableLm", **_ONE),
    writer("Starcoder2", "Starcoder2", **_ONE),
    writer("Mamba", "Mamba", state_size=4),
    writer(
        "Mamba 2", "Mamba2", "*dt_bias", state_size=4, num_heads=4, head_dim=16, n_groups=1, chunk_size=8
    ),
    image("ViT", "ViT", **_IMAGE),
    image("DeiT", "DeiT", **_IMAGE),
    image("DINOv2", "Dinov2", **_IMAGE),
    image("BEiT", "Beit", "*table", use_relative_position_bias=True, **_IMAGE),
    image("ConvNeXt", "ConvNext", side=32, num_stages=2, **_CONVOLUTIONS),
    image("ResNet", "ResNet", side=32, embedding_size=8, **_CONVOLUTIONS),
    image("Swin", "Swin", side=32, **_SWIN),
    sound("Wav2Vec2", "Wav2Vec2"),
    sound("HuBERT", "Hubert"),
    sound("WavLM", "WavLM", "*attention.*_proj.*"),
)  # fmt: skip
QUICK = ("BERT", "GPT-2", "Llama", "ViT", "ConvNeXt", "Swin")


def batch_for(reads: str) -> Batch:
    """Five examples; the second one is shorter where there are lengths."""
    labels = torch.arange(EXAMPLES) % 2
    if reads.startswith("pixels"):
        side = int(reads.split()[1])
        return {"pixel_values": torch.randn(EXAMPLES, 3, side, side).double(), "labels": labels}
    if reads == "sound":
        return {"input_values": torch.randn(EXAMPLES, 60).double(), "labels": labels}
    ids = torch.randint(5, WORDS, (EXAMPLES, LENGTH))
    ids[:, -1] = 2  # BART's end, of which every example needs as many
    mask = torch.ones_like(ids)
    if reads == "chat":
        mask[1, 5:] = 0
        labels = ids.masked_fill(mask == 0, -100)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


class Mean(nn.Module):
    """The mean over the positions of a model that classifies each of them."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, **batch: Tensor) -> Any:
        return SimpleNamespace(logits=self.model(**batch).logits.mean(1))


def build(architecture: Architecture) -> nn.Module:
    config = getattr(transformers, architecture.config)(**architecture.sizes)
    model: nn.Module = getattr(transformers, architecture.model)(config)
    if architecture.reads == "mean":
        model = Mean(model)
    model = model.double().eval()
    with torch.no_grad():  # what begins at zero or one would hide faults
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def by_a_loop(model: nn.Module, loss: Loss, batch: Batch, names: list[str]) -> dict[str, Tensor]:
    """Gradients ``(B, ...)`` of the named parameters, one example at a time."""
    model = copy.deepcopy(model)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    rows: dict[str, list[Tensor]] = {name: [] for name in names}
    for row in range(EXAMPLES):
        model.zero_grad()
        alone = {name: value[row : row + 1] for name, value in batch.items()}
        loss(model, alone).sum().backward()  # type: ignore[no-untyped-call]
        for name in names:
            gradient = parameters[name].grad
            rows[name].append(torch.zeros_like(parameters[name]) if gradient is None else gradient)
        for parameter in model.parameters():
            parameter.grad = None
    return {name: torch.stack(values) for name, values in rows.items()}


def _head(model: nn.Module, reads: str, method: Method) -> str | None:
    if reads != "chat":
        return "model.classifier" if reads == "mean" else "auto"
    if method != "last_layer":
        return None
    return "embed_out" if hasattr(model, "embed_out") else "lm_head"


def compare(
    architecture: Architecture, method: Method, added: bool, exclude: tuple[str, ...]
) -> dict[str, Any]:
    """Return the outcome for one architecture and method."""
    torch.manual_seed(0)
    model, batch = build(architecture), batch_for(architecture.reads)
    writes = architecture.reads == "chat"
    loss: Loss = causal_lm_loss if writes else classification_loss
    head = _head(model, architecture.reads, method)
    if added and not lacking(model):
        return {"outcome": "-"}
    try:
        if added:
            add_biases(model)
        names = [item.name for item in select(model, method, head, exclude)]
        plain = copy.deepcopy(model)
        settings = PrivacySettings(0.0, 1.0, 1e9, "abadi")
        private = make_private(model, settings, method=method, head=head, exclude=exclude)
        private.accumulate(loss, batch)
        ours = private.per_example(loss, batch)
        norms = private.per_example_norms(loss, batch)
    except PrivacyError as error:
        return {"outcome": "refused", "message": str(error)}
    expected = by_a_loop(plain, loss, batch, names)
    squares = [rows.flatten(1).square().sum(1) for rows in expected.values()]
    exact = torch.stack(squares).sum(0).sqrt()
    floor = TOLERANCE * float(exact.max())
    errors = [
        float((rows - expected[n]).norm() / expected[n].norm().clamp(min=floor))
        for n, rows in ours.items()
    ]
    worst = max([*errors, float(((norms - exact).abs() / exact).max())])
    outcome = "equal" if worst <= TOLERANCE else "wrong"
    return {"outcome": outcome, "error": worst, "parameters": len(names)}


def survey(architecture: Architecture) -> dict[str, dict[str, Any]]:
    """Return the outcomes of all methods; where biases are refused, also with what is to be frozen."""
    found = {}
    for name, method, added in METHODS:
        found[name] = compare(architecture, method, added, ())
        if method == "bitfit" and found[name]["outcome"] == "refused" and architecture.exclude:
            again = compare(architecture, method, added, architecture.exclude)
            if again["outcome"] != "refused":
                found[name] = {**again, "exclude": architecture.exclude}
    return found


def shown(outcome: dict[str, Any]) -> str:
    word = str(outcome["outcome"])
    return f"{word}, `exclude`" if "exclude" in outcome else word


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="six of them, under a minute")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.json:  # before the run
        options.json.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    chosen = [a for a in ARCHITECTURES if not options.quick or a.name in QUICK]
    results = {architecture.name: survey(architecture) for architecture in chosen}
    print("| architecture | " + " | ".join(name for name, _, _ in METHODS) + " |")
    print("|---" * (len(METHODS) + 1) + "|")
    for name, found in results.items():
        print(f"| {name} | " + " | ".join(map(shown, found.values())) + " |")
    outcomes = {
        name: [found[name]["outcome"] for found in results.values()] for name, _, _ in METHODS
    }
    ratios = {
        f"{name.replace(' ', '_')}_equal_over_asked_for": words.count("equal")
        / (len(words) - words.count("-"))
        for name, words in outcomes.items()
    }
    errors = [o.get("error", 0.0) for found in results.values() for o in found.values()]
    ratios["largest_error_over_gradient"] = max(errors, default=math.nan)
    print(json.dumps(ratios, indent=1))
    if options.json:
        options.json.write_text(
            json.dumps({"ratios": ratios, "results": results}, indent=1), encoding="utf-8"
        )
    if any("wrong" in words for words in outcomes.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
