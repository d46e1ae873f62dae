"""`GET /v1/privacy/sessions`: a tenant's own, last used first, page by page."""

from pathlib import Path

import pytest
from documents_app import open_services
from fastapi import FastAPI
from starlette.testclient import TestClient

from gateway.api.privacy.routes import router
from gateway.errors import ApiError


def test_pages_of_sessions(tmp_path: Path) -> None:
    with open_services(tmp_path) as services:
        for tenant in ("acme", "other"):
            services.tenants.create(tenant)
        for name in ("one", "two", "three"):
            services.sessions.open("acme", name, "balanced")
        services.sessions.open("other", "theirs", "strict")
        app = FastAPI()
        app.state.services = services
        app.include_router(router)
        key = services.keys.create("client", "acme")[0]
        with TestClient(app, headers={"authorization": f"Bearer {key}"}) as http:
            first = http.get("/v1/privacy/sessions?limit=2").json()
            assert [row["id"] for row in first["data"]] == ["three", "two"]
            assert first["has_more"] is True
            assert set(first["data"][0]) == {"id", "object", "created_at", "last_used_at", "policy"}
            rest = http.get("/v1/privacy/sessions?limit=2&after=two").json()
            assert ([row["id"] for row in rest["data"]], rest["has_more"]) == (["one"], False)
            with pytest.raises(ApiError) as caught:
                http.get("/v1/privacy/sessions?after=theirs")
            assert caught.value.status == 404
