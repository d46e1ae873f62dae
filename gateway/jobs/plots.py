"""Pictures of a job: ε over steps, and the metrics of the public file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from store.job_rows import JobEvent


def draw(events: Sequence[JobEvent], folder: Path) -> list[Path]:
    """Write ``epsilon.png`` and, where there are any, ``metrics.png``.

    Args:
        events: Reports of a job, oldest first.
        folder: Where to; made when absent.

    Returns:
        The files written.

    Raises:
        ImportError: matplotlib is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    metrics = sorted({name for e in events for name in e.data if name.startswith("valid_")})
    wanted = {"epsilon.png": ["epsilon"], "metrics.png": metrics}
    found = {
        file: {name: points for name in names if (points := _points(events, name))}
        for file, names in wanted.items()
    }
    return [_picture(folder / file, series) for file, series in found.items() if series]


def _picture(file: Path, series: Mapping[str, list[tuple[int, float]]]) -> Path:
    """One panel a series, since a loss and a share have no scale in common."""
    from matplotlib.figure import Figure  # not pyplot: no display, no global state
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(6, 1 + 3 * len(series)), layout="constrained")
    panels = figure.subplots(len(series), sharex=True, squeeze=False)[:, 0]
    for panel, (name, points) in zip(panels, series.items(), strict=True):
        panel.plot(*zip(*points, strict=True), marker=".")
        panel.set_ylabel("epsilon spent" if name == "epsilon" else f"{name} (public file)")
    panels[-1].set_xlabel("step")
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    figure.savefig(file, dpi=120)
    return file


def _points(events: Sequence[JobEvent], name: str) -> list[tuple[int, float]]:
    """(step, value) in the order of steps; where a crash repeated a step, its last value."""
    found = {
        int(e.data["step"]): float(e.data[name])
        for e in events
        if "step" in e.data and e.data.get(name) is not None
    }
    return sorted(found.items())
