"""The everyday words that need support before they count as names."""

import pytest

from privacy.detection.common_words import is_common_word
from privacy.detection.wordlists import family_names, given_names, read_words


@pytest.mark.parametrize(
    "word", ["may", "WILL", "Mark", "rose", "pump", "the", "Hope", "chase", "Penny"]
)
def test_everyday_words(word: str) -> None:
    assert is_common_word(word)


@pytest.mark.parametrize("word", ["Varga", "ilse", "Tadeo", "Brandt", "john", "Maria", "", "may i"])
def test_names_and_others_are_not(word: str) -> None:
    assert not is_common_word(word)


def test_the_lists_are_there_and_casefolded() -> None:
    assert {"ilse", "chris", "marta"} <= given_names()
    assert {"varga", "brandt", "lund"} <= family_names()
    for words in (given_names(), family_names(), read_words("common_words.txt.gz")):
        assert len(words) > 5_000
        assert all(word == word.casefold() for word in words)


def test_an_unknown_list_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        read_words("no_such_list.txt.gz")
