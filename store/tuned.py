"""Fine-tuned models that a tenant can use: names and where their values lie."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from store.crypto import DataKey
from store.errors import NotFound
from store.models import TunedModelRow, new_id

if TYPE_CHECKING:
    from store.database import Database


@dataclass(frozen=True)
class TunedModel:
    """A fine-tuned model; its name may hold a suffix that the client chose, so it is sealed.

    Attributes:
        file_id: The file with its trained values.
    """

    id: str
    tenant_id: str
    job_id: str
    name: str
    method: str
    base: str
    file_id: str
    created_at: float


class TunedModelStore:
    """Fine-tuned models of all tenants."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def add(
        self, tenant_id: str, job_id: str, name: str, method: str, base: str, file_id: str
    ) -> TunedModel:
        """Make a model usable.  Raises StoreConflict when the tenant has one of that name."""
        model = TunedModel(
            new_id("tm_"), tenant_id, job_id, name, method, base, file_id, time.time()
        )
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            session.add(
                TunedModelRow(
                    id=model.id,
                    tenant_id=tenant_id,
                    job_id=job_id,
                    ref=_ref(key, name),
                    sealed_name=key.seal(name.encode(), *_place(tenant_id, model.id)),
                    method=method,
                    base=base,
                    file_id=file_id,
                    created_at=model.created_at,
                )
            )
        return model

    def get(self, tenant_id: str, name: str) -> TunedModel:
        """Return a model by its name.  Raises NotFound."""
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            row = session.scalar(
                select(TunedModelRow).where(
                    TunedModelRow.tenant_id == tenant_id, TunedModelRow.ref == _ref(key, name)
                )
            )
            if row is None:
                raise NotFound("There is no such fine-tuned model.")
            return _read(key, row)

    def list(self, tenant_id: str) -> list[TunedModel]:
        """Return the tenant's models, oldest first."""
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            rows = session.scalars(
                select(TunedModelRow)
                .where(TunedModelRow.tenant_id == tenant_id)
                .order_by(TunedModelRow.created_at, TunedModelRow.id)
            )
            return [_read(key, row) for row in rows]

    def delete(self, tenant_id: str, name: str) -> TunedModel | None:
        """Remove a model; returns it, or None when there was none.  Its files are the caller's."""
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            row = session.scalar(
                select(TunedModelRow).where(
                    TunedModelRow.tenant_id == tenant_id, TunedModelRow.ref == _ref(key, name)
                )
            )
            if row is None:
                return None
            model = _read(key, row)
            session.execute(delete(TunedModelRow).where(TunedModelRow.id == row.id))
        return model


def _ref(key: DataKey, name: str) -> str:
    return key.blind("tuned-model", name).hex()


def _place(tenant_id: str, model_id: str) -> tuple[str, ...]:
    return tenant_id, "tuned_models", model_id


def _read(key: DataKey, row: TunedModelRow) -> TunedModel:
    name = key.open(row.sealed_name, *_place(row.tenant_id, row.id)).decode()
    return TunedModel(
        row.id,
        row.tenant_id,
        row.job_id,
        name,
        row.method,
        row.base,
        row.file_id,
        row.created_at,
    )
