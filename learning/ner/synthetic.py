"""Business, HR, medical and chat sentences made from templates and public name lists.

The corpora are news, tweets and encyclopaedia text. Mails, forms, tables and signatures, the texts
that a gateway sees, are made here: the project's own templates and the MIT-licensed ones of
presidio-research, filled with names from public-domain and CC0 lists.
"""

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from learning.ner.corpora import Example
from privacy.detection.ner.words import split_words
from privacy.types import LOC, ORG, PERSON

_COUNTRIES = (
    "Germany France Italy Spain Portugal Poland Hungary Austria Switzerland Belgium Netherlands"
    " Denmark Norway Sweden Finland Iceland Ireland Scotland England Wales Greece Turkey Romania"
    " Bulgaria Serbia Croatia Slovenia Slovakia Ukraine Russia Georgia Armenia Israel Egypt Morocco"
    " Algeria Tunisia Nigeria Ghana Kenya Ethiopia Uganda Tanzania Zambia Canada Mexico Brazil"
    " Argentina Chile Peru Colombia Ecuador Bolivia Cuba Jamaica India Pakistan Bangladesh Nepal"
    " China Japan Vietnam Thailand Malaysia Singapore Indonesia Australia USA UK"
).split() + ["New Zealand", "South Africa", "South Korea", "Saudi Arabia", "Sri Lanka"]
_STREETS = "Street Road Avenue Lane Drive Way Close Boulevard Terrace Square Court Place".split()
_OPEN = "Oak Station Mill Church High Park Lake Maple Queen Harbour Garden Victoria".split()
_FORMS = ["Ltd", "GmbH", "Inc.", "LLC", "& Co.", "& Sons", "Group", "Partners", "Consulting"]
_FORMS += ["Logistics", "Bank", "Clinic", "Foods", "Hospital", "Insurance", "AG", "S.A.", "plc"]
_LETTERS = "ABCDEFGHIJKLMNOPRSTVWZ"
_FIELD = re.compile(r"\{\{(\w+)\}\}|\{([PFLRMOUCKSf])\}")
_PRESIDIO = {
    **dict.fromkeys(("person", "name", "name_male", "name_female"), "P"),
    **dict.fromkeys(("first_name", "first_name_male", "first_name_female"), "F"),
    "first_name_nonbinary": "F",
    **dict.fromkeys(("last_name", "last_name_male", "last_name_female"), "L"),
    "organization": "O",
    "city": "C",
    "country": "K",
    "address": "A",
    "street_name": "T",
}
# Fields that hold no name: any plausible text will do, the tagger must leave it alone.
_PLAIN = {
    "credit_card_number": "4111 1111 1111 1111",
    "phone_number": "555-0142",
    "building_number": "",
    "age": "47",
    "secondary_address": "Suite 12",
    "postcode": "90210",
    "zipcode": "90210",
    "year": "1987",
    "nationality": "Canadian",
    "nation_woman": "Frenchwoman",
    "nation_plural": "Germans",
    "email": "info@example.com",
    "url": "https://www.example.com/about",
    "job": "Financial Controller",
    "prefix_male": "Mr.",
    "prefix_female": "Mrs.",
    "prefix": "Dr.",
    "iban": "GB29 NWBK 6016 1331 9268 19",
    "date_time": "12 March 2019",
    "date_of_birth": "17/02/1984",
    "state_abbr": "CA",
    "ssn": "900-12-3456",
    "ip_address": "192.0.2.17",
    "day_of_week": "Tuesday",
    "us_driver_license": "D1234567",
}


@dataclass(frozen=True)
class NameLists:
    """Public name lists, each most frequent first where the source says so."""

    given: tuple[str, ...]
    family: tuple[str, ...]
    world_given: tuple[str, ...]
    world_family: tuple[str, ...]
    companies: tuple[str, ...]
    universities: tuple[str, ...]
    cities: tuple[str, ...]


def _read(path: Path) -> tuple[str, ...]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return tuple(line.strip() for line in lines if line.strip())


def load_lists(data: Path) -> NameLists:
    """Name lists of the data collection (``gazetteers``)."""
    folder = data / "gazetteers"
    female = _read(folder / "us_census_first_names_female.txt.gz")
    male = _read(folder / "us_census_first_names_male.txt.gz")
    companies = (
        _read(folder / "sp500_companies.txt.gz")
        + _read(folder / "nasdaq_nyse_issuers.txt.gz")
        + _read(folder / "presidio_companies_orgs.txt.gz")
    )
    plain = re.compile(r"ETF|Fund|Notes|Shares|Trust|/|[A-Z]{9}|\(|%|\d")
    return NameLists(
        given=tuple(name for pair in zip(male, female, strict=False) for name in pair)
        + female[len(male) :],
        family=_read(folder / "us_census_surnames.txt.gz"),
        world_given=_read(folder / "world_forenames_romanized_cc0.txt.gz"),
        world_family=_read(folder / "world_surnames_romanized_cc0.txt.gz"),
        companies=tuple(c for c in companies if len(c) < 40 and not plain.search(c)),
        universities=_read(folder / "universities.txt.gz"),
        cities=_read(folder / "geonames_cities_over15k_datahub.txt.gz"),
    )


