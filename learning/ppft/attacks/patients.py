"""Pri-DDX as an attacker's target: patients with age, sex, symptoms and antecedents."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

from learning.ppft.corpora import CorpusError, Split

_AGES = (18, 40, 65)


@dataclass(frozen=True, slots=True)
class Patient:
    """One record: its text, and what an attacker wants of it.

    Attributes:
        text: The question with all private facts.
        sex: ``F`` or ``M``.
        age: Group 0 to 3, cut at 18, 40 and 65 years.
        symptoms, antecedents: As the text names them.
    """

    text: str
    sex: str
    age: int
    symptoms: frozenset[str]
    antecedents: frozenset[str]

    @property
    def facts(self) -> frozenset[str]:
        """Symptoms and antecedents together."""
        return self.symptoms | self.antecedents


def read_patients(folder: Path, split: Split) -> list[Patient]:
    """Read the patients: ``train`` is what an attacker knows, ``eval`` whom they attack.

    Raises:
        CorpusError: The file is missing.
    """
    part = "test" if split == "train" else "dev"
    path = folder / "privacyrestore" / f"Pri-DDXPlus.{part}.jsonl.gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8") as handle:
            return [_patient(json.loads(line)) for line in handle]
    except FileNotFoundError:
        raise CorpusError(f"{path} is missing; name its folder by --data") from None


def _patient(item: dict[str, object]) -> Patient:
    age = int(str(item["age"]))
    return Patient(
        str(item["question_init"]),
        str(item["sex"]),
        sum(age >= limit for limit in _AGES),
        frozenset(map(str, _listed(item["symptoms"]))),
        frozenset(map(str, _listed(item["antecedents"]))),
    )


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
