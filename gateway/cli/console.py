"""Output shared by the commands."""

import errno
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from gateway.settings import Settings

# The names of errors whose message tells the user what to do; by name, so that nothing heavy loads.
_MENDABLE = frozenset(
    "ConfigurationError PolicyError PoolError EmbeddingError WeightsError StoreError "
    "MechanismError StoreUnavailable StoreConflict NotFound UnknownTenant MasterKeyError "
    "SealBroken SchemaTooNew CommandError UpstreamError CorpusError DatasetError DecoderError "
    "ArtefactError ValidationError NerWeightsError ModelDamaged OSError FileNotFoundError "
    "PermissionError IsADirectoryError".split()
)
# A requirement of an extra, as the metadata tells it: name, anything, the extra.
_EXTRA = re.compile(r"""([A-Za-z0-9.-]+)\b.*;.*\bextra == ["']([a-z0-9-]+)["'].*""")


class CommandError(Exception):
    """A command can not do what was asked; the message says why and what to do."""


def is_mendable(error: Exception) -> bool:
    return any(cls.__name__ in _MENDABLE for cls in type(error).__mro__) or bool(_extra(error))


def _extra(error: Exception) -> str:
    """Return the extra that installs what was not found; empty when it is none of them."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    from importlib.metadata import PackageNotFoundError, requires

    wanted = error.name.partition(".")[0].replace("_", "-").casefold()
    try:
        lines = requires("penname") or []
    except PackageNotFoundError:
        return ""
    found = [_EXTRA.fullmatch(line.replace("_", "-")) for line in lines]
    extras = [match[2] for match in found if match and match[1].casefold() == wanted]
    return extras[0] if extras else ""


def explain(error: Exception) -> str:
    """Return an error in words: without error numbers, and without the values of settings."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk (or its quota) is full; free some space, or name a folder elsewhere"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if extra := _extra(error):
        return (
            f"this needs {getattr(error, 'name', '')}, which is not installed. "
            f"Run: pip install -c constraints.txt -e '.[{extra}]'"
        )
    faults = getattr(error, "errors", None)
    if type(error).__name__ == "ValidationError" and callable(faults):
        prefix = "PENNAME_" if getattr(error, "title", "") == "Settings" else ""
        return "\n".join(
            f"{prefix}{_place(f['loc'], upper=bool(prefix))}: "
            + f["msg"].removeprefix("Value error, ")
            for f in faults(include_url=False, include_context=False, include_input=False)
        )
    return str(error)


def _place(location: tuple[int | str, ...], *, upper: bool) -> str:
    place = ".".join(map(str, location))
    return place.upper() if upper else place


def complain(message: str) -> None:
    Console(stderr=True).print(
        f"penname: {message}", style="red", markup=False, highlight=False, soft_wrap=True
    )


def print_version() -> None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        sys.stdout.write(f"penname {version('penname')}\n")
    except PackageNotFoundError:
        raise CommandError("the version is known once Penname is installed") from None


def print_uncut(table: Table) -> None:
    """Print a table whose values are to be copied: wider than the terminal rather than cut."""
    out = Console()
    natural = Console(width=1000).measure(table).maximum
    Console(width=max(out.width, natural)).print(table)


def print_json(value: object) -> None:
    import orjson

    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")


def load_settings(**overrides: Any) -> "Settings":
    """Return the settings in force: options that were given, then the configuration file's database.

    Raises:
        ConfigurationError: The configuration file is no such file.
        ValidationError: A variable holds what its setting cannot be.
    """
    from gateway.settings import Settings, misspelt

    for name, meant in misspelt(os.environ):
        sys.stderr.write(f"penname: {name} is no setting and is not read; did you mean {meant}?\n")
    settings = Settings(**{key: value for key, value in overrides.items() if value is not None})
    if settings.config is not None:
        from gateway.config import load_config

        if url := load_config(settings.config).database_url:
            settings.database_url = url
    return settings


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


def listening_socket(host: str, port: int, variables: str = "") -> socket.socket:
    """Return a bound socket; the protocol is named, else asyncio leaves Nagle's algorithm on.

    Args:
        variables: Prefix of the environment variables that name host and port too, where there are any.

    Raises:
        CommandError: The port is taken, or the host is no address of this machine.
    """
    use_host, use_port = (_use(name, variables) for name in ("host", "port"))
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError):
        raise CommandError(f"{host} is no address of this machine; {use_host}") from None
    family, _, protocol, _, address = found[0]
    bound = socket.socket(family, socket.SOCK_STREAM, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(2048)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise CommandError(f"port {port} is taken; {use_port}") from None
        if error.errno in (errno.EACCES, errno.EPERM):
            raise CommandError(
                f"port {port} needs rights that this user has not; {use_port}"
            ) from None
        raise CommandError(f"{host} is no address of this machine; {use_host}") from None
    return bound


def _use(name: str, variables: str) -> str:
    return f"use --{name}" + (f" or {variables}{name.upper()}" if variables else "")
