"""The model card says what the records say."""

import json

from learning.ner.card import card, figures_table
from learning.ner.dataset import CORPORA
from privacy.detection.ner.weights import MANIFEST_FILE, SHIPPED

FIGURES = {
    "results": {
        "wnut17": {
            "penname": {
                kind: {"overlap_recall": 0.8125, "overlap_precision": 0.7, "exact_f1": 0.6}
                for kind in ("ALL", "PERSON", "ORG", "LOC")
            }
        }
    },
    "processor_ms_per_100_words": {"penname": 12.3},
    "versions": {"penname": "1"},
}


def test_table_shows_the_measured_figures() -> None:
    last = figures_table(FIGURES["results"]).splitlines()[-1]
    assert last == "| wnut17 | penname | 81.2 | 70.0 | 60.0 | 81.2 | 81.2 | 81.2 |"


def test_every_corpus_is_attributed() -> None:
    manifest = json.loads((SHIPPED / MANIFEST_FILE).read_text(encoding="utf-8"))
    text = card(manifest, FIGURES, 23_000_000)
    for corpus in CORPORA:
        assert f"| {corpus.name} |" in text
        assert corpus.attribution in text
    assert all(digest in text for digest in manifest["training"]["data_sha256"].values())


def test_the_shipped_card_is_of_the_shipped_weights() -> None:
    manifest = json.loads((SHIPPED / MANIFEST_FILE).read_text(encoding="utf-8"))
    text = (SHIPPED / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert f"Version {manifest['version']}." in text
    assert json.dumps(manifest["training"]["settings"], indent=1) in text
