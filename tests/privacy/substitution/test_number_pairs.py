"""What is derived from a number must not be read out of other texts."""

import pytest

from privacy.restoration import Restorer
from privacy.substitution.number_pairs import number_pairs
from privacy.types import CREDIT_CARD


@pytest.mark.parametrize(
    "text", ["**2024-05-01**", "the fiscal year ending in 2024", "...2024", "*2024 in figures*"]
)
def test_a_year_is_no_end_of_a_card(text: str) -> None:
    pairs = number_pairs(CREDIT_CARD, "4000 1234 5678 2024", "4111 1111 1111 1111")
    assert Restorer(pairs).restore(text) == text


def test_a_card_that_ends_like_a_year_is_known_behind_its_mask() -> None:
    pairs = number_pairs(CREDIT_CARD, "4000 1234 5678 2024", "4111 1111 1111 1119")
    assert Restorer(pairs).restore("xxxx-xxxx-xxxx-2024, •••• 2024") == (
        "xxxx-xxxx-xxxx-1119, •••• 1119"
    )
