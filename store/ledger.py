"""The privacy ledger: append-only rows, and the totals read from them.

Totals here are plain sums (basic composition).  Tighter bounds are computed from the rows by
`privacy.accounting`.  Accounts with another metric or unit are kept apart by ``account``: charges
with metric ``days`` (ε per day) go to the account ``days``, whoever makes them.
"""

import math
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Select, func, insert, select
from sqlalchemy.orm import Session

from privacy.accounting.charges import Charge
from store.crypto import DataKey
from store.models import LedgerEntryRow
from store.tenants import lock_tenant

if TYPE_CHECKING:
    from store.database import Database

ENTITY: Final = "entity"
DAYS: Final = "days"
_DAY_SECONDS: Final = 86_400
_IN_LIMIT: Final = 500  # values per IN list, far below both databases' limits
_Row = LedgerEntryRow


@dataclass(frozen=True)
class Spent:
    """A sum of charges: ε and δ by basic composition, and how many rows it adds up."""

    epsilon: float = 0.0
    delta: float = 0.0
    charges: int = 0


@dataclass(frozen=True)
class LedgerRow:
    """One charge as stored.

    Attributes:
        id: Grows with time; usable as a page cursor.
        session_ref: Blind index of the session's id, None for charges outside sessions.
        account: ``entity``, ``days``, or another account with a unit of its own.
        created_at: Seconds since the epoch, UTC.
    """

    id: int
    tenant_id: str
    session_ref: str | None
    request_id: str
    account: str
    fine_type: str
    mechanism: str
    metric: str
    epsilon: float
    delta: float
    entity_hmac: str
    created_at: float

    @property
    def charge(self) -> Charge:
        """The charge, for `privacy.accounting.totals`."""
        return Charge(
            self.fine_type,
            self.mechanism,
            self.metric,
            self.epsilon,
            self.delta,
            self.entity_hmac,
        )


@dataclass(frozen=True)
class EntitySpent:
    """What one entity cost a tenant over all its sessions."""

    entity_hmac: str
    fine_type: str
    spent: Spent
    sessions: int


class Spending:
    """Budgets beyond the session, readable inside `SessionStore.apply`'s transaction.

    The first question locks the tenant, so that charges of its other sessions, in other processes
    too, wait until this transaction ends: a tenant-wide budget cannot be overspent by a race.
    """

    def __init__(self, session: Session, tenant_id: str) -> None:
        self._session: Session | None = session
        self._tenant_id = tenant_id
        self._locked = False

    def tenant_day(self) -> Spent:
        """Return what the tenant spent today (UTC), all sessions together."""
        today = _day(time.time())
        return _sum(self._open(), _of(self._tenant_id).where(_Row.day == today))

    def entities(self, hmacs: Collection[str]) -> dict[str, Spent]:
        """Return, per entity HMAC, what it cost over all sessions; every one asked for is there."""
        return entity_sums(self._open(), self._tenant_id, hmacs)

    def _open(self) -> Session:
        if self._session is None:
            raise RuntimeError("budgets are readable only while the plan runs")
        if not self._locked:
            lock_tenant(self._session, self._tenant_id)
            self._locked = True
        return self._session

    def close(self) -> None:
        """End the time in which budgets may be read."""
        self._session = None


class Ledger:
    """Reads the ledger; appends to the accounts that are not entities'."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def append(
        self,
        tenant_id: str,
        account: str,
        request_id: str,
        charges: Iterable[Charge],
        session_id: str | None = None,
    ) -> None:
        """Charge an account in a transaction of its own.

        Raises:
            UnknownTenant: There is no such tenant.
        """
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            ref = None if session_id is None else key.blind("session", session_id).hex()
            add_charges(session, tenant_id, ref, account, request_id, charges)

    def append_records(
        self, tenant_id: str, account: str, request_id: str, records: Iterable[tuple[str, Charge]]
    ) -> None:
        """Charge an account for records, given as text and charge; the text is not stored.

        Raises:
            UnknownTenant: There is no such tenant.
        """
        with self._db.write() as session:
            charges = marked(self._db.tenants.get(session, tenant_id), account, records)
            add_charges(session, tenant_id, None, account, request_id, charges)

    def rows(
        self,
        tenant_id: str,
        session_id: str | None = None,
        *,
        accounts: Collection[str] = (),
        after: int = 0,
        limit: int = 10_000,
    ) -> list[LedgerRow]:
        """Return rows in the order charged, from the one after id ``after``.

        ``accounts`` restricts them; empty means all.
        """
        query = select(*_COLUMNS).where(_Row.tenant_id == tenant_id, _Row.id > after)
        if accounts:
            query = query.where(_Row.account.in_(accounts))
        with self._db.read() as session:
            if session_id is not None:
                ref = self._db.tenants.get(session, tenant_id).blind("session", session_id).hex()
                query = query.where(_Row.session_ref == ref)
            found = session.execute(query.order_by(_Row.id).limit(limit))
            return [LedgerRow(*tuple(row)) for row in found]

    def session_total(self, tenant_id: str, session_id: str, account: str = ENTITY) -> Spent:
        """Return the sum for a session id, sessions forgotten under the same id included."""
        with self._db.read() as session:
            ref = self._db.tenants.get(session, tenant_id).blind("session", session_id).hex()
            return session_sum(session, tenant_id, ref, account)

    def tenant_day(self, tenant_id: str, day: date | None = None, account: str = ENTITY) -> Spent:
        """Return the tenant's sum of one UTC day, today by default."""
        number = _day(time.time()) if day is None else (day - date(1970, 1, 1)).days
        with self._db.read() as session:
            return _sum(session, _of(tenant_id, account).where(_Row.day == number))

    def days(self, tenant_id: str, last: int = 30, account: str = ENTITY) -> dict[date, Spent]:
        """Return the sums of the last days that have charges, by UTC date, oldest first."""
        query = (
            _of(tenant_id, account)
            .add_columns(_Row.day)
            .where(_Row.day > _day(time.time()) - last)
            .group_by(_Row.day)
            .order_by(_Row.day)
        )
        with self._db.read() as session:
            found = session.execute(query).all()
        return {date(1970, 1, 1) + timedelta(days=row[3]): Spent(*row[:3]) for row in found}

    def entities(self, tenant_id: str, limit: int = 100) -> list[EntitySpent]:
        """Return the entities that cost most ε over all sessions of the tenant, dearest first."""
        cost = func.sum(_Row.epsilon)
        query = (
            _of(tenant_id)
            .add_columns(
                _Row.entity_hmac, func.min(_Row.fine_type), func.count(_Row.session_ref.distinct())
            )
            .group_by(_Row.entity_hmac)
            .order_by(cost.desc(), _Row.entity_hmac)
            .limit(limit)
        )
        with self._db.read() as session:
            found = session.execute(query).all()
        return [EntitySpent(row[3], row[4], Spent(*row[:3]), row[5]) for row in found]

    def entity_totals(self, tenant_id: str, hmacs: Collection[str]) -> dict[str, Spent]:
        """Return the sums of the given entities over all sessions; zeros for unknown ones."""
        with self._db.read() as session:
            return entity_sums(session, tenant_id, hmacs)


