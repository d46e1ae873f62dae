"""Export a trained tagger: ``python -m learning.ner.export --run DIR --out DIR``.

The encoder and the linear head become one ONNX graph with int8 weights (per output channel,
activations quantised at run time). The export is compared with the Flair tagger before anything
is written to the output folder.
"""

import argparse
import json
import tempfile
import warnings
from pathlib import Path
from typing import cast

import flair
import numpy as np
import torch
from flair.data import Sentence
from flair.models import SequenceTagger
from numpy.typing import NDArray
from torch import Tensor, nn

from learning.ner.encoder import ShapedBertEmbeddings
from privacy.detection.ner.decode import log_softmax
from privacy.detection.ner.tagger import NerTagger
from privacy.detection.ner.weights import (
    FORMAT,
    MANIFEST_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    Weights,
    sha256,
)

PROBES = (
    "Signed by Ilse Varga on Monday in Budapest for Brandt Consulting GmbH .",
    "pls ask ilse varga about it",
    "THE BOARD OF ACME HOLDINGS MET TADEO BRANDT IN LISBON .",
    "The pump was serviced on schedule and nobody complained .",
)
MAX_DEVIATION = 0.25
"""Largest mean absolute difference of probabilities, per label, between Flair and the export."""


class Graph(nn.Module):
    """Encoder and head as one module with tensors in and out, as the exporter needs it."""

    def __init__(self, tagger: SequenceTagger) -> None:
        super().__init__()
        self.encoder = tagger.embeddings.bert
        self.head = tagger.linear

    def forward(self, input_ids: Tensor, shapes: Tensor) -> Tensor:
        """Logits ``(batch, length, labels)`` of every piece; nothing is padding."""
        return cast(Tensor, self.head(self.encoder(input_ids, torch.ones_like(input_ids), shapes)))


def load_tagger(checkpoint: Path) -> SequenceTagger:
    """A checkpoint of ``learning.ner.train`` as a Flair tagger, in evaluation mode."""
    flair.device = torch.device("cpu")  # of the graph's example, and of training
    tagger = SequenceTagger.load(str(checkpoint))
    tagger.eval()
    return tagger


def flair_logits(tagger: SequenceTagger, words: list[str]) -> NDArray[np.float32]:
    """Scores of the Flair tagger itself, ``(words, labels)``."""
    with torch.no_grad():
        tensor, lengths = tagger._prepare_tensors([Sentence(words)])
        scores = tagger.forward(tensor, lengths)
    return cast("NDArray[np.float32]", scores.reshape(len(words), -1).cpu().numpy())


def to_onnx(tagger: SequenceTagger, path: Path) -> None:
    """Write the fp32 graph."""
    graph = Graph(tagger).eval()
    example = torch.ones(1, 12, dtype=torch.long)
    axes = {0: "batch", 1: "length"}
    with warnings.catch_warnings():
        # The tracing exporter is deprecated but writes the graph that quantises well.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            graph,
            (example, example),
            str(path),
            input_names=["input_ids", "shapes"],
            output_names=["logits"],
            dynamic_axes={name: axes for name in ("input_ids", "shapes", "logits")},
            opset_version=17,
            dynamo=False,
        )


def quantise(source: Path, target: Path) -> None:
    """int8 weights; 7-bit range so that sums do not overflow on processors without VNNI."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        source, target, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True
    )


def deviation(tagger: SequenceTagger, exported: NerTagger) -> float:
    """Largest difference of a label's probability over the probe sentences."""
    worst = 0.0
    for probe in PROBES:
        words = probe.split()
        ours = np.exp(log_softmax(exported.logits(words)))
        theirs = np.exp(log_softmax(flair_logits(tagger, words)))
        worst = max(worst, float(np.abs(ours - theirs).max()))
    return worst


def export(run: Path, out: Path, version: str, outside_bias: float) -> float:
    """Export ``run/tagger.pt`` to ``out``. Returns the deviation from the Flair tagger.

    Raises:
        RuntimeError: The export deviates more than quantisation explains.
    """
    tagger = load_tagger(run / "tagger.pt")
    embeddings = cast(ShapedBertEmbeddings, tagger.embeddings)
    with tempfile.TemporaryDirectory() as folder:
        full, small = Path(folder) / "full.onnx", Path(folder) / "small.onnx"
        to_onnx(tagger, full)
        quantise(full, small)
        model = small.read_bytes()
    tokenizer = embeddings.tokenizer_json
    labels = tuple(str(label) for label in tagger.label_dictionary.get_items())
    weights = Weights(model, tokenizer, labels, version, outside_bias)
    worst = deviation(tagger, NerTagger(weights))
    if worst > MAX_DEVIATION:
        raise RuntimeError(f"The export deviates from the trained tagger by {worst:.3f}.")
    out.mkdir(parents=True, exist_ok=True)
    manifest = {
        "format": FORMAT,
        "version": version,
        "labels": labels,
        "outside_bias": outside_bias,
        "files": {MODEL_FILE: sha256(model), TOKENIZER_FILE: sha256(tokenizer.encode("utf-8"))},
        "training": json.loads((run / "training.json").read_text(encoding="utf-8")),
    }
    (out / MODEL_FILE).write_bytes(model)
    (out / TOKENIZER_FILE).write_bytes(tokenizer.encode("utf-8"))
    (out / MANIFEST_FILE).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return worst


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="output folder of the training")
    parser.add_argument("--out", type=Path, required=True, help="weight folder to write")
    parser.add_argument("--version", default="1", help="version recorded in the manifest")
    parser.add_argument("--outside-bias", type=float, default=0.0, help="nats, see Weights")
    arguments = parser.parse_args()
    worst = export(arguments.run, arguments.out, arguments.version, arguments.outside_bias)
    print(f"exported; largest difference of a probability from the trained tagger: {worst:.4f}")


if __name__ == "__main__":
    main()
