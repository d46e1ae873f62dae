"""Assembles the names of every pool from the source lists, through the hygiene rules."""

from dataclasses import dataclass

from privacy.embedding.base import fold
from privacy.pools import hygiene as h
from privacy.pools import lists
from privacy.pools.orgs import org_candidates, single_word_clash
from privacy.pools.streets import street_names
from privacy.pools.types import (
    CITY,
    COUNTRY,
    FAMILY,
    GIVEN,
    LARGEST_SIZE,
    ORG,
    REGION,
    STREET,
)


@dataclass(frozen=True)
class Candidates:
    """The names of one pool, best known first, and how many were rejected for which reason."""

    fine_type: str
    names: tuple[str, ...]
    rejected: dict[str, int]


def all_candidates() -> list[Candidates]:
    """Return the names of all pools; no name or word of a personal name is in two of them."""
    countries = _countries()
    regions = _regions(countries.names)
    cities = _cities([*countries.names, *regions.names])
    given, family = _persons()
    orgs = _orgs()
    streets = _finish(STREET, h.Screen([h.offensive]), street_names())
    return [given, family, orgs, countries, regions, cities, streets]


def _persons() -> tuple[Candidates, Candidates]:
    screens = (
        h.Screen([h.person_form, h.offensive, h.plain_word, h.also_place, h.mostly_family]),
        h.Screen(
            [
                h.person_form,
                h.offensive,
                h.joined_prefix,
                h.plain_word,
                h.also_place,
                h.also_given,
            ]
        ),
    )
    given = screens[0].keep(lists.interleaved(lists.GIVEN_LISTS))
    family = screens[1].keep(lists.interleaved(lists.FAMILY_LISTS))
    return (
        _limit(GIVEN, h.without_possessive_twins(given, family), screens[0]),
        _limit(FAMILY, h.without_possessive_twins(family, given), screens[1]),
    )


def _orgs() -> Candidates:
    rules = [h.offensive, h.only_words, single_word_clash, h.person_like, h.also_place]
    return _finish(ORG, h.Screen(rules), org_candidates())


def _countries() -> Candidates:
    rules = [h.place_form, h.only_words, h.also_given, h.also_family, _territory]
    return _finish(COUNTRY, h.Screen(rules), list(lists.read_list("countries")))


def _regions(countries: tuple[str, ...]) -> Candidates:
    cities = h.not_in(lists.read_list("cities"), "city")
    rules = [
        h.place_form,
        h.offensive,
        h.only_words,
        h.also_given,
        h.also_family,
        h.not_in(countries, "country"),
        cities,
    ]
    raw = [
        *lists.read_list("us_states"),
        *lists.read_list("regions"),
        *lists.read_list("us_counties"),
    ]
    return _finish(REGION, h.Screen(rules), raw)


def _cities(others: list[str]) -> Candidates:
    rules = [
        h.place_form,
        h.offensive,
        h.only_words,
        h.also_given,
        h.also_family,
        h.not_in([*others, *lists.read_list("countries")], "country"),
        h.not_in([*lists.read_list("regions"), *lists.read_list("us_states")], "region"),
    ]
    return _finish(CITY, h.Screen(rules), list(lists.read_list("cities")))


def _territory(name: str) -> str | None:
    """Rule: no joint or ambiguous country name ("Guinea" stands inside three others)."""
    words = fold(name).split()
    if {"and", "of", "the"} & set(words) or name in {"Guinea", "Congo", "Ireland", "Niger"}:
        return "ambiguous"
    return None


def _finish(fine_type: str, screen: h.Screen, raw: list[str]) -> Candidates:
    return _limit(fine_type, screen.keep(raw), screen)


def _limit(fine_type: str, names: list[str], screen: h.Screen) -> Candidates:
    return Candidates(fine_type, tuple(names[: LARGEST_SIZE[fine_type]]), dict(screen.rejected))
