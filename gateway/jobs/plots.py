"""Pictures of a job: ε over steps, and the metrics of the public file."""

from collections.abc import Sequence
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
    from matplotlib.figure import Figure  # not pyplot: no display, no global state

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    names = sorted({name for e in events for name in e.data if name.startswith("valid_")})
    wanted = {"epsilon.png": ["epsilon"], "metrics.png": names}
    paths = []
    for filename, series in wanted.items():
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot()
        drawn = False
        for name in series:
            points = _points(events, name)
            if points:
                axes.plot(*zip(*points, strict=True), marker=".", label=name)
                drawn = True
        if not drawn:
            continue
        axes.set_xlabel("step")
        axes.set_ylabel("epsilon spent" if filename == "epsilon.png" else "public validation file")
        axes.legend()
        figure.savefig(folder / filename, dpi=120)
        paths.append(folder / filename)
    return paths


def _points(events: Sequence[JobEvent], name: str) -> list[tuple[int, float]]:
    """(step, value) in the order of steps; where a crash repeated a step, its last value."""
    found = {
        int(e.data["step"]): float(e.data[name])
        for e in events
        if "step" in e.data and e.data.get(name) is not None
    }
    return sorted(found.items())
