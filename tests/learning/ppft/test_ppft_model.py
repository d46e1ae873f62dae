"""Prefix, loss and generation: batches equal single runs, the cache equals none."""

from pathlib import Path

import numpy as np
import pytest
import torch
from ppft_examples import EXAMPLES
from ppft_tiny import DIMENSIONS

from learning.ppft import artefact
from learning.ppft.align import ridge
from learning.ppft.decoder import DecoderError, load_decoder
from learning.ppft.generate import Sampling, answers, generate
from learning.ppft.model import Example, Lora, PpftModel
from privacy.ppft.tasks import Task


@pytest.fixture(scope="module")
def model(decoder: Path) -> PpftModel:
    torch.manual_seed(1)
    made = PpftModel.create(load_decoder(decoder), DIMENSIONS, Lora(r=2))
    with torch.no_grad():
        for name, parameter in made.trainable().items():
            if "lora_B" in name:
                parameter.normal_(std=0.5)
    return made


def test_the_sequence_is_bos_prefix_instruction_answer_eos(model: PpftModel) -> None:
    batch = model.batch([EXAMPLES[1]])
    instruction = model.instruction(Task.TOPIC)
    answer = [*model.decoder.ids(" Sports"), model.decoder.eos]
    assert batch.embeds.shape[1] == 1 + 7 + len(instruction) + len(answer)
    assert batch.labels[0, -len(answer) :].tolist() == answer
    assert (batch.labels[0, : -len(answer)] == -100).all()
    table = model.network.get_input_embeddings().weight
    assert torch.equal(batch.embeds[0, 0], table[model.decoder.bos])
    assert torch.allclose(batch.embeds[0, 1:8], model.prefix(EXAMPLES[1].rows))


def test_padding_does_not_change_the_loss(model: PpftModel) -> None:
    with torch.no_grad():
        batch = model.batch(EXAMPLES)
        counts = [(batch.labels[i] != -100).sum().item() for i in range(4)]
        single = [
            model.loss([example]).item() * n for example, n in zip(EXAMPLES, counts, strict=True)
        ]
        assert model.loss(EXAMPLES).item() == pytest.approx(sum(single) / sum(counts), rel=1e-4)


def test_the_loss_is_the_models_own(model: PpftModel) -> None:
    with torch.no_grad():
        batch = model.batch(EXAMPLES[:2])
        own = model.network(
            inputs_embeds=batch.embeds, attention_mask=batch.mask, labels=batch.labels
        ).loss
        assert model.loss(EXAMPLES[:2]).item() == pytest.approx(own.item(), rel=1e-5)


def test_only_projection_and_lora_learn(model: PpftModel) -> None:
    model.loss(EXAMPLES).backward()
    names = set(model.trainable())
    assert {"projection.weight", "projection.bias"} < names and any("lora_A" in n for n in names)
    learning = {id(p) for p in model.trainable().values()}
    for parameter in model.network.parameters():
        assert (parameter.grad is not None) == (id(parameter) in learning)
    assert all(p.grad is not None for p in model.trainable().values())


def without_cache(model: PpftModel, example: Example, tokens: int) -> list[int]:
    """Greedy generation that runs the whole sequence anew for every token."""
    embeds = model.batch([Example(example.rows, example.task)]).embeds
    found: list[int] = []
    with torch.no_grad():
        while len(found) < tokens:
            token = int(model.network(inputs_embeds=embeds).logits[0, -1].argmax())
            if token == model.decoder.eos:
                break
            found.append(token)
            embeds = torch.cat([embeds, model.embed([token])[None]], dim=1)
    return found


def test_a_batch_with_its_cache_equals_single_runs_without(model: PpftModel) -> None:
    limits = [3, 9, 6, 12]  # rows leave the batch at different times
    texts = [""] * 4
    counts = [0] * 4
    for step in generate(model, EXAMPLES, [Sampling(n) for n in limits]):
        texts[step.index] += step.text
        counts[step.index] = step.tokens
    for index, (example, limit) in enumerate(zip(EXAMPLES, limits, strict=True)):
        expected = without_cache(model, example, limit)
        assert texts[index] == model.decoder.text(expected)
        assert counts[index] == len(expected)


def test_parts_of_a_stream_join_to_the_whole(model: PpftModel) -> None:
    whole = answers(model, EXAMPLES, 10)
    parts: list[list[str]] = [[] for _ in EXAMPLES]
    for step in generate(model, EXAMPLES, [Sampling(10)] * 4):
        parts[step.index].append(step.text)
        # An unfinished character is never shown; one that ends broken is, at the end.
        assert step.finish is not None or not step.text.endswith("\ufffd")
    assert ["".join(p).strip() for p in parts] == whole


def test_an_answer_nobody_waits_for_ends(model: PpftModel) -> None:
    steps = list(generate(model, EXAMPLES[:2], [Sampling(40)] * 2, lambda index: index == 1))
    mine = [step for step in steps if step.index == 0]
    assert len(mine) == 1 and mine[0].finish == "cancelled"


def test_temperature_draws_differently(model: PpftModel) -> None:
    drawn = {
        "".join(s.text for s in generate(model, EXAMPLES[:1], [Sampling(12, 2.0)]))
        for _ in range(4)
    }
    assert len(drawn) > 1
    assert len({answers(model, EXAMPLES[:1], 12)[0] for _ in range(3)}) == 1


def test_ridge_finds_an_affine_map() -> None:
    generator = np.random.default_rng(0)
    x, truth, shift = (
        generator.normal(size=(300, 5)) + 2.0,
        generator.normal(size=(5, 3)),
        np.array([1.0, -4.0, 9.0]),
    )
    weights, bias = ridge(x, x @ truth + shift, 1e-9)
    assert np.allclose(weights, truth, atol=1e-6) and np.allclose(bias, shift, atol=1e-5)
    shrunk, _ = ridge(x, x @ truth, 10.0)
    assert np.linalg.norm(shrunk) < 0.2 * np.linalg.norm(truth)


@pytest.mark.gpu
def test_generation_in_bf16_on_an_accelerator(decoder: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs an accelerator")
    made = PpftModel.create(load_decoder(decoder, "cuda", "bfloat16"), DIMENSIONS, Lora(r=2))
    made.loss(EXAMPLES).backward()
    assert all(
        torch.isfinite(p.grad).all() for p in made.trainable().values() if p.grad is not None
    )
    assert len(answers(made, EXAMPLES, 5)) == 4


def test_rows_that_are_all_alike_tell_the_mean() -> None:
    x = np.tile(np.random.default_rng(1).normal(size=6), (7, 1))
    y = np.arange(14.0).reshape(7, 2)
    weights, bias = ridge(x, y, 0.03)
    np.testing.assert_allclose(x @ weights + bias, np.tile(y.mean(axis=0), (7, 1)))


@pytest.mark.parametrize("content", ["[]", "null", '{"version": 1, "card": 3}', '{"card": {}}'])
def test_a_card_of_another_shape_is_no_card(tmp_path: Path, content: str) -> None:
    (tmp_path / artefact.CARD).write_text(content)
    with pytest.raises(artefact.ArtefactError):
        artefact.read_card(tmp_path)


def test_a_decoder_without_the_layers_of_lora_is_told(decoder: Path) -> None:
    with pytest.raises(DecoderError, match="no layers c_attn"):
        PpftModel.create(load_decoder(decoder), DIMENSIONS, Lora(r=2, targets=("c_attn",)))