def marked(key: DataKey, account: str, records: Iterable[tuple[str, Charge]]) -> Iterator[Charge]:
    """Yield the charge of each record with a keyed hash of its text as its mark."""
    for text, charge in records:
        yield replace(charge, entity_hmac=key.blind(f"{account}-record", text).hex())


def add_charges(
    session: Session,
    tenant_id: str,
    session_ref: str | None,
    account: str,
    request_id: str,
    charges: Iterable[Charge],
) -> Spent:
    """Insert one row per charge inside the caller's transaction; returns the entity account's sum.

    An infinite ε ("no finite bound") is a valid charge.
    """
    now = time.time()
    values: list[dict[str, Any]] = []
    for charge in charges:
        values.append(
            {
                "tenant_id": tenant_id,
                "session_ref": session_ref,
                "request_id": request_id[:128],
                "account": DAYS if charge.metric == DAYS else account,
                "fine_type": charge.fine_type,
                "mechanism": charge.mechanism,
                "metric": charge.metric,
                "epsilon": float(charge.epsilon),
                "delta": float(charge.delta),
                "entity_hmac": charge.entity_hmac,
                "day": _day(now),
                "created_at": now,
            }
        )
    if values:
        session.execute(insert(LedgerEntryRow), values)
    billed = [value for value in values if value["account"] == ENTITY]
    return Spent(
        math.fsum(value["epsilon"] for value in billed),
        math.fsum(value["delta"] for value in billed),
        len(billed),
    )


def session_sum(session: Session, tenant_id: str, ref: str, account: str = ENTITY) -> Spent:
    """Return the sum of a session's rows."""
    return _sum(session, _of(tenant_id, account).where(_Row.session_ref == ref))


def entity_sums(session: Session, tenant_id: str, hmacs: Collection[str]) -> dict[str, Spent]:
    """Return the sum per entity HMAC, zeros where there is none."""
    wanted = sorted(set(hmacs))
    sums = dict.fromkeys(wanted, Spent())
    for start in range(0, len(wanted), _IN_LIMIT):
        query = (
            _of(tenant_id)
            .add_columns(_Row.entity_hmac)
            .where(_Row.entity_hmac.in_(wanted[start : start + _IN_LIMIT]))
            .group_by(_Row.entity_hmac)
        )
        sums.update({row[3]: Spent(*row[:3]) for row in session.execute(query)})
    return sums


def utc(seconds: float) -> datetime:
    """Return a stored time as an aware datetime."""
    return datetime.fromtimestamp(seconds, UTC)


def _day(seconds: float) -> int:
    return int(seconds // _DAY_SECONDS)


def _of(tenant_id: str, account: str = ENTITY) -> Select[*tuple[Any, ...]]:
    return select(
        func.coalesce(func.sum(_Row.epsilon), 0.0),
        func.coalesce(func.sum(_Row.delta), 0.0),
        func.count(),
    ).where(_Row.tenant_id == tenant_id, _Row.account == account)


def _sum(session: Session, query: Select[*tuple[Any, ...]]) -> Spent:
    return Spent(*session.execute(query).one())


_COLUMNS: Final = (
    _Row.id,
    _Row.tenant_id,
    _Row.session_ref,
    _Row.request_id,
    _Row.account,
    _Row.fine_type,
    _Row.mechanism,
    _Row.metric,
    _Row.epsilon,
    _Row.delta,
    _Row.entity_hmac,
    _Row.created_at,
)
