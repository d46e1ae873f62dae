"""Write the model card from the records of training and benchmark.

``python -m learning.ner.card --weights DIR --figures FILE``: every number in the card comes from
the manifest of the weights or from the output of ``benchmarks/detection.py --json``.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from learning.ner.dataset import CORPORA, HELD_OUT

TEMPLATE: Final = Path(__file__).parent / "model_card.txt"


def figures_table(results: Mapping[str, Any]) -> str:
    """The benchmark's results as a Markdown table."""
    lines = [
        "| test set | system | recall | precision | exact F1 | PERSON | ORG | LOC (recall) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, systems in results.items():
        for system, by_type in systems.items():
            total = by_type["ALL"]
            cells = [total[key] for key in ("overlap_recall", "overlap_precision", "exact_f1")]
            cells += [by_type[kind]["overlap_recall"] for kind in ("PERSON", "ORG", "LOC")]
            lines.append(
                f"| {name} | {system} | " + " | ".join(f"{100 * c:.1f}" for c in cells) + " |"
            )
    return "\n".join(lines)


def card(manifest: Mapping[str, Any], figures: Mapping[str, Any], size: int) -> str:
    """The text of the card.

    Args:
        manifest: ``manifest.json`` of the weights.
        figures: Output of ``benchmarks/detection.py --json``.
        size: Size of the model file, bytes.
    """
    training = manifest["training"]
    counts = training["sentences"]
    times = figures["processor_ms_per_100_words"]
    return TEMPLATE.read_text(encoding="utf-8").format(
        version=manifest["version"],
        size=size / 1e6,
        bias=manifest["outside_bias"],
        spacy=figures["versions"].get("spacy", "absent"),
        table=figures_table(figures["results"]),
        time=", ".join(f"{name} {value:.0f} ms" for name, value in times.items()),
        seed=training["settings"]["seed"],
        share=100 * training["progress"],
        flair=training["flair"],
        torch=training["torch"],
        settings=json.dumps(training["settings"], indent=1),
        corpora="\n".join(
            f"| {c.name} | {counts[c.name]} | {c.licence} | {c.attribution} |" for c in CORPORA
        ),
        synthetic=counts["synthetic"],
        held_out=100 * HELD_OUT,
        hashes="\n".join(f"{value}  {name}" for name, value in training["data_sha256"].items()),
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Write MODEL_CARD.md beside the weights.")
    parser.add_argument("--weights", type=Path, required=True, help="weight folder")
    parser.add_argument("--figures", type=Path, required=True, help="JSON of the benchmark")
    arguments = parser.parse_args()
    manifest = json.loads((arguments.weights / "manifest.json").read_text(encoding="utf-8"))
    figures = json.loads(arguments.figures.read_text(encoding="utf-8"))
    size = (arguments.weights / "tagger.int8.onnx").stat().st_size
    text = card(manifest, figures, size)
    (arguments.weights / "MODEL_CARD.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
