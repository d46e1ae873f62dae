"""What the pictures of a job show."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from gateway.jobs.plots import draw
from store.job_rows import JobEvent


def event(number: int, **data: Any) -> JobEvent:
    return JobEvent(number, "ftjob-1", "metrics", "info", "", data, 0.0)


def test_each_metric_has_a_panel_and_steps_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Figure] = []
    save = Figure.savefig

    def keeping(figure: Figure, *args: Any, **more: Any) -> None:
        figures.append(figure)
        save(figure, *args, **more)

    monkeypatch.setattr(Figure, "savefig", keeping)
    events = [event(i, step=i, epsilon=0.1 * i) for i in range(4)]
    events.append(event(4, step=3, epsilon=0.3, valid_loss=2.5, valid_accuracy=0.5))
    paths = draw(events, tmp_path)
    assert [path.name for path in paths] == ["epsilon.png", "metrics.png"]
    assert all(path.stat().st_size > 1000 for path in paths)
    shown = [[panel.get_ylabel() for panel in figure.axes] for figure in figures]
    assert shown == [
        ["epsilon spent"],
        ["valid_accuracy (public file)", "valid_loss (public file)"],
    ]
    for figure in figures:
        ticks = figure.axes[-1].get_xticks()
        assert all(float(tick).is_integer() for tick in ticks)


def test_nothing_to_draw_draws_nothing(tmp_path: Path) -> None:
    assert draw([event(1, attempt=1)], tmp_path / "job") == []
