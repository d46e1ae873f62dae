"""Tiny random models of every supported architecture, and gradients by brute force."""

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    RobertaConfig,
    RobertaForSequenceClassification,
    ViTConfig,
    ViTForImageClassification,
)

from learning.bitfit import (
    PrivacySettings,
    add_biases,
    causal_lm_loss,
    classification_loss,
)
from learning.bitfit.losses import Loss

BATCH, LENGTH, VOCABULARY = 5, 7, 40
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "attention_probs_dropout_prob": 0.0,
    "attn_implementation": "eager",
}


@dataclass
class Case:
    """A model, a batch that fits it, and what full fine-tuning cannot train."""

    model: nn.Module
    batch: dict[str, Tensor]
    loss: Loss = classification_loss
    head: str | None = "auto"
    exclude: tuple[str, ...] = field(default=())


def text_batch() -> dict[str, Tensor]:
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    mask[1, 4:] = 0
    ids = torch.randint(3, VOCABULARY, (BATCH, LENGTH)).masked_fill(mask == 0, 0)
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "labels": torch.arange(BATCH) % 2,
        "position_ids": torch.arange(LENGTH).expand(BATCH, LENGTH),
    }


def bert() -> Case:
    return Case(
        BertForSequenceClassification(BertConfig(vocab_size=VOCABULARY, **SMALL)), text_batch()
    )


def roberta() -> Case:
    batch = text_batch()
    batch["position_ids"] = batch["position_ids"] + 2
    config = RobertaConfig(vocab_size=VOCABULARY, pad_token_id=1, **SMALL)
    return Case(RobertaForSequenceClassification(config), batch)


def gpt2() -> Case:
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=16,
        n_layer=2,
        n_head=2,
        attn_pdrop=0.0,
        pad_token_id=0,
        attn_implementation="eager",
    )
    return Case(GPT2ForSequenceClassification(config), text_batch())


def llama() -> Case:
    config = LlamaConfig(vocab_size=VOCABULARY, num_key_value_heads=1, **SMALL)
    model = LlamaForCausalLM(config)
    add_biases(model)
    batch = text_batch()
    batch["labels"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    return Case(model, batch, causal_lm_loss, None)


def vit() -> Case:
    model = ViTForImageClassification(ViTConfig(image_size=8, patch_size=4, **SMALL))
    batch = {"pixel_values": torch.randn(BATCH, 3, 8, 8), "labels": torch.arange(BATCH) % 2}
    return Case(model, batch, exclude=("*cls_token", "*position_embeddings"))


ARCHITECTURES: dict[str, Callable[[], Case]] = {
    "bert": bert,
    "roberta": roberta,
    "gpt2": gpt2,
    "llama": llama,
    "vit": vit,
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=list(ARCHITECTURES))
def architecture(request: pytest.FixtureRequest) -> Case:
    """Each architecture in fp64, without dropout, biases away from zero."""
    case = ARCHITECTURES[request.param]()
    case.model.double().eval()
    with torch.no_grad():
        for parameter in case.model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    case.batch = {k: v.double() if v.is_floating_point() else v for k, v in case.batch.items()}
    return case


@pytest.fixture
def brute_force() -> Callable[[nn.Module, Loss, dict[str, Tensor], list[str]], dict[str, Tensor]]:
    """Gradients of every example alone, by autograd, on a copy without hooks."""

    def gradients(
        model: nn.Module, loss: Loss, batch: dict[str, Tensor], names: list[str]
    ) -> dict[str, Tensor]:
        model = copy.deepcopy(model)
        parameters = dict(model.named_parameters())
        found: dict[str, list[Tensor]] = {name: [] for name in names}
        for parameter in model.parameters():
            parameter.requires_grad_(True)
        for row in range(len(next(iter(batch.values())))):
            model.zero_grad()
            loss(model, {k: v[row : row + 1] for k, v in batch.items()}).sum().backward()
            for name in names:
                grad = parameters[name].grad
                found[name].append(torch.zeros_like(parameters[name]) if grad is None else grad)
        return {name: torch.stack([g.clone() for g in rows]) for name, rows in found.items()}

    return gradients


@pytest.fixture
def settings() -> PrivacySettings:
    """No noise, so that sums can be compared."""
    return PrivacySettings(noise_multiplier=0.0, expected_batch=BATCH, clipping="abadi")


@pytest.fixture
def quiet() -> Iterator[None]:
    """Opacus and torch warn of hooks on layers whose input needs no gradient."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
