"""The cache keeps its bounds and never mixes texts up."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from privacy.detection.cache import SpanCache
from privacy.types import PERSON, Span


def spans(count: int) -> tuple[Span, ...]:
    return tuple(Span(i, i + 1, PERSON, 0.9, "t") for i in range(count))


def test_keys_differ_by_content_and_survive_lone_surrogates() -> None:
    assert SpanCache.key("a") != SpanCache.key("b")
    assert SpanCache.key("a\ud800") == SpanCache.key("a\ud800")


def test_the_oldest_result_goes_first() -> None:
    cache = SpanCache(2, 10_000)
    for name in (b"a", b"b"):
        cache.put(name, spans(1))
    assert cache.get(b"a") is not None
    cache.put(b"c", spans(1))
    assert (cache.get(b"b"), len(cache)) == (None, 2)


def test_bytes_are_bounded_and_counted_down_again() -> None:
    cache = SpanCache(1000, 5_000)
    for index in range(200):
        cache.put(bytes([index]), spans(3))
        assert cache.used_bytes <= 5_000
    assert 0 < len(cache) < 200
    cache.put(b"huge", spans(1000))
    assert cache.get(b"huge") is None
    cache.clear()
    assert (len(cache), cache.used_bytes) == (0, 0)


def test_replacing_a_result_counts_it_once() -> None:
    cache = SpanCache(10, 10_000)
    cache.put(b"a", spans(3))
    used = cache.used_bytes
    cache.put(b"a", spans(3))
    assert cache.used_bytes == used


def test_zero_entries_turn_the_cache_off() -> None:
    cache = SpanCache(0, 10_000)
    cache.put(b"a", spans(1))
    assert cache.get(b"a") is None


@pytest.mark.parametrize(("entries", "size"), [(-1, 1), (1, -1)])
def test_negative_bounds_are_refused(entries: int, size: int) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        SpanCache(entries, size)


def test_many_threads_leave_a_consistent_cache() -> None:
    cache = SpanCache(50, 100_000)

    def work(seed: int) -> None:
        for step in range(300):
            key = bytes([(seed * 7 + step) % 97])
            cache.put(key, spans(step % 5))
            cache.get(key)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(cache) <= 50
    assert cache.used_bytes <= 100_000
