"""Restoration of streams: what is held back, and for how long."""

import pytest

from privacy.restoration import Pair, Restorer

PAIRS = [
    Pair("Marta", "Ilse", "given"),
    Pair("Novák", "Varga", "family"),
    Pair("Marta Novák", "Ilse Varga", "mention"),
    Pair("Martano", "Quist", "family"),
    Pair("Mark Lee", "Ada", "mention"),
    Pair("Mark Leeson", "Bo", "mention"),
    Pair("qx7@example.com", "ada@corp.test", "exact"),
    Pair("[PERSON_1]", "Izzy", "placeholder"),
    Pair("Brandt Tools", "Nordic Salt", "whole"),
    Pair("odd \n\n gap", "Quist", "exact"),
]
TEXTS = [
    "Dear Marta Novák, hi",
    "Mark Leeson met Mark Lee",
    "Marta and Martano; MARTA NOVÁK",
    "Marta\n Novák and Brandt  Tools, Brandt\n\nTools.",
    "Martha wrote to QX7@EXAMPLE.COM. Nováks, Novakova!",
    "_Marta_ foo_Marta_bar Marta____",
    "Martha.txt Martha. Martha-x Marthaé Mart",
    "**PERSON\\_1** person_1 [person 1] [PERSON_12]",
    "是Marta吗 是Martha 是 Martha",
    "🚀Marta\u0301 Novák\u0301 Nova\u0301k",
    "Brandt\r\nTools Brandt\r\n\r\nTools Brandt \t Tools Brandt",
    "Marta" + " " * 300 + "Novák",
    "odd \n\n gap odd \n gap",
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_cut_and_every_character(text: str) -> None:
    restorer = Restorer(PAIRS)
    expected = restorer.restore(text)
    for cut in range(len(text) + 1):
        stream = restorer.stream()
        pieces = [stream.feed(text[:cut]), stream.feed(text[cut:]), stream.finish()]
        assert "".join(pieces) == expected
    stream = restorer.stream()
    assert "".join(map(stream.feed, text)) + stream.finish() == expected


def test_a_name_over_three_chunks() -> None:
    stream = Restorer(PAIRS).stream()
    assert stream.feed("Dear Mar") == "Dear "
    assert stream.feed("ta Nov") == ""
    assert stream.feed("ák, hi") == "Ilse Varga, hi"
    assert stream.finish() == ""


def test_chunks_without_a_possible_start_pass_at_once() -> None:
    stream = Restorer(PAIRS).stream()
    chunks = [f"the pump {number} was serviced on schedule. " for number in range(40)]
    assert [stream.feed(chunk) for chunk in chunks] == chunks
    assert stream.finish() == ""


def test_only_the_suffix_that_may_start_a_form_is_held() -> None:
    stream = Restorer(PAIRS).stream()
    assert stream.feed("ask Martin or m") == "ask Martin or "
    assert stream.feed("e") == "me"
    assert stream.feed(" and mart") == " and "
    # One character decides the border; the blank may go on to "Marta Novák".
    assert stream.feed("a") == ""
    assert stream.feed(".") == "ilse."


def test_a_complete_form_that_nothing_continues_needs_one_character() -> None:
    stream = Restorer([Pair("Ilse", "Marta", "given")]).stream()
    assert stream.feed("Ilse") == ""
    assert stream.feed(" ") == "Marta "
    assert stream.feed("Ilse") == ""
    assert stream.feed("bill") == "Ilsebill"


def test_a_misspelt_name_is_held_while_it_may_be_one() -> None:
    stream = Restorer(PAIRS).stream()
    assert stream.feed("Marth") == ""
    assert stream.feed("a ") == "Ilse "
    assert stream.feed("Marthax") == "Marthax"
    plain = Restorer(PAIRS, fuzzy=False).stream()
    assert plain.feed("Marth") == "Marth"


def test_what_is_held_comes_out_at_the_end() -> None:
    stream = Restorer(PAIRS).stream()
    assert stream.feed("to Mar") == "to "
    assert stream.finish() == "Mar"
    assert stream.finish() == ""
    with pytest.raises(RuntimeError, match="finished"):
        stream.feed("x")


def test_streams_of_one_restorer_do_not_mix() -> None:
    restorer = Restorer(PAIRS)
    first, second = restorer.stream(), restorer.stream()
    assert first.feed("Mar") + second.feed("Nov") == ""
    assert first.feed("ta!") == "Ilse!"
    assert second.feed("ák!") == "Varga!"


def test_arguments_of_a_tool_call_in_pieces() -> None:
    stream = Restorer(PAIRS).stream(json_escaped=True)
    pieces = ['{"to":"qx7@exa', 'mple.com","who":"Marta Nov\\u00', 'e1k"', "}"]
    out = [stream.feed(piece) for piece in pieces]
    assert out[0] == '{"to":"'
    assert "".join(out) + stream.finish() == '{"to":"ada@corp.test","who":"Ilse Varga"}'


def test_a_long_stream_holds_little() -> None:
    stream = Restorer(PAIRS).stream()
    fed = emitted = 0
    for number in range(2000):
        chunk = "Marta" if number % 7 == 0 else " M"
        fed += len(chunk)
        emitted += len(stream.feed(chunk))
        assert fed - emitted < 600
