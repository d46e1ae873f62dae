"""Plots of `bitfit.py --json` and `bitfit_accuracy.py --json`: costs by length and batch, accuracy by ε."""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

LABELS = {
    "full": "full, not private",
    "bitfit": "BiTFiT, not private",
    "dp_full_opacus": "DP full, Opacus",
    "dp_full_ghost": "DP full, ghost clipping",
    "dp_bitfit_opacus": "DP-BiTFiT, Opacus",
    "dp_bitfit": "DP-BiTFiT",
}
NO_NOISE = 16.0  # where a run that is not private is drawn on the axis of epsilon


def costs(figures: dict[str, Any], model: str, out: Path) -> None:
    """Time and memory over non-private BiTFiT: by length at the smallest batch, by batch at the shortest."""
    rows = [row for row in figures["results"] if row["model"] == model]
    batch = min(row["batch"] for row in rows)
    length = min(row["length"] for row in rows)
    groups = {
        "length": [row for row in rows if row["batch"] == batch],
        "batch": [row for row in rows if row["length"] == length],
    }
    figure, panels = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for column, (axis, group) in enumerate(groups.items()):
        for panel, what in zip(panels[:, column], ("seconds", "peak"), strict=True):
            for method, label in LABELS.items():
                points = sorted(
                    (row[axis], row["methods"][method][what] / row["methods"]["bitfit"][what])
                    for row in group
                    if "failed" not in row["methods"][method]
                )
                if points:
                    panel.plot(*zip(*points, strict=True), marker="o", label=label)
            panel.set(
                xscale="log", yscale="log", xlabel={"length": "tokens", "batch": "batch"}[axis]
            )
            panel.set_ylabel({"seconds": "time", "peak": "memory"}[what] + " / BiTFiT")
            panel.minorticks_off()
            values = sorted({row[axis] for row in group})
            panel.set_xticks(values, map(str, values))
            panel.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    panels[0, 0].set_title(f"{model}, batch {batch}")
    panels[0, 1].set_title(f"{model}, {length} tokens")
    panels[0, 0].legend(fontsize=8)
    figure.savefig(out, dpi=120)


def accuracies(runs: list[dict[str, Any]], out: Path) -> None:
    """One panel a data set: accuracy by epsilon; runs without privacy stand at the right end."""
    tasks = sorted({run["task"] for run in runs})
    figure, panels = plt.subplots(
        1, len(tasks), figsize=(4 * len(tasks), 3.6), layout="constrained", squeeze=False
    )
    for panel, task in zip(panels[0], tasks, strict=True):
        for number, method in enumerate(sorted({run["method"] for run in runs})):
            found: dict[float, list[float]] = {}
            for run in runs:
                if (run["task"], run["method"]) == (task, method):
                    found.setdefault(run["epsilon"] or NO_NOISE, []).append(run["accuracy"])
            if found:
                points = sorted((x, statistics.mean(values)) for x, values in found.items())
                panel.plot(*zip(*points, strict=True), marker="o", label=method, color=f"C{number}")
        panel.set(title=task, xscale="log", xlabel="ε (right end: not private)")
        panel.set_xticks([1, 2, 4, 8, NO_NOISE], ["1", "2", "4", "8", "-"])
        panel.minorticks_off()
        panel.legend(fontsize=7)
    panels[0][0].set_ylabel("accuracy")
    figure.savefig(out, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", type=Path, help="JSON of bitfit.py")
    parser.add_argument("--model", default="minilm", help="whose shapes are drawn")
    parser.add_argument("--accuracy", type=Path, help="JSON of bitfit_accuracy.py")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    if options.speed:
        figures = json.loads(options.speed.read_text(encoding="utf-8"))
        costs(figures, options.model, options.out / "bitfit_costs.png")
    if options.accuracy:
        runs = json.loads(options.accuracy.read_text(encoding="utf-8"))["runs"]
        accuracies(runs, options.out / "bitfit_accuracy.png")


if __name__ == "__main__":
    main()
