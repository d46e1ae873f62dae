"""Plots of `penname ppft study` and `penname ppft attack`: what is learnt and what leaks, by ε and k."""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

CLEAN = 1000.0  # where "no noise" is drawn on the axis of ε


def epsilon_of(name: str) -> float:
    last = name.rsplit("-", 1)[1]
    return CLEAN if last == "clean" else float(last)


def accuracies(results: dict[str, Any], out: Path) -> None:
    """One panel a task: accuracy by ε for each k, with the shuffled prefix as a dotted line."""
    tasks = ("sst2", "ag_news", "pri_ddx")
    figure, panels = plt.subplots(1, len(tasks), figsize=(12, 3.6), sharey=True)
    for panel, task in zip(panels, tasks, strict=True):
        for k in (4, 8, 16):
            names = [n for n in results if n.startswith(f"k{k}-") and n.endswith("clean")]
            names += [n for n in results if n.startswith(f"k{k}-laplace-")]
            points = sorted((epsilon_of(name), name) for name in names)
            if not points:
                continue
            x = [epsilon for epsilon, _ in points]
            own = [results[name]["own"][task] for _, name in points]
            other = [results[name]["shuffled"][task] for _, name in points]
            (line,) = panel.plot(x, own, marker="o", label=f"k = {k}")
            panel.plot(x, other, linestyle=":", color=line.get_color())
        panel.set(title=task, xlabel="ε (right end: no noise)", xscale="log", ylim=(0, 1))
    panels[0].set_ylabel("accuracy (dotted: another record's prefix)")
    panels[0].legend()
    figure.tight_layout()
    figure.savefig(out, dpi=120)


def leaks(results: dict[str, Any], out: Path) -> None:
    """What is inferred from rows, and what is read from texts written from them, by ε."""
    figure, (rows, texts) = plt.subplots(1, 2, figsize=(12, 4), sharey=True)
    _rows(results, rows)
    _texts(results, texts)
    for panel in (rows, texts):
        panel.set(xlabel="ε (right end: no noise)", xscale="log", ylim=(0, 1.02))
        panel.legend(fontsize=8)
    rows.set_ylabel("attacker's success (dotted: guessing)")
    figure.tight_layout()
    figure.savefig(out, dpi=120)


def _points(results: dict[str, Any], prefix: str) -> list[tuple[float, str]]:
    return sorted((epsilon_of(name), name) for name in results if name.startswith(prefix))


def _rows(results: dict[str, Any], panel: Any) -> None:
    points = _points(results, "k4-")
    x = [epsilon for epsilon, _ in points]
    for label, key, guess in (
        ("sex", "sex_accuracy", "sex_guess"),
        ("age group", "age_accuracy", "age_guess"),
        ("symptoms", "symptoms_recall", "symptoms_guess"),
        ("antecedents", "antecedents_recall", "antecedents_guess"),
    ):
        found = [results[name]["attributes"] for _, name in points]
        (line,) = panel.plot(x, [f[key] for f in found], marker="o", label=label)
        panel.plot(x, [f[guess] for f in found], linestyle=":", color=line.get_color())
    top = [results[name]["retrieval"]["top1"] for _, name in points]
    panel.plot(x, top, marker="x", color="black", label="window retrieved")
    panel.set_title("Pri-DDX, k = 4: inferred from rows")


def _texts(results: dict[str, Any], panel: Any) -> None:
    series = {
        f"nearest windows, k = {k}": _points(results, f"reconstruction-k{k}-") for k in (4, 8, 16)
    }
    series["decoder that knows the noise"] = [
        (epsilon, name)
        for epsilon, name in _points(results, "inversion-k4-")
        if name.split("-")[2] == name.rsplit("-", 1)[1]
    ]
    series["decoder that does not"] = _points(results, "inversion-k4-clean-on-")
    for label, points in series.items():
        y = [results[name]["symptom_recall"] for _, name in points]
        panel.plot([epsilon for epsilon, _ in points], y, marker="o", label=label)
    if "text-another" in results:
        other = results["text-another"]["symptom_recall"]
        panel.axhline(other, linestyle=":", color="black", label="another patient's text")
    panel.set_title("Pri-DDX: symptoms read from texts written from rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, help="results.json of the study")
    parser.add_argument("--attacks", type=Path, help="JSON file of the attacks")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    if options.study:
        accuracies(json.loads(options.study.read_text()), options.out / "ppft_accuracy.png")
    if options.attacks:
        leaks(json.loads(options.attacks.read_text()), options.out / "ppft_attacks.png")


if __name__ == "__main__":
    main()
