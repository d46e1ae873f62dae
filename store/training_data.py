"""Which data sets of a tenant hold the same records, told without keeping one.

A record is known by its mark, a keyed hash of its text cut to 8 bytes: as much as tells records apart
(two of a million are mistaken for one with probability 3e-8, and then share a budget).
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from store.crypto import DataKey
from store.job_rows import dataset_key
from store.models import TrainingDataRow

_MARK: Final = 8  # bytes
_Row = TrainingDataRow


class DataSet(NamedTuple):
    """What is known of training data: the blind index of the whole, and the marks of its records."""

    key: str
    marks: bytes = b""


def data_set(key: DataKey, records: Sequence[bytes], texts: Iterable[str]) -> DataSet:
    """Return what is to be remembered of records.

    Args:
        key: The tenant's.
        records: Encoded records; the same ones in any order are the same data set.
        texts: The text of each record, in the form that is to be recognised in other data sets.
    """
    marks = {key.blind("training-record", text)[:_MARK] for text in texts}
    return DataSet(dataset_key(key, records), b"".join(sorted(marks)))


def remember(session: Session, tenant_id: str, data: DataSet) -> None:
    """Store a data set, once.  The tenant must be locked."""
    if session.get(_Row, (tenant_id, data.key)) is None:
        session.add(_Row(tenant_id=tenant_id, dataset=data.key, marks=data.marks))


def shared(session: Session, tenant_id: str, data: DataSet) -> dict[str, int]:
    """Return the keys of all data sets that hold one of its records, and how many; itself included."""
    own = _numbers(data.marks)
    found = {data.key: own.size}
    rows = select(_Row.dataset, _Row.marks).where(_Row.tenant_id == tenant_id)
    for dataset, marks in session.execute(rows):
        common = np.intersect1d(own, _numbers(marks), assume_unique=True).size
        if common:
            found.setdefault(dataset, common)
    return found


def recall(session: Session, tenant_id: str, dataset: str) -> DataSet:
    """Return a data set as it was stored; without marks when it is older than they are."""
    row = session.get(_Row, (tenant_id, dataset))
    return DataSet(dataset, b"" if row is None else row.marks)


def _numbers(marks: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(marks, dtype="<u8")
