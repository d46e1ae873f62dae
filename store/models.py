"""The tables.  A column named ``sealed*`` or ``wrapped*`` holds ciphertext only.

Times are seconds since the epoch, UTC, as float64.  Ids are made here (`new_id`), never by the
database, except for the ledger and the chunks, whose integer ids are never used twice.
"""

import secrets
from typing import Final

from sqlalchemy import (
    BigInteger,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# SQLite numbers rows only for a column declared exactly INTEGER; that is 64 bits there anyway.
_RowNumber: Final = BigInteger().with_variant(Integer, "sqlite")


def new_id(prefix: str) -> str:
    """Return ``prefix`` and 24 random hexadecimal digits (96 bits)."""
    return prefix + secrets.token_hex(12)


class Base(DeclarativeBase):
    """Names every constraint, so that migrations can address it on both databases."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class TenantRow(Base):
    """A tenant and its data key, wrapped by the master key."""

    __tablename__ = "tenants"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    key_id: Mapped[str] = mapped_column(String(40))
    master_key_id: Mapped[str] = mapped_column(String(40))
    wrapped_key: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[float] = mapped_column(Double)


class ApiKeyRow(Base):
    """An API key: its SHA-256 only."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), index=True)
    role: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(200))
    prefix: Mapped[str] = mapped_column(String(16))
    digest: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[float] = mapped_column(Double)
    expires_at: Mapped[float | None] = mapped_column(Double)
    last_used_at: Mapped[float | None] = mapped_column(Double)
    revoked_at: Mapped[float | None] = mapped_column(Double)


