"""Output shared by the commands."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

# The names of errors whose message tells the user what to do; by name, so that nothing heavy loads.
_MENDABLE = frozenset(
    "ConfigurationError PolicyError PoolError EmbeddingError WeightsError StoreError "
    "MechanismError StoreUnavailable StoreConflict NotFound UnknownTenant MasterKeyError "
    "SealBroken SchemaTooNew CommandError UpstreamError CorpusError DatasetError DecoderError "
    "ArtefactError ValidationError NerWeightsError ModelDamaged OSError FileNotFoundError "
    "PermissionError IsADirectoryError".split()
)


class CommandError(Exception):
    """A command can not do what was asked; the message says why and what to do."""


def is_mendable(error: Exception) -> bool:
    return any(cls.__name__ in _MENDABLE for cls in type(error).__mro__)


def complain(message: str) -> None:
    Console(stderr=True).print(f"penname: {message}", style="red", markup=False, highlight=False)


def print_json(value: object) -> None:
    import orjson

    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")


def parse_settings(pairs: list[str]) -> dict[str, object]:
    """Return NAME=VALUE pairs as a dictionary; a value that is no JSON is text.

    Raises:
        CommandError: A pair has no name or no value.
    """
    import orjson

    found: dict[str, object] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if not name or not value:
            raise CommandError(f"--set needs NAME=VALUE, not {pair!r}")
        try:
            found[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            found[name] = value
    return found


@contextmanager
def progress(title: str) -> Iterator[Callable[[str, float], None]]:
    """Show a bar on standard error; yields a callback of (step, share done)."""
    with Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=1.0)

        def report(step: str, share: float) -> None:
            bar.update(task, description=f"{title}: {step}", completed=share)

        yield report
        bar.update(task, description=title, completed=1.0)
