"""A small tagger learns, survives saving, and exports to the same scores."""

import json
from pathlib import Path

import numpy as np
import pytest

from learning.ner.corpora import Example
from learning.ner.dataset import Dataset
from privacy.detection.ner.weights import SHIPPED, TOKENIZER_FILE

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

EXAMPLES = [
    Example(("ask", "Ilse", "Varga", "about", "it"), ((1, 3, "PERSON"),)),
    Example(("Acme", "opened", "in", "Budapest"), ((0, 1, "ORG"), (3, 4, "LOC"))),
    Example(("the", "pump", "was", "serviced"), ()),
    Example(("Tadeo", "\n", "lives", "in", "Lisbon"), ((0, 1, "PERSON"), (4, 5, "LOC"))),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of a short training of a small encoder."""
    import torch

    from learning.ner import train
    from learning.ner.encoder import ShapedBertEmbeddings

    torch.manual_seed(1)
    config = {
        "vocab_size": 30522,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 192,
    }
    tokenizer = (SHIPPED / TOKENIZER_FILE).read_text(encoding="utf-8")
    settings = train.Settings(rate=3e-3, head_rate=1e-2)
    tagger = train.tagger_over(ShapedBertEmbeddings(config, tokenizer), dropout=0.0)
    optimizer = train.optimizer_for(tagger, settings)
    for step in range(40):
        train.set_rate(optimizer, 0.06 + step / 50, settings)
        tagger.train()
        loss, _ = tagger.forward_loss([train.to_sentence(example) for example in EXAMPLES])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    out = tmp_path_factory.mktemp("run")
    train.save(tagger, out, settings, Dataset([], [], {"own": 4}, {}), 1.0)
    return out


def test_learns_its_examples(trained: Path) -> None:
    from learning.ner.export import load_tagger
    from learning.ner.train import validate

    counts = validate(load_tagger(trained / "tagger.pt"), EXAMPLES)
    assert counts.f1 == 1.0


def test_frozen_layers_stay_and_get_no_gradient(trained: Path) -> None:
    from learning.ner.export import load_tagger

    bert = load_tagger(trained / "tagger.pt").embeddings.bert
    bert.train()
    assert not bert.layers[1].training and bert.layers[2].training
    assert not any(p.requires_grad for p in bert.layers[0].parameters())
    assert all(p.requires_grad for p in bert.layers[2].parameters())
    assert bert.shapes.weight.abs().sum() > 0


def test_export_keeps_the_scores(trained: Path, tmp_path: Path) -> None:
    from learning.ner.export import export, flair_logits, load_tagger, to_onnx
    from privacy.detection.ner.tagger import NerTagger
    from privacy.detection.ner.weights import Weights, read_weights

    tagger = load_tagger(trained / "tagger.pt")
    words = ["Please", "ask", "ILSE", "Varga", "\n", "about", "Budapest", "@x", "."]
    theirs = flair_logits(tagger, words)
    to_onnx(tagger, tmp_path / "full.onnx")
    good = read_weights()
    full = Weights((tmp_path / "full.onnx").read_bytes(), good.tokenizer, good.labels, "full", 0.0)
    assert np.allclose(NerTagger(full).logits(words), theirs, atol=1e-3)
    export(trained, tmp_path / "weights", "test", 0.5)
    small = NerTagger.load(tmp_path / "weights")
    assert np.abs(small.logits(words) - theirs).max() < 1.0
    manifest = json.loads((tmp_path / "weights" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["training"]["sentences"] == {"own": 4}
    text = "ask Ilse Varga about it"
    assert [(s.start, s.end, s.type) for s in small.tag([text])[0]] == [(4, 14, "PERSON")]


def test_flair_adapter_reads_the_checkpoint(trained: Path) -> None:
    from privacy.detection.ner.flair_adapter import FlairTagger

    tagger = FlairTagger.load(trained / "tagger.pt")
    text = "\ufeff  ask Ilse  Varga about it"
    assert [text[s.start : s.end] for s in tagger.tag([text, ""])[0]] == ["Ilse  Varga"]
    long = (
        "the pump was serviced " * 60 + "ask Ilse Varga about it " + "the pump was serviced " * 40
    )
    (spans,) = tagger.tag([long])
    name = long.index("Ilse")
    assert any(s.start < name + 10 and name < s.end for s in spans)
    assert all(a.end <= b.start for a, b in zip(spans, spans[1:], strict=False))


def test_flair_adapter_names_what_it_cannot_load(tmp_path: Path) -> None:
    from privacy.detection.ner.flair_adapter import FlairTagger

    (tmp_path / "broken.pt").write_bytes(b"nothing")
    with pytest.raises(RuntimeError, match="cannot be loaded"):
        FlairTagger.load(tmp_path / "broken.pt")


def test_batches_hold_every_example_once_and_stay_small() -> None:
    from learning.ner.train import Settings, batches, joined

    rng = np.random.default_rng(0)
    many = [Example(("w",) * (1 + i % 40), ()) for i in range(300)]
    settings = Settings(join_share=0.0, lower_share=0.0, upper_share=0.0, pieces_per_batch=200)
    groups = list(batches(joined(many, rng, settings), rng, settings))
    assert sorted(len(e.words) for g in groups for e in g) == sorted(len(e.words) for e in many)
    assert all(len(g) * max(len(e.words) for e in g) * 1.3 <= 200 for g in groups if len(g) > 1)


def test_joined_and_recased_examples_keep_their_entities() -> None:
    from learning.ner.train import Settings, joined

    settings = Settings(join_share=1.0, lower_share=0.5, upper_share=0.5)
    (one,) = joined(EXAMPLES, np.random.default_rng(0), settings)
    found = sorted(" ".join(one.words[a:b]).lower() for a, b, _ in one.spans)
    assert found == ["acme", "budapest", "ilse varga", "lisbon", "tadeo"]
    assert not any(word.istitle() and len(word) > 1 for word in one.words)
