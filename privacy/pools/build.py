"""Builds the pools: names through the hygiene rules, vectors, probability bounds, manifest."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from privacy.embedding.base import Embedding, fold
from privacy.embedding.build import (
    Progress,
    build_word_vectors,
    quiet,
    recipe,
    save,
    write_text,
)
from privacy.embedding.geometry import unit_rows
from privacy.embedding.glove import (
    GLOVE_SOURCE,
    EmbeddingError,
    WordTable,
    read_glove,
    sha256_of,
)
from privacy.embedding.vectors import WordVectors
from privacy.pools import lists
from privacy.pools.artefact import FORMAT, MANIFEST, version_of
from privacy.pools.candidates import Candidates, all_candidates
from privacy.pools.spread import central_rows, spread_table
from privacy.pools.types import PRIMARY_SIZE, PoolError


def name_words() -> frozenset[str]:
    """Return the folded personal names that take part in the n-gram fit of the embedding."""
    return frozenset([*lists.given_ranks(), *lists.family_ranks()])


def build_embedding(
    out: Path, table: WordTable | None = None, progress: Progress = quiet
) -> WordVectors:
    """Convert GloVe (or another table) into the folder ``out`` and return the embedding.

    Raises:
        EmbeddingError: The GloVe files are absent or damaged, or pyarrow is missing.
    """
    source = read_glove() if table is None else table
    build_word_vectors(source, out, name_words(), progress)
    return WordVectors.load(out)


def ensure_embedding(folder: Path, progress: Progress = quiet) -> WordVectors:
    """Load the default embedding from ``folder``, converting it first where that is needed.

    Raises:
        EmbeddingError: The GloVe files are absent or damaged, or pyarrow is missing.
    """
    try:
        vectors = WordVectors.load(folder)
    except EmbeddingError:
        return build_embedding(folder, progress=progress)
    wanted = recipe(GLOVE_SOURCE, name_words())
    return vectors if vectors.fingerprint == wanted else build_embedding(folder, progress=progress)


def build_pools(
    out: Path,
    embedding: Embedding,
    progress: Progress = quiet,
    candidates: Iterable[Candidates] | None = None,
) -> str:
    """Write the pools into the folder ``out`` and return their version.

    The same sources and embedding give the same version.

    Args:
        progress: Called with (step, share done in [0, 1]).
        candidates: Names to build from; None takes the packaged sources.

    Raises:
        PoolError: A pool would be empty.
    """
    out.mkdir(parents=True, exist_ok=True)
    chosen = list(all_candidates() if candidates is None else candidates)
    pools: dict[str, Any] = {}
    for step, entry in enumerate(chosen):
        progress(entry.fine_type, step / len(chosen))
        pools[entry.fine_type] = _build_pool(out, entry, embedding)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "embedding": embedding.fingerprint,
        "pools": pools,
        "sources": _source_digests() if candidates is None else {},
        "files": {
            f"{fine_type}.{kind}": sha256_of(out / f"{fine_type}.{kind}")
            for fine_type in sorted(pools)
            for kind in ("npy", "txt")
        },
    }
    manifest["version"] = version_of(manifest)
    write_text(out / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    progress("done", 1.0)
    return str(manifest["version"])


def _build_pool(out: Path, entry: Candidates, embedding: Embedding) -> dict[str, Any]:
    vectors = np.array([embedding.vector(name) for name in entry.names])
    names = [name for name, row in zip(entry.names, vectors, strict=True) if row.any()]
    if not names:
        raise PoolError(f"no name is left for the pool {entry.fine_type}")
    if len({fold(name) for name in names}) != len(names):
        raise PoolError(f"the pool {entry.fine_type} holds a name twice")
    stored = vectors[vectors.any(axis=1)].astype(np.float16)
    central = central_rows(unit_rows(stored))
    dropped = len(names) - len(central)
    names, stored = [names[row] for row in central], stored[central]
    sizes = sorted({min(PRIMARY_SIZE[entry.fine_type], len(names)), len(names)})
    write_text(out / f"{entry.fine_type}.txt", "\n".join(names) + "\n")
    save(out / f"{entry.fine_type}.npy", stored)
    return {
        "sizes": sizes,
        "rejected": {**dict(sorted(entry.rejected.items())), "remote": dropped},
        "spread": spread_table(unit_rows(stored), sizes),
    }


def _source_digests() -> dict[str, str]:
    return {name: sha256_of(lists.list_path(name)) for name in sorted(lists.ALL_LISTS)}
