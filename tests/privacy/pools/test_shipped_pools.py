"""Invariants of the shipped pools that substitution and restoration rely on."""

import re
from collections import Counter

import pytest

from privacy.embedding.base import fold
from privacy.pools import FINE_TYPES, Pool, PoolError, PoolSet, lists
from privacy.pools.hygiene import offensive

MINIMUM = {
    "person.given": 2_000,
    "person.family": 8_000,
    "org": 4_000,
    "loc.country": 170,
    "loc.region": 500,
    "loc.city": 5_000,
    "loc.street": 2_000,
}


@pytest.fixture(scope="module")
def pools() -> PoolSet:
    return PoolSet.load()


def largest(pools: PoolSet, fine_type: str) -> Pool:
    base = pools.pool(fine_type)
    return base.at(len(base.sizes) - 1)


def test_sizes(pools: PoolSet) -> None:
    assert set(pools.fine_types) == set(FINE_TYPES)
    for fine_type, minimum in MINIMUM.items():
        assert len(pools.pool(fine_type)) >= minimum, fine_type
    for fine_type in ("person.given", "person.family", "org", "loc.city", "loc.street"):
        assert pools.pool(fine_type).larger() is not None


def test_no_name_is_in_two_pools_in_any_spelling(pools: PoolSet) -> None:
    seen = Counter(fold(n) for t in pools.fine_types for n in largest(pools, t).names)
    assert [name for name, count in seen.items() if count > 1] == []


def test_personal_names_are_single_plain_words(pools: PoolSet) -> None:
    for fine_type in ("person.given", "person.family"):
        for name in largest(pools, fine_type).names:
            assert re.fullmatch(r"[A-Z][a-z]{2,13}", name), name
            assert not name.startswith("Mc")


def test_no_name_is_an_english_word_or_offensive(pools: PoolSet) -> None:
    words = lists.common_words()
    for fine_type in pools.fine_types:
        for name in largest(pools, fine_type).names:
            assert offensive(name) is None, name
            assert fold(name) not in words, name


def test_no_personal_name_is_a_place_or_a_possessive_of_another(pools: PoolSet) -> None:
    given, family = (set(largest(pools, f"person.{part}").names) for part in ("given", "family"))
    places = lists.place_names()
    for name in given | family:
        assert fold(name) not in places, name
        assert not (name.endswith("s") and name[:-1] in given | family), name


def test_every_name_is_printable_ascii_of_up_to_four_words(pools: PoolSet) -> None:
    for fine_type in pools.fine_types:
        for name in largest(pools, fine_type).names:
            assert re.fullmatch(r"[A-Za-z][A-Za-z' -]*[a-zA-Z]", name), name
            assert 1 <= len(name.split()) <= 4, name
            assert name == " ".join(name.split())
            assert name.casefold() != name


def test_organisations_carry_no_legal_form(pools: PoolSet) -> None:
    legal = {"inc", "ltd", "llc", "gmbh", "ag", "sa", "nv", "plc", "corp", "corporation", "limited"}
    for name in largest(pools, "org").names:
        assert not legal & set(fold(name).split()), name


def test_every_vector_is_of_unit_length(pools: PoolSet) -> None:
    for fine_type in pools.fine_types:
        pool = largest(pools, fine_type)
        lengths = (pool.vectors**2).sum(axis=1)
        assert lengths == pytest.approx(1.0)
        assert pool.vectors.shape == (len(pool), 50)


def test_membership_and_index_ignore_case(pools: PoolSet) -> None:
    pool = pools.pool("person.family")
    name = pool.names[7]
    assert pool.index_of(name.upper()) == 7
    assert pools.contains("person.family", name.lower())
    assert not pools.contains("person.family", "Smithereens")
    with pytest.raises(PoolError, match="there are"):
        pools.pool("person.nickname")


def test_probability_bounds_are_small_at_usual_epsilons(pools: PoolSet) -> None:
    for fine_type in ("person.given", "person.family", "org", "loc.city"):
        pool = pools.pool(fine_type)
        assert pool.p_max(2.0, 0.35) < 2.0 / len(pool)
        assert pool.p_max(10.0, 0.35) < 6.0 / len(pool)
