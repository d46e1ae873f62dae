"""The real GloVe vectors, and the shipped pools against them (a few seconds)."""

from pathlib import Path

import numpy as np
import pytest

from privacy.embedding import EmbeddingError, WordVectors, angle, read_glove
from privacy.embedding.glove import DIGESTS
from privacy.pools import PoolSet, build_embedding, ensure_embedding
from privacy.pools.artefact import read_manifest
from privacy.pools.candidates import all_candidates


@pytest.fixture(scope="module")
def glove_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("glove")
    build_embedding(folder)
    return folder


@pytest.fixture(scope="module")
def glove(glove_folder: Path) -> WordVectors:
    return WordVectors.load(glove_folder)


def test_a_set_up_folder_is_used_as_it_is(glove_folder: Path) -> None:
    before = (glove_folder / "vectors.npy").stat().st_mtime_ns
    assert len(ensure_embedding(glove_folder)) == 400_000
    assert (glove_folder / "vectors.npy").stat().st_mtime_ns == before


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="missing"):
        read_glove(tmp_path)
    for name in DIGESTS:
        (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(EmbeddingError, match="SHA-256"):
        read_glove(tmp_path)


def test_meaning_is_near(glove: WordVectors) -> None:
    paris, london, banana = (glove.vector(w) for w in ("Paris", "London", "banana"))
    assert angle(paris, london) < angle(paris, banana)
    unknown = glove.vector("Kowalczykowska")
    assert "kowalczykowska" not in glove
    assert angle(unknown, glove.vector("Kowalska")) < angle(unknown, glove.vector("Toyota"))


def test_the_shipped_pools_are_what_the_sources_give(glove: WordVectors) -> None:
    pools = PoolSet.load()
    pools.check_embedding(glove)
    for candidates in all_candidates():
        base = pools.pool(candidates.fine_type)
        largest = base.at(len(base.sizes) - 1)
        kept = set(largest.names)
        assert [name for name in candidates.names if name in kept] == list(largest.names)
        assert len(kept) >= 0.94 * len(candidates.names)
        for row in range(0, len(largest), len(largest) // 20):
            vector = glove.vector(largest.names[row])
            assert largest.vectors[row] == pytest.approx(vector, abs=2e-3)


def test_the_shipped_manifest_counts_why_names_were_rejected() -> None:
    from privacy.pools.artefact import PACKAGED

    manifest = read_manifest(PACKAGED)
    assert manifest["pools"]["person.given"]["rejected"]["word"] > 100
    assert np.all([entry["rejected"]["remote"] > 0 for entry in manifest["pools"].values()])
