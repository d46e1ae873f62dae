"""Where a substitute stands as a word of its own."""

import pytest

from privacy.restoration import Pair, Restorer, stands_alone
from privacy.restoration.borders import right_border

PAIRS = [Pair("Ilse", "Marta", "given"), Pair("Varga", "Novak", "family")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ilse", "Marta"),
        ("Ilsebill and Gilse", "Ilsebill and Gilse"),
        ("Ilse2 2Ilse", "Ilse2 2Ilse"),
        (
            "**Ilse** *Ilse* _Ilse_ __Ilse__ ___Ilse___",
            "**Marta** *Marta* _Marta_ __Marta__ ___Marta___",
        ),
        ("foo_Ilse_bar foo_Ilse Ilse_bar", "foo_Ilse_bar foo_Ilse Ilse_bar"),
        ("_Ilse Varga_", "_Marta Novak_"),
        ("Ilse____________", "Marta____________"),
        ("Ilse's Ilse’s Ilse'", "Marta's Marta’s Marta'"),
        ("Ilse-Varga", "Marta-Novak"),
        ("ilse.varga@corp.test", "marta.novak@corp.test"),
        ("是Ilse吗", "是Marta吗"),
        ("Ilse는 왔다", "Marta는 왔다"),
        ("❤️Ilse🙂", "❤️Marta🙂"),
        ("Varga² said", "Novak² said"),
        ("Ilse\u0301", "Ilse\u0301"),
        ("e\u0301Ilse", "e\u0301Ilse"),
        ("\u200fIlse\u200f (עם Varga)", "\u200fMarta\u200f (עם Novak)"),
        ("«Ilse», “Varga”; (Ilse)", "«Marta», “Novak”; (Marta)"),
    ],
)
def test_borders(text: str, expected: str) -> None:
    assert Restorer(PAIRS).restore(text) == expected


def test_stands_alone_agrees_with_restoration() -> None:
    text = "xIlse Ilse Ilse_ Ilse_x Ilsé"
    alone = [
        at
        for at in range(len(text))
        if text.startswith("Ilse", at) and stands_alone(text, at, at + 4)
    ]
    assert alone == [6, 11]


def test_the_right_border_is_open_at_the_end_of_a_chunk() -> None:
    assert right_border("Ilse", 4, False) is None
    assert right_border("Ilse__", 4, False) is None
    assert right_border("Ilse__", 4, True) is True
    assert right_border("Ilse____", 4, False) is True
    assert right_border("Ilse__x", 4, False) is False
