"""`penname keys`: ids are whole, the state of a key is seen, nothing is made by looking."""

from pathlib import Path

import orjson

from gateway.bootstrap import open_database
from gateway.settings import Settings
from store.keys import KeyStore
from store.tenants import TenantStore


def test_looking_makes_no_data_folder(penname, tmp_path: Path) -> None:
    for command in (["list"], ["revoke", "key_1"], ["rotate-master"]):
        code, _, err = penname("keys", *command, "--data-dir", "nowhere")
        assert code == 2
        assert "There is no database" in err
        assert not (tmp_path / "nowhere").exists()


def test_states_of_keys(penname, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("PENNAME_DATA_DIR", "data")
    code, out, err = penname("keys", "create", "--name", "first")
    assert (code, out[:3]) == (0, "pn-")
    assert str(tmp_path / "data") in err
    penname("keys", "create", "--name", "second", "--expires-days", "3")
    db = open_database(Settings())
    record = KeyStore(db).list()[1]
    db.close()
    assert penname("keys", "revoke", record.id[:10])[0] == 0
    db = open_database(Settings())
    TenantStore(db).ensure("default")
    short = KeyStore(db).create("client", "default", "third", expires_at=record.expires_at)[1]
    monkeypatch.setattr("gateway.cli.keys.time.time", lambda: (record.expires_at or 0) + 1)
    db.close()
    _, out, _ = penname("keys", "list")
    lines = {
        name: line
        for line in out.splitlines()
        for name in ("first", "second", "third")
        if name in line
    }
    assert "active" in lines["first"]
    assert "revoked" in lines["second"] and record.id in lines["second"]
    assert "expired" in lines["third"] and short.id in lines["third"]
    rows = orjson.loads(penname("keys", "list", "--json")[1])
    assert [row["status"] for row in rows] == ["active", "revoked", "expired"]


def test_an_ambiguous_beginning_revokes_nothing(penname) -> None:
    for _ in range(2):
        penname("keys", "create", "--data-dir", "d")
    code, _, err = penname("keys", "revoke", "key_", "--data-dir", "d")
    assert code == 2 and "2 keys have ids that begin with key_" in err
    rows = orjson.loads(penname("keys", "list", "--json", "--data-dir", "d")[1])
    assert {row["status"] for row in rows} == {"active"}


def test_nothing_to_rotate(penname) -> None:
    penname("keys", "create", "--data-dir", "d")
    code, out, _ = penname("keys", "rotate-master", "--data-dir", "d")
    assert code == 0 and "nothing to rotate" in out


def test_every_command_finds_the_database_of_the_configuration_file(
    penname, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("PENNAME_DATABASE_URL", f"sqlite:///{tmp_path / 'other.db'}")
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    (tmp_path / "penname.yaml").write_text(
        f"model_list:\n- {{model_name: m, litellm_params: {{model: openai/m}}}}\ndatabase_url: {url}\n"
    )
    monkeypatch.setenv("PENNAME_CONFIG", "penname.yaml")
    assert penname("keys", "create")[0] == 0
    assert (tmp_path / "shared.db").exists() and not (tmp_path / "other.db").exists()
    assert len(orjson.loads(penname("keys", "list", "--json")[1])) == 1
    monkeypatch.setenv("PENNAME_CONFIG", "none.yaml")
    code, _, err = penname("keys", "list")
    assert code == 2 and "none.yaml: cannot be read" in err
    monkeypatch.setenv("PENNAME_CONFIG", "")  # as good as not set
    assert penname("keys", "create")[0] == 0 and (tmp_path / "other.db").exists()