class SessionRow(Base):
    """A session, its own data key wrapped by the tenant's, and its small encrypted state.

    ``ref`` is the blind index of the id that the client chose; the id itself is sealed, because
    clients put names into ids.
    """

    __tablename__ = "sessions"
    __table_args__ = (
        UniqueConstraint("tenant_id", "ref"),
        Index("ix_sessions_tenant_id_last_used_at", "tenant_id", "last_used_at"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    ref: Mapped[str] = mapped_column(String(64))
    sealed_id: Mapped[bytes] = mapped_column(LargeBinary)
    wrapped_key: Mapped[bytes] = mapped_column(LargeBinary)
    policy: Mapped[str] = mapped_column(String(200))
    version: Mapped[int] = mapped_column(Integer)
    sealed_state: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[float] = mapped_column(Double)
    last_used_at: Mapped[float] = mapped_column(Double)


class EntryRow(Base):
    """One original and its substitute, sealed under the session's key."""

    __tablename__ = "session_entries"
    __table_args__ = (
        UniqueConstraint("session_pk", "fine_type", "key_index"),
        UniqueConstraint("session_pk", "substitute_index"),
    )

    session_pk: Mapped[str] = mapped_column(
        ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True
    )
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    fine_type: Mapped[str] = mapped_column(String(64))
    key_index: Mapped[bytes] = mapped_column(LargeBinary)
    substitute_index: Mapped[bytes] = mapped_column(LargeBinary)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)


class ResponseRow(Base):
    """An answered request of the Responses interface, sealed under its session's key.

    ``previous_id`` is no foreign key: a response may be deleted while later ones name it.
    """

    __tablename__ = "responses"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    session_pk: Mapped[str] = mapped_column(
        ForeignKey("sessions.id", ondelete="CASCADE"), index=True
    )
    previous_id: Mapped[str | None] = mapped_column(String(40))
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[float] = mapped_column(Double)


class LedgerEntryRow(Base):
    """One charge.  Append-only by trigger; without foreign keys, so that it outlives what it bills.

    ``account`` keeps what must not be added apart (DESIGN 3.6): ``entity``, and others such as
    ``ppft`` or ``dpsgd``.  ``day`` counts UTC days since the epoch.
    """

    __tablename__ = "ledger"
    __table_args__ = (
        Index("ix_ledger_tenant_id_session_ref", "tenant_id", "session_ref"),
        Index("ix_ledger_tenant_id_day", "tenant_id", "day"),
        Index("ix_ledger_tenant_id_entity_hmac", "tenant_id", "entity_hmac"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(_RowNumber, primary_key=True)
    tenant_id: Mapped[str] = mapped_column(String(64))
    session_ref: Mapped[str | None] = mapped_column(String(64))
    request_id: Mapped[str] = mapped_column(String(128))
    account: Mapped[str] = mapped_column(String(16))
    fine_type: Mapped[str] = mapped_column(String(64))
    mechanism: Mapped[str] = mapped_column(String(64))
    metric: Mapped[str] = mapped_column(String(64))
    epsilon: Mapped[float] = mapped_column(Double)
    delta: Mapped[float] = mapped_column(Double)
    entity_hmac: Mapped[str] = mapped_column(String(128))
    day: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[float] = mapped_column(Double)


class FileRecord(Base):
    """An uploaded file; its name is sealed, its content lies in `FilePartRow`."""

    __tablename__ = "files"
    __table_args__ = (Index("ix_files_tenant_id_created_at", "tenant_id", "created_at"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    sealed_name: Mapped[bytes] = mapped_column(LargeBinary)
    purpose: Mapped[str] = mapped_column(String(40))
    size: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[float] = mapped_column(Double)


class FilePartRow(Base):
    """A piece of a file's content, sealed for its position."""

    __tablename__ = "file_parts"

    file_id: Mapped[str] = mapped_column(
        ForeignKey("files.id", ondelete="CASCADE"), primary_key=True
    )
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)


class VectorStoreRecord(Base):
    """A vector store.  ``version`` grows with every change of its chunks, ``removed_version`` is
    the last version that took chunks away: together they let an index catch up without a rebuild.
    """

    __tablename__ = "vector_stores"
    __table_args__ = (Index("ix_vector_stores_tenant_id_created_at", "tenant_id", "created_at"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    dimensions: Mapped[int | None] = mapped_column(Integer)
    version: Mapped[int] = mapped_column(BigInteger)
    removed_version: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[float] = mapped_column(Double)
    last_active_at: Mapped[float] = mapped_column(Double)


class VectorStoreFileRecord(Base):
    """A file attached to a vector store and the state of its ingestion."""

    __tablename__ = "vector_store_files"

    vector_store_id: Mapped[str] = mapped_column(
        ForeignKey("vector_stores.id", ondelete="CASCADE"), primary_key=True
    )
    file_id: Mapped[str] = mapped_column(
        ForeignKey("files.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    status: Mapped[str] = mapped_column(String(16), index=True)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    usage_bytes: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[float] = mapped_column(Double)


class ChunkRow(Base):
    """A chunk: text and spans sealed together, its embedding sealed apart."""

    __tablename__ = "chunks"
    __table_args__ = (
        ForeignKeyConstraint(
            ["vector_store_id", "file_id"],
            ["vector_store_files.vector_store_id", "vector_store_files.file_id"],
            ondelete="CASCADE",
        ),
        UniqueConstraint("vector_store_id", "file_id", "ordinal"),
        Index("ix_chunks_vector_store_id_added_version", "vector_store_id", "added_version"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(_RowNumber, primary_key=True)
    vector_store_id: Mapped[str] = mapped_column(String(40))
    file_id: Mapped[str] = mapped_column(String(40))
    ordinal: Mapped[int] = mapped_column(Integer)
    added_version: Mapped[int] = mapped_column(BigInteger)
    sealed_text: Mapped[bytes] = mapped_column(LargeBinary)
    sealed_embedding: Mapped[bytes] = mapped_column(LargeBinary)


class FineTuningJobRow(Base):
    """A fine-tuning job, its lease and what it charges to its data set.

    ``dataset`` is the blind index of the training data's content.  ``plan`` and ``history`` are JSON
    lists of ``{rate, noise_multiplier, steps, label}``: what was reserved, and what was spent once
    the job is settled.  ``version`` grows with every change of state.
    """

    __tablename__ = "fine_tuning_jobs"
    __table_args__ = (
        UniqueConstraint("tenant_id", "request_key"),
        Index("ix_fine_tuning_jobs_tenant_id_created_at", "tenant_id", "created_at"),
        Index("ix_fine_tuning_jobs_tenant_id_dataset", "tenant_id", "dataset"),
        Index("ix_fine_tuning_jobs_status_created_at", "status", "created_at"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    request_key: Mapped[str | None] = mapped_column(String(64))
    status: Mapped[str] = mapped_column(String(20))
    wanted: Mapped[str] = mapped_column(String(16))
    method: Mapped[str] = mapped_column(String(40))
    model: Mapped[str] = mapped_column(String(200))
    engine: Mapped[str] = mapped_column(String(16))
    training_file: Mapped[str] = mapped_column(String(40))
    validation_file: Mapped[str | None] = mapped_column(String(40))
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    spec: Mapped[str] = mapped_column(Text)
    seed: Mapped[int] = mapped_column(BigInteger)
    account: Mapped[str] = mapped_column(String(16))
    dataset: Mapped[str] = mapped_column(String(64))
    plan: Mapped[str] = mapped_column(Text)
    history: Mapped[str | None] = mapped_column(Text)
    reserved_epsilon: Mapped[float] = mapped_column(Double)
    spent_epsilon: Mapped[float | None] = mapped_column(Double)
    delta: Mapped[float] = mapped_column(Double)
    steps_total: Mapped[int] = mapped_column(Integer)
    steps_done: Mapped[int] = mapped_column(Integer)
    steps_taken: Mapped[int] = mapped_column(Integer)
    attempts: Mapped[int] = mapped_column(Integer)
    failures: Mapped[int] = mapped_column(Integer)
    events_read: Mapped[int] = mapped_column(BigInteger)
    owner: Mapped[str] = mapped_column(String(80))
    lease_until: Mapped[float] = mapped_column(Double)
    handle: Mapped[str | None] = mapped_column(String(200))
    error: Mapped[str | None] = mapped_column(Text)
    result_files: Mapped[str] = mapped_column(Text)
    estimated_finish: Mapped[float | None] = mapped_column(Double)
    version: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[float] = mapped_column(Double)
    started_at: Mapped[float | None] = mapped_column(Double)
    finished_at: Mapped[float | None] = mapped_column(Double)


class TrainingDataRow(Base):
    """Training data of jobs: ``dataset`` as in their rows, ``marks`` the sorted marks of its records."""

    __tablename__ = "training_data"

    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    dataset: Mapped[str] = mapped_column(String(64), primary_key=True)
    marks: Mapped[bytes] = mapped_column(LargeBinary)


class FineTuningEventRow(Base):
    """Something a job reports; public figures only, no training text."""

    __tablename__ = "fine_tuning_events"
    __table_args__ = (
        Index("ix_fine_tuning_events_job_id_number", "job_id", "number"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(_RowNumber, primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("fine_tuning_jobs.id", ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(String(16))
    level: Mapped[str] = mapped_column(String(8))
    message: Mapped[str] = mapped_column(Text)
    data: Mapped[str] = mapped_column(Text)
    created_at: Mapped[float] = mapped_column(Double)


class TunedModelRow(Base):
    """A fine-tuned model that can be served; ``ref`` is the blind index of its public name."""

    __tablename__ = "tuned_models"
    __table_args__ = (UniqueConstraint("tenant_id", "ref"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    job_id: Mapped[str] = mapped_column(String(40))
    ref: Mapped[str] = mapped_column(String(64))
    sealed_name: Mapped[bytes] = mapped_column(LargeBinary)
    method: Mapped[str] = mapped_column(String(40))
    base: Mapped[str] = mapped_column(String(200))
    file_id: Mapped[str] = mapped_column(String(40))
    created_at: Mapped[float] = mapped_column(Double)
