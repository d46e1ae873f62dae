"""The built pools on disk: a manifest with a SHA-256 per file, name lists and vectors."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from privacy.embedding.base import Embedding
from privacy.embedding.glove import sha256_of
from privacy.pools.places import classify_place
from privacy.pools.pool import Pool
from privacy.pools.spread import Spread
from privacy.pools.types import FINE_TYPES, PoolError

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
PACKAGED: Final = Path(__file__).parent / "built"
_REBUILD: Final = "run `penname pools build` to build them again, or reinstall the package"


class PoolSet:
    """All pools of one version.  Immutable, thread-safe."""

    def __init__(self, pools: Mapping[str, Pool], manifest: Mapping[str, Any]) -> None:
        self._pools = dict(pools)
        self.manifest = manifest

    @classmethod
    def load(cls, path: Path | None = None) -> "PoolSet":
        """Load and verify the pools in a folder; None takes those shipped with the package.

        Raises:
            PoolError: A file is missing or damaged, or the format is another one.
        """
        folder = PACKAGED if path is None else path
        manifest = read_manifest(folder)
        verify(folder, manifest)
        pools = {
            fine_type: _read_pool(folder, fine_type, entry)
            for fine_type, entry in manifest["pools"].items()
        }
        return cls(pools, manifest)

    @property
    def version(self) -> str:
        """The first 12 hex digits of the hash over everything the pools consist of."""
        return str(self.manifest["version"])

    @property
    def embedding(self) -> str:
        """Fingerprint of the embedding that the vectors were computed with."""
        return str(self.manifest["embedding"])

    @property
    def fine_types(self) -> tuple[str, ...]:
        return tuple(self._pools)

    def pool(self, fine_type: str, level: int = 0) -> Pool:
        """Return one pool.  Raises PoolError when there is no such fine type or level."""
        if fine_type not in self._pools:
            known = ", ".join(self._pools)
            raise PoolError(f"no pool for the type {fine_type!r}: there are {known}")
        return self._pools[fine_type].at(level)

    def contains(self, fine_type: str, name: str) -> bool:
        """Tell whether a name is in the largest level of a pool, whatever its case and accents."""
        base = self.pool(fine_type)
        return base.at(len(base.sizes) - 1).index_of(name) is not None

    def classify_loc(self, name: str) -> str:
        """Return the fine type of a place name (see `classify_place`)."""
        return classify_place(name)

    def check_embedding(self, embedding: Embedding) -> None:
        """Raise PoolError unless the pools were built with this embedding."""
        if embedding.fingerprint != self.embedding:
            raise PoolError(
                "the pools were built with another embedding than the one configured: run "
                "`penname pools build` with the configured embedding"
            )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of the pools in a folder.

    Raises:
        PoolError: It is missing, unreadable, or its version does not match its content.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PoolError(f"there are no pools in the folder {folder.name}: {_REBUILD}") from error
    except (OSError, ValueError) as error:
        raise PoolError(f"the manifest of the pools is unreadable: {_REBUILD}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise PoolError(f"the pools have another format than {FORMAT}: {_REBUILD}")
    if manifest.get("version") != version_of(manifest):
        raise PoolError(f"the manifest of the pools was changed: {_REBUILD}")
    if not set(FINE_TYPES) >= set(manifest["pools"]) or not manifest["pools"]:
        raise PoolError(f"the manifest lists unknown pools: {_REBUILD}")
    return manifest


def version_of(manifest: Mapping[str, Any]) -> str:
    """Return the version that belongs to a manifest: a hash over all of it but the version."""
    content = {key: value for key, value in manifest.items() if key != "version"}
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:12]


def verify(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Check the SHA-256 of every file.  Raises PoolError naming the first that differs."""
    for name, expected in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise PoolError(f"the file {name} of the pools is missing: {_REBUILD}")
        if sha256_of(path) != expected:
            raise PoolError(f"the file {name} of the pools is damaged: {_REBUILD}")


def _read_pool(folder: Path, fine_type: str, entry: Mapping[str, Any]) -> Pool:
    text = (folder / f"{fine_type}.txt").read_text(encoding="utf-8")
    vectors = np.load(folder / f"{fine_type}.npy", mmap_mode="r", allow_pickle=False)
    sizes = [int(size) for size in entry["sizes"]]
    spreads = {
        metric: [Spread(size, tuple(row)) for size, row in zip(sizes, rows, strict=True)]
        for metric, rows in entry["spread"].items()
    }
    return Pool(fine_type, text.splitlines(), vectors, sizes, spreads)
