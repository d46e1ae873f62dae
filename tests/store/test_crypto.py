import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
from store_databases import MASTER
from store_workload import draw

from store.crypto import DataKey, Keyring, generate_master_key, key_id, place, read_key_file
from store.database import Database
from store.errors import MasterKeyError, SealBroken
from store.sessions import SessionStore
from store.tenants import TenantStore

OTHER = bytes(range(1, 33))


def test_a_sealed_value_opens_only_in_its_own_place() -> None:
    key = DataKey.generate()
    blob = key.seal(b"Varga", "acme", "files", "file-1")
    assert key.open(blob, "acme", "files", "file-1") == b"Varga"
    assert len(blob) == 5 + 29
    for where in [
        ("other", "files", "file-1"),
        ("acme", "chunks", "file-1"),
        ("acme", "files", "file-2"),
        ("acme", "files", "file-1", "x"),
        ("acmef", "iles", "file-1"),
    ]:
        with pytest.raises(SealBroken):
            key.open(blob, *where)
    with pytest.raises(SealBroken):
        DataKey.generate().open(blob, "acme", "files", "file-1")


def test_every_damaged_byte_is_noticed_and_not_quoted() -> None:
    key = DataKey.generate()
    blob = key.seal(b"Varga", "t", "files", "r")
    for position in range(len(blob)):
        broken = bytearray(blob)
        broken[position] ^= 1
        with pytest.raises(SealBroken) as caught:
            key.open(bytes(broken), "t", "files", "r")
        assert "Varga" not in str(caught.value)
    for cut in (0, 1, 12, len(blob) - 1):
        with pytest.raises(SealBroken):
            key.open(blob[:cut], "t", "files", "r")


def test_equal_values_seal_differently_and_index_equally() -> None:
    key = DataKey.generate()
    assert key.seal(b"x", "t", "a", "r") != key.seal(b"x", "t", "a", "r")
    assert key.blind("name", "x") == key.blind("name", "x")
    assert key.blind("name", "x") != key.blind("name2", "x")
    assert key.blind("name", "x") != DataKey.generate().blind("name", "x")


def test_places_are_unambiguous_and_take_any_text() -> None:
    assert place("ab", "c") != place("a", "bc")
    assert place("a", "") != place("a")
    assert place("\ud800") != place("\ud801")


def test_printing_keys_shows_nothing() -> None:
    shown = repr(DataKey(MASTER)) + repr(Keyring(MASTER))
    assert MASTER.hex() not in shown and base64.b64encode(MASTER).decode() not in shown
    assert key_id(MASTER) in shown


def test_a_key_file_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "master.key"
    first = Keyring.load(None, path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Keyring.load("", path).current_id == first.current_id
    assert [p.name for p in path.parent.iterdir()] == ["master.key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "master.key"
    read_key_file(path)
    path.chmod(mode)
    with pytest.raises(MasterKeyError, match="chmod 600"):
        Keyring.load(None, path)


def test_processes_that_start_together_agree_on_the_key(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from store.crypto import Keyring;"
        "sys.stdin.readline(); print(Keyring.load(None, Path(sys.argv[1])).current_id)"
    )
    root = str(Path(__file__).parents[2])
    starting = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "master.key")],
            env={**os.environ, "PYTHONPATH": root},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in starting:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ids = {process.communicate(timeout=30)[0] for process in starting}
    assert len(ids) == 1 and ids.pop().startswith("mk_")


@pytest.mark.parametrize(
    "text", ["short", "!" * 44, base64.b64encode(b"x" * 31).decode(), "é" * 44]
)
def test_a_malformed_key_is_refused_and_not_quoted(tmp_path: Path, text: str) -> None:
    with pytest.raises(MasterKeyError) as caught:
        Keyring.load(text, tmp_path / "unused")
    assert text not in str(caught.value)
    (tmp_path / "bad.key").write_text(text)
    (tmp_path / "bad.key").chmod(0o600)
    with pytest.raises(MasterKeyError):
        Keyring.load(None, tmp_path / "bad.key")


def test_both_alphabets_of_base64_and_missing_padding_are_taken(tmp_path: Path) -> None:
    raw = b"\xfb\xef" * 16
    forms = [base64.b64encode(raw), base64.urlsafe_b64encode(raw), base64.b64encode(raw)[:-1]]
    ids = {Keyring.load(form.decode() + "\n", tmp_path / "unused").current_id for form in forms}
    assert ids == {key_id(raw)}


def test_an_absent_key_file_is_not_made_when_it_may_not_be(tmp_path: Path) -> None:
    with pytest.raises(MasterKeyError, match="no master key file"):
        Keyring.load(None, tmp_path / "none", create=False)
    with pytest.raises(MasterKeyError):
        Keyring.load(None, tmp_path)  # a folder


def test_the_wrong_master_key_is_a_clear_error(db: Database, url: str) -> None:
    wrong = Database(url, Keyring(OTHER))
    with pytest.raises(MasterKeyError) as caught:
        wrong.upgrade()
    assert key_id(MASTER) in str(caught.value) and key_id(OTHER) in str(caught.value)
    with pytest.raises(MasterKeyError):
        SessionStore(wrong).open("acme", "s", "p1")
    wrong.close()


def test_the_master_key_rotates_while_others_work(db: Database, url: str) -> None:
    serving = SessionStore(db)
    serving.open("acme", "s", "p1")
    before = serving.apply("acme", "s", "r", draw("Varga"))

    both = Database(url, Keyring(OTHER, previous=[MASTER]))
    both.upgrade()
    assert TenantStore(both).rotate_master_key() == 2
    assert TenantStore(both).rotate_master_key() == 0
    assert {tenant.master_key_id for tenant in TenantStore(both).list()} == {key_id(OTHER)}
    both.close()

    # The process that started under the old key goes on: data keys have not changed.
    assert len(serving.apply("acme", "s", "r", draw("Brandt")).entries) == 2
    new = Database(url, Keyring(OTHER))
    new.upgrade()
    found = SessionStore(new).get("acme", "s")
    assert found is not None and found.entries[0] == before.entries[0]
    new.close()
    old = Database(url, Keyring(MASTER))
    with pytest.raises(MasterKeyError):
        old.upgrade()
    old.close()


def test_a_rotation_that_cannot_finish_changes_nothing(db: Database, url: str) -> None:
    third = Database(url, Keyring(OTHER, previous=[b"3" * 32]))
    with pytest.raises(MasterKeyError):
        TenantStore(third).rotate_master_key()
    third.close()
    assert {tenant.master_key_id for tenant in TenantStore(db).list()} == {key_id(MASTER)}


def test_generated_keys_are_fresh(tmp_path: Path) -> None:
    one, two = generate_master_key(), generate_master_key()
    assert one != two and len(base64.b64decode(one)) == 32
