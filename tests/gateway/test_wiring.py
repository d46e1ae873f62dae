"""What runs beside the requests: expiry of sessions, rotation of the master key, separate pools."""

import base64
import os
import time
from pathlib import Path
from typing import Any

import pytest
from documents_app import open_services
from typer.testing import CliRunner

from gateway.cli.main import app
from gateway.errors import ApiError
from gateway.housekeeping import keep_house
from gateway.retrieve import Retriever
from policies.model import Retrieval
from store.crypto import Keyring, key_id
from store.database import Database
from store.sessions import SessionStore
from store.tenants import TenantStore


async def test_sessions_out_of_use_are_forgotten_without_a_request(tmp_path: Path) -> None:
    import asyncio

    with open_services(tmp_path, housekeeping_minutes=0.0005) as services:
        services.sessions = SessionStore(services.db, ttl=0.05)
        services.tenants.create("acme")
        services.sessions.open("acme", "old", "balanced")
        house = asyncio.ensure_future(keep_house(services))
        for _ in range(200):
            await asyncio.sleep(0.02)
            if not services.sessions.list("acme"):
                break
        assert services.sessions.list("acme") == []
        assert not house.done()
        house.cancel()


def test_the_master_key_is_rotated_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = os.urandom(32), os.urandom(32)
    url = f"sqlite:///{tmp_path}/penname.db"
    db = Database(url, Keyring(old))
    db.upgrade()
    TenantStore(db).create("acme")
    SessionStore(db).open("acme", "s", "balanced")
    db.close()
    monkeypatch.setenv("PENNAME_MASTER_KEY", base64.b64encode(new).decode())
    monkeypatch.setenv("PENNAME_PREVIOUS_MASTER_KEYS", base64.b64encode(old).decode())
    done = CliRunner().invoke(app, ["keys", "rotate-master", "--data-dir", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert f"1 tenants under {key_id(new)}" in " ".join(done.output.split())
    db = Database(url, Keyring(new))
    db.upgrade()
    assert SessionStore(db).get("acme", "s").session_id == "s"
    db.close()


def test_an_expired_vector_store_is_not_searched_for_a_chat(tmp_path: Path) -> None:
    with open_services(tmp_path) as services:
        services.tenants.create("acme")
        rule: Any = {"expires_after": {"anchor": "last_active_at", "days": 1}}
        live = services.documents.create("acme", "live", settings=rule)
        gone = services.documents.create("acme", "gone", settings={"expires_after": {"days": -1}})
        retriever = Retriever(services, Retrieval())
        body = {"messages": [{"role": "user", "content": "Who signed?"}]}
        ask = lambda *ids: retriever.ask(  # noqa: E731
            "acme", {**body, "penname": {"vector_store_ids": list(ids)}}
        )
        assert ask(live.id) is None
        with pytest.raises(ApiError, match="expired") as caught:
            ask(live.id, gone.id)
        assert caught.value.status == 400
        with pytest.raises(ApiError, match="does not exist") as caught:
            ask(live.id, "vs_none")
        assert caught.value.status == 404 and "of this request" in caught.value.message
        own = Retriever(services, Retrieval(vector_stores=("vs_none",)))
        with pytest.raises(ApiError, match="configuration or policy names") as caught:
            own.ask("acme", body)
        assert caught.value.status == 404 and caught.value.param is None


def test_ingestion_does_not_hold_up_the_request_threads(tmp_path: Path) -> None:
    with open_services(tmp_path) as services:
        for _ in range(8):
            services.ingestion.submit(time.sleep, 0.2)
        started = services.workers.submit(time.monotonic)
        assert started.result(timeout=5) > 0
        assert services.ingestion._work_queue.qsize() > 0
