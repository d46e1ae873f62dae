"""The payload: round trips, canonical form, and everything that is refused."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from privacy.ppft.tasks import Task
from privacy.ppft.wire import Payload, WireError, pack, size_limit, unpack

D, K, MOST = 8, 4, 16


def payload(rows: int = 3, **changes: Any) -> Payload:
    values = np.random.default_rng(0).normal(size=(rows, D))
    unit = (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)
    given = {
        "rows": unit,
        "task": Task.TOPIC,
        "k": K,
        "max_tokens": 32,
        "temperature": 0.5,
        "stream": False,
        "timestamp": 1_700_000_000_000,
        "nonce": bytes(range(16)),
    }
    return Payload(**{**given, **changes})


def read(body: bytes) -> Payload:
    return unpack(body, dimensions=D, k=K, most_slots=MOST)


def refused(body: bytes) -> str:
    with pytest.raises(WireError) as caught:
        read(body)
    return caught.value.code


def altered(metadata: dict[str, str] | None = None, **tensors: Any) -> bytes:
    parts = load(pack(payload()))
    for name, value in tensors.items():
        if value is None:
            del parts[name]
        else:
            parts[name] = value
    return bytes(save({name: parts[name] for name in sorted(parts)}, metadata))


@pytest.mark.parametrize(("kind", "slack"), [("int8", 0.01), ("float16", 0.001)])
def test_what_is_packed_comes_out(kind: Any, slack: float) -> None:
    sent = payload(5, stream=True)
    got = read(pack(sent, kind))
    assert np.allclose(got.rows, sent.rows, atol=slack)
    assert np.allclose(np.linalg.norm(got.rows, axis=1), 1.0, atol=1e-6)
    for name in ("task", "k", "max_tokens", "temperature", "stream", "timestamp", "nonce"):
        assert getattr(got, name) == getattr(sent, name)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, MOST),
    st.sampled_from(list(Task)),
    st.integers(1, 1024),
    st.integers(0, 2**62),
    st.binary(min_size=16, max_size=16),
    st.booleans(),
)
def test_length_depends_on_the_number_of_rows_alone(
    m: int, task: Task, tokens: int, timestamp: int, nonce: bytes, stream: bool
) -> None:
    one = pack(payload(m, task=task, max_tokens=tokens, timestamp=timestamp, nonce=nonce))
    assert len(one) == len(pack(payload(m, stream=stream)))
    assert len(one) <= size_limit(D, MOST)
    assert read(one).timestamp == timestamp


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"What does Ilse Varga earn?",
        json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode(),
        b"\x20\x00\x00\x00\x00\x00\x00\x00" + b"not a header, but forty bytes of text...",
        b"\x02\x00\x00\x00\x00\x00\x00\x00[]",
    ],
)
def test_text_is_refused(body: bytes) -> None:
    assert refused(body) in ("not_tensors", "bad_field")


def test_there_is_no_place_for_words() -> None:
    assert refused(altered(metadata={"prompt": "Ilse Varga"})) == "bad_field"
    assert refused(altered(prompt=np.frombuffer(b"Ilse Varga", np.uint8))) == "bad_field"
    body = pack(payload())
    length = int.from_bytes(body[:8], "little")
    header, data = body[8 : 8 + length], body[8 + length :]
    # Blanks inside the header, another order, bytes after the tensors: all read, none canonical.
    spaced = header.replace(b'":', b'" :', 1).rstrip()
    spaced += b" " * (-len(spaced) % 8)
    assert refused(len(spaced).to_bytes(8, "little") + spaced + data) == "not_canonical"
    longer = header + b" " * 8
    assert refused(len(longer).to_bytes(8, "little") + longer + data) == "not_canonical"
    assert refused(body + b"Ilse Varga") in ("damaged_body", "not_canonical")
    parsed = json.loads(header)
    other = json.dumps(dict(reversed(parsed.items())), separators=(",", ":")).encode()
    other += b" " * (-len(other) % 8)
    assert refused(len(other).to_bytes(8, "little") + other + data) == "not_canonical"


def test_text_in_the_rows_does_not_pass_for_rows() -> None:
    words = np.frombuffer(b"the patient is called Ilse"[: 3 * D], np.int8).reshape(3, D)
    assert refused(altered(rows=words)) == "bad_rows"


def test_every_truncation_is_refused() -> None:
    body = pack(payload())
    for cut in range(len(body)):
        assert refused(body[:cut]) in ("damaged_body", "not_tensors")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"version": np.array([2], np.uint16)}, "wrong_version"),
        ({"version": np.array([1], np.uint8)}, "wrong_version"),
        ({"rows": np.full((3, D + 1), 127, np.int8)}, "wrong_dimension"),
        ({"rows": np.full((D,), 127, np.int8)}, "wrong_dimension"),
        ({"rows": np.full((MOST + 1, D), 127, np.int8)}, "too_many_slots"),
        ({"rows": np.zeros((0, D), np.int8)}, "too_many_slots"),
        ({"rows": np.full((3, D), np.nan, np.float16)}, "not_finite"),
        ({"rows": np.full((3, D), np.inf, np.float16)}, "not_finite"),
        ({"rows": np.full((3, D), 1.0, np.float16)}, "bad_rows"),
        ({"rows": np.zeros((3, D), np.int8)}, "bad_rows"),
        ({"rows": np.ones((3, D), np.float32)}, "bad_rows"),
        ({"task": np.array([99], np.uint8)}, "unknown_task"),
        ({"task": np.array([1, 2], np.uint8)}, "bad_field"),
        ({"task": np.array([1], np.int64)}, "bad_field"),
        ({"k": np.array([5], np.uint8)}, "wrong_window"),
        ({"max_tokens": np.array([0], np.uint16)}, "bad_max_tokens"),
        ({"max_tokens": np.array([5000], np.uint16)}, "bad_max_tokens"),
        ({"temperature": np.array([np.nan], np.float32)}, "bad_temperature"),
        ({"temperature": np.array([-1], np.float32)}, "bad_temperature"),
        ({"stream": np.array([7], np.uint8)}, "bad_stream"),
        ({"nonce": np.zeros(15, np.uint8)}, "bad_field"),
        ({"nonce": None}, "bad_field"),
    ],
)
def test_bad_fields_are_told_apart(changes: dict[str, Any], code: str) -> None:
    assert refused(altered(**changes)) == code


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_bytes_never_raise_anything_else(data: st.DataObject) -> None:
    body = bytearray(pack(payload()))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        read(bytes(body))
    except WireError:
        return
