"""What `penname serve` tells a first user."""

from pathlib import Path

from documents_app import open_services

from gateway.cli.serve import address, hints


def test_a_first_user_is_told_what_is_missing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with open_services(tmp_path) as services:
        told = "\n".join(hints(services))
        assert "no OPENAI_API_KEY: only the local model" in told
        assert "penname keys create" in told
        services.tenants.ensure("default")
        services.keys.create("client", "default")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
        assert hints(services) == []


def test_addresses() -> None:
    assert address("127.0.0.1", 80) == "http://127.0.0.1:80"
    assert address("::1", 80) == "http://[::1]:80"
