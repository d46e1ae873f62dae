"""Building, loading, damage; levels, occurrences and place types."""

import json
from pathlib import Path

import numpy as np
import pytest

from privacy.embedding import WordTable, WordVectors, build_word_vectors
from privacy.pools import Pool, PoolError, PoolSet, build_pools, classify_place
from privacy.pools.artefact import PACKAGED, version_of
from privacy.pools.candidates import Candidates
from privacy.pools.spread import central_rows

NAMES = ("Ilse", "Marta", "Pavel", "Jorge", "Anneke", "Tomasz")
CITIES = ("Aqsu", "Graaff Reinet", "Nizhniy Novgorod", "Ha'il")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> WordVectors:
    folder = tmp_path_factory.mktemp("vectors")
    words = [word.lower() for word in NAMES]
    rows = np.random.Generator(np.random.PCG64(2)).normal(size=(len(words), 6))
    build_word_vectors(WordTable(words, rows, "test"), folder)
    return WordVectors.load(folder)


def build(folder: Path, vectors: WordVectors) -> str:
    candidates = [
        Candidates("person.given", NAMES, {"word": 3}),
        Candidates("loc.city", CITIES, {}),
    ]
    return build_pools(folder, vectors, candidates=candidates)


def test_same_input_same_version_and_bytes(tmp_path: Path, vectors: WordVectors) -> None:
    assert build(tmp_path / "a", vectors) == build(tmp_path / "b", vectors)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    assert build_pools(
        tmp_path / "c", vectors, candidates=[Candidates("person.given", NAMES[1:], {})]
    ) != build(tmp_path / "a", vectors)


def test_what_was_built_loads(tmp_path: Path, vectors: WordVectors) -> None:
    version = build(tmp_path, vectors)
    pools = PoolSet.load(tmp_path)
    assert pools.version == version
    assert pools.fine_types == ("loc.city", "person.given")
    assert pools.pool("person.given").names == NAMES
    assert pools.pool("person.given").vectors[2] == pytest.approx(vectors.vector("Pavel"), abs=2e-3)
    assert pools.manifest["pools"]["person.given"]["rejected"]["word"] == 3
    pools.check_embedding(vectors)


def test_another_embedding_is_refused(tmp_path: Path, vectors: WordVectors) -> None:
    build(tmp_path, vectors)
    build_word_vectors(WordTable(["a"], np.ones((1, 6)), "other"), tmp_path / "phi")
    with pytest.raises(PoolError, match="another embedding"):
        PoolSet.load(tmp_path).check_embedding(WordVectors.load(tmp_path / "phi"))


@pytest.mark.parametrize("name", ["person.given.txt", "person.given.npy", "loc.city.txt"])
def test_damage_is_detected(tmp_path: Path, vectors: WordVectors, name: str) -> None:
    build(tmp_path, vectors)
    raw = bytearray((tmp_path / name).read_bytes())
    raw[-2] ^= 1
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(PoolError, match=f"{name} of the pools is damaged"):
        PoolSet.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(PoolError, match="missing"):
        PoolSet.load(tmp_path)


def test_a_changed_manifest_is_detected(tmp_path: Path, vectors: WordVectors) -> None:
    with pytest.raises(PoolError, match="no pools"):
        PoolSet.load(tmp_path)
    build(tmp_path, vectors)
    path = tmp_path / "manifest.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    eased = json.loads(json.dumps(content))
    eased["pools"]["person.given"]["spread"]["angular"][0][0] *= 10
    other = {**content, "format": 2}
    strange = {**content, "pools": {"../etc": {}}}
    strange["version"] = version_of(strange)
    for text, message in (
        (json.dumps(eased), "changed"),
        (json.dumps(other), "format"),
        (json.dumps(strange), "unknown"),
        ("[", "unreadable"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(PoolError, match=message):
            PoolSet.load(tmp_path)


def test_empty_and_doubled_pools_are_refused(tmp_path: Path, vectors: WordVectors) -> None:
    with pytest.raises(PoolError, match="no name"):
        build_pools(tmp_path, vectors, candidates=[Candidates("org", (), {})])
    with pytest.raises(PoolError, match="twice"):
        build_pools(tmp_path, vectors, candidates=[Candidates("org", ("Ilse", "ILSE"), {})])
    with pytest.raises(PoolError, match="fit together"):
        Pool("org", ["Ilse"], np.ones((2, 3)), [1], {})


def test_loading_the_shipped_pools_reads_no_vectors() -> None:
    pools = PoolSet.load(PACKAGED)
    assert len(pools.version) == 12
    assert "vectors" not in vars(pools.pool("org"))


def test_levels_share_indices() -> None:
    rows = np.random.Generator(np.random.PCG64(3)).normal(size=(6, 3))
    pool = Pool.from_vectors("person.given", NAMES, rows, [2, 6])
    assert (len(pool), pool.names) == (2, NAMES[:2])
    larger = pool.larger()
    assert larger is not None
    assert larger.names == NAMES
    assert larger.vectors[:2] == pytest.approx(pool.vectors)
    assert larger.larger() is None
    assert pool.at(1) is larger
    assert larger.at(0) is pool
    assert pool.index_of("Tomasz") is None
    assert larger.index_of("TOMASZ") == 5


def test_central_rows_drop_the_most_remote() -> None:
    rows = np.tile([1.0, 0.0], (40, 1))
    rows[7] = [-1.0, 0.0]
    rows[9] = [0.0, 1.0]
    assert central_rows(rows) == [row for row in range(40) if row not in (7, 9)]


def test_occurrences_are_whole_words_in_any_case_and_across_lines() -> None:
    rows = np.eye(4)
    pool = Pool.from_vectors("loc.city", CITIES, rows)
    assert pool.occurring_in("from GRAAFF\n reinet to Aqsu.") == {0, 1}
    assert pool.occurring_in("Aqsuite and Graaff, then Reinets") == frozenset()
    assert pool.occurring_in("ha'il") == {3}
    assert pool.occurring_in("") == frozenset()


@pytest.mark.parametrize(
    ("name", "fine_type"),
    [
        ("Hungary", "loc.country"),
        ("U.S.", "loc.country"),
        ("the United Kingdom", "loc.country"),
        ("Bavaria", "loc.region"),
        ("TEXAS", "loc.region"),
        ("Zürich", "loc.city"),
        ("Zurich", "loc.city"),
        ("Maple Street", "loc.street"),
        ("12 rue de Rivoli", "loc.street"),
        ("Hauptstraße 5", "loc.street"),
        ("Nowhere-on-Sea", "loc.city"),
        ("", "loc.city"),
    ],
)
def test_places_are_told_apart(name: str, fine_type: str) -> None:
    assert classify_place(name) == fine_type