def load_templates(data: Path) -> tuple[str, ...]:
    """The project's own templates, twice, and those of presidio-research, once."""
    own = (Path(__file__).parent / "templates.txt").read_text(encoding="utf-8").splitlines()
    source = (data / "presidio_research" / "templates.txt").read_bytes()
    other = source.decode("utf-8", errors="replace").splitlines()
    return tuple(line.replace("\\n", "\n") for line in (*own, *own, *other) if line.strip())


class Writer:
    """Fills templates. Two writers with the same seed write the same text."""

    def __init__(self, lists: NameLists, seed: int) -> None:
        self.lists = lists
        self.rng = np.random.default_rng(seed)

    def example(self, template: str) -> Example:
        """One filled template as an example."""
        text, last = "", 0
        spans: list[tuple[int, int, str]] = []
        for match in _FIELD.finditer(template):
            text += template[last : match.start()]
            last = match.end()
            for piece, kind in self._field(match.group(1) or match.group(2)):
                follows = bool(spans) and spans[-1][1] == len(text) - 1 and text[-1] == " "
                if kind == PERSON and follows and spans[-1][2] == PERSON:
                    spans[-1] = (spans[-1][0], len(text) + len(piece), kind)
                elif kind is not None:
                    spans.append((len(text), len(text) + len(piece), kind))
                text += piece
        return from_text(self._wrap(text + template[last:]), spans)

    def _wrap(self, text: str) -> str:
        """Break lines at blanks, as mail programs do, in some texts also within names."""
        if self.rng.random() > 0.2:
            return text
        return "".join("\n" if char == " " and self.rng.random() < 0.1 else char for char in text)

    def _field(self, field: str) -> list[tuple[str, str | None]]:
        code = _PRESIDIO.get(field, field)
        if code in ("A", "S"):
            street: list[tuple[str, str | None]] = [(self._street(), LOC)]
            return street if code == "S" else [*street, (", ", None), (self._city(), LOC)]
        if code == "T":
            return [(self._street(), LOC)]
        if code == "f":
            return [(self._person(code), None)]
        if code in "PRFLM" and len(code) == 1:
            return [(self._person(code), PERSON)]
        if code == "O" and self.rng.random() < 0.08:
            return [(self._pick(self.lists.universities), ORG)]
        simple = {"O": self._company, "U": self._university, "C": self._city, "K": self._country}
        if code in simple:
            return [(simple[code](), ORG if code in "OU" else LOC)]
        return [(_PLAIN.get(field, field.replace("_", " ")), None)]

    def _pick(self, names: Sequence[str]) -> str:
        return names[int(self.rng.integers(len(names)))]

    def _ranked(self, names: Sequence[str]) -> str:
        """A draw that prefers frequent names: the rank is log-uniform."""
        return names[min(int(len(names) ** self.rng.random()), len(names) - 1)]

    def _given(self) -> str:
        source = self.rng.random()
        if source < 0.4:
            return self._ranked(self.lists.given)
        return self._pick(self.lists.given if source < 0.6 else self.lists.world_given)

    def _family(self) -> str:
        source = self.rng.random()
        if source < 0.3:
            return self._ranked(self.lists.family)
        if source < 0.6:
            return self._pick(self.lists.family)
        if source < 0.95:
            return self._pick(self.lists.world_family)
        return f"{self._ranked(self.lists.family)}-{self._pick(self.lists.family)}"

    def _person(self, code: str) -> str:
        given, family = self._given(), self._family()
        if code == "f":
            return given.lower() + (self._pick(("", "_", "")) + family.lower())
        if code == "R":
            return f"{family}, {given}"
        if code in "FL":
            return given if code == "F" else family
        form = self.rng.random()
        if form < 0.1:
            return f"{given} {self._pick(_LETTERS)}. {family}"
        if form < 0.14:
            return f"{given[0]}. {family}"
        if form < 0.2:
            return f"{given} {self._given()} {family}"
        if form < 0.23:
            return f"{given} {self._pick(('de', 'van', 'al', 'da', 'von', 'bin'))} {family}"
        return f"{given} {family}"

    def _street(self) -> str:
        name = self._pick(_OPEN) if self.rng.random() < 0.4 else self._ranked(self.lists.family)
        return f"{int(self.rng.integers(1, 999))} {name} {self._pick(_STREETS)}"

    def _company(self) -> str:
        if self.rng.random() < 0.5:
            return self._pick(self.lists.companies)
        return f"{self._family()} {self._pick(_FORMS)}"

    def _university(self) -> str:
        return self._pick(self.lists.universities)

    def _city(self) -> str:
        return self._pick(self.lists.cities)

    def _country(self) -> str:
        return self._pick(_COUNTRIES)


def from_text(text: str, spans: Sequence[tuple[int, int, str]]) -> Example:
    """An example from a text and entities given in code points."""
    words = split_words(text)
    found = []
    for start, end, kind in spans:
        inside = [i for i, (low, high) in enumerate(words) if low >= start and high <= end]
        if inside:
            found.append((inside[0], inside[-1] + 1, kind))
    return Example(tuple(text[low:high] for low, high in words), tuple(found))


def write_examples(data: Path, count: int, seed: int) -> list[Example]:
    """``count`` made-up sentences."""
    writer = Writer(load_lists(data), seed)
    templates = load_templates(data)
    return [writer.example(templates[i % len(templates)]) for i in range(count)]
