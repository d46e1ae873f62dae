"""The export of a PPFT job, inside the trust boundary: texts in, noised rows and answers out."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from learning.methods.base import Export, MethodError, Site
from learning.methods.ppft import PUBLIC, ROWS, history_of, limits_of, records_of
from learning.ppft import dataset
from learning.ppft.dataset import Meta, RowData
from learning.ppft.export import encode, export_public
from learning.ppft.export import export as export_noised
from learning.rows import Rows
from privacy.accounting.charges import Charge
from privacy.ppft.accounting import charge
from privacy.ppft.encoder import TokenEncoder
from privacy.ppft.noise import Noise
from privacy.ppft.tasks import task_named

_CHUNK: Final = 64
_MOST_PUBLIC: Final = 3000
_ORIGIN: Final = ("job",)

Charged = list[tuple[str, Charge]]


def export(
    rows: Rows,
    public: Rows | None,
    config: Mapping[str, Any],
    decoder: Path,
    site: Site,
    cancelled: Callable[[], bool],
) -> Export | None:
    """Noise every row once; the validation file's stay clean, without their words.

    Stage 1 exports public rows with the words under each.

    Raises:
        MethodError: No record passes the length filter.
    """
    encoder = site.encoder(config["encoder"])
    part = _public_part if config["stage"] == 1 else _noised_part
    found = _chunked(rows, encoder, config, part, cancelled)
    valid = None
    if public is not None:
        first = Rows(public.kind, public.rows[:_MOST_PUBLIC], public.lines[:_MOST_PUBLIC])
        valid = _chunked(first, encoder, config, _clean_part, cancelled)
    if cancelled():
        return None
    if found is None:
        raise MethodError("no record is left: all are longer than max_slots or max_answer")
    data, charges = found
    noised = [(text, len(rows)) for (text, _), rows in zip(charges, data.rows, strict=False)]
    history = history_of(noised, config, encoder.dimensions)

    def write(folder: Path) -> None:
        if valid is not None:
            dataset.save(valid[0], folder / PUBLIC)
        dataset.save(data, folder / ROWS)  # last: its presence says that all is there

    how = "Encoded" if config["stage"] == 1 else "Noised"
    told = f"{how} {len(data)} of {len(rows)} records."
    size = sum(2 * each.size for each in data.rows)  # in half precision
    return Export(write, decoder, history, charges, told, size)


def _chunked(
    rows: Rows,
    encoder: TokenEncoder,
    config: Mapping[str, Any],
    part: Callable[..., tuple[RowData, Charged]],
    cancelled: Callable[[], bool],
) -> tuple[RowData, Charged] | None:
    """Export a few records at a time, so that token states do not pile up; None without any."""
    records = records_of(rows, task_named(config["task"]))
    parts: list[RowData] = []
    charges: Charged = []
    for start in range(0, len(records), _CHUNK):
        if cancelled():
            return None
        chunk = records[start : start + _CHUNK]
        encoded = encode(chunk, encoder, config["k"], limits_of(config))
        if encoded.records:
            data, charged = part(encoded, encoder, config)
            parts.append(data)
            charges += charged
    return (dataset.merge(parts), charges) if parts else None


def _noised_part(
    encoded: Any, encoder: TokenEncoder, config: Mapping[str, Any]
) -> tuple[RowData, Charged]:
    noise = Noise(config["mechanism"], config["epsilon"])
    data, costs = export_noised(encoded, encoder, config["k"], noise, _ORIGIN)
    charges = [charge(cost, noise) for cost in costs]
    return data, list(zip(encoded.texts, charges, strict=True))


def _public_part(
    encoded: Any, encoder: TokenEncoder, config: Mapping[str, Any]
) -> tuple[RowData, Charged]:
    return export_public(encoded, encoder, config["k"], _ORIGIN), []


def _clean_part(
    encoded: Any, encoder: TokenEncoder, config: Mapping[str, Any]
) -> tuple[RowData, Charged]:
    clean = export_public(encoded, encoder, config["k"])
    meta = Meta(encoder.name, encoder.dimensions, config["k"])
    return RowData(meta, clean.rows, clean.tasks, clean.answers), []
