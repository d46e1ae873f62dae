"""Names inside other words, escapes and scripts: replaced where they stand, and restored at once."""

import random
from pathlib import Path

import pytest
import yaml
from e2e_gateway import BALANCED, Gateway, found_in, running_gateway
from e2e_upstream import send_message

ENTITIES = yaml.safe_load(BALANCED.read_text())["entities"]

_INTRODUCTION = "My colleague Ilse Varga works here."
# (text, what may not leave)
_SPELLINGS = {
    "file": ("Please open ilse_varga.pdf and contract_varga_final.", ["ilse", "varga"]),
    "escaped line break": (r'log: "Dear team,\nVarga has left\tIlse"', ["Varga", "Ilse"]),
    "one word": ("See #IlseVarga and @vargailse.", ["IlseVarga", "vargailse"]),
    "percent": ("q=Ilse%20Varga&r=ilse%20varga", ["Ilse", "Varga", "ilse", "varga"]),
    "genitive": ("Vargas Vertrag liegt bei, the Vargas agree.", ["Vargas"]),
    "humps": (
        "getVargaContract(), IlseFile and dearIlse",
        ["getVargaContract", "IlseFile", "dearIlse"],
    ),
    "two in one file": ("see varga-x_ilse-varga.pdf", ["varga", "ilse"]),
    "Japanese": ("私はVargaです。", ["私はVargaです"]),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", _SPELLINGS)
def test_known_names_in_other_surroundings(gateway: Gateway, case: str, stream: bool) -> None:
    text, hidden = _SPELLINGS[case]
    session = f"spelling-{case.replace(' ', '-')}-{stream}"
    for turn in (_INTRODUCTION, text, text):
        assert gateway.ask(turn, session, stream) == f"You wrote: {turn} Thank you."
    sent = gateway.upstream.bodies[-1]["messages"][-1]["content"]
    assert (
        found_in(sent.replace("\\n", "  ").replace("\\t", "  ").replace("%20", " "), hidden) == []
    )


def test_escapes_are_no_part_of_a_name(gateway: Gateway) -> None:
    """The name after an escaped line break is the same name."""
    gateway.ask(r"Ilse Varga left. line\nIlse Varga\nend", "spelling-escape")
    sent = gateway.upstream.bodies[-1]["messages"][-1]["content"]
    first, _, second = sent.partition(" left. line\\n")
    assert second == f"{first}\\nend"


@pytest.mark.parametrize(
    "text",
    [
        "Write to otto.brenn77@example.com; the login is otto.brenn77 there.",
        "Call +1 (312) 867-4309, or 312/867/4309.",
    ],
)
def test_what_the_sweep_finds_first_is_restored_at_once(gateway: Gateway, text: str) -> None:
    """A spelling that no detector reported is drawn by the sweep, after all others."""
    session = f"spelling-first-{len(text)}"
    assert gateway.ask(text, session) == f"You wrote: {text} Thank you."
    sent = gateway.upstream.requests[-1].decode()
    assert found_in(sent, ["otto.brenn77", "312/867"]) == []


_ESCAPED = {
    "JSON": (
        r'data: {"name": "Zo\u00eb Kr\u00fcger", "city": "Z\u00fcrich"}',
        [r"Zo\u", r"Kr\u", r"Z\u"],
    ),
    "HTML": ("<td>Herr J&ouml;rg M&uuml;ller</td>", ["J&ouml;", "M&uuml;"]),
    "URL": ("https://crm.example.de/contact/J%C3%B6rg-M%C3%BCller", ["J%C3", "M%C3"]),
    "quoted-printable": ("From: =?utf-8?Q?J=C3=B6rg_M=C3=BCller?=", ["J=C3", "M=C3"]),
    "Python": (r"name = 'Andr\xe9 Lef\xe8vre'", [r"Andr\x", r"Lef\x"]),
}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("case", _ESCAPED)
def test_names_spelt_in_escapes(gateway: Gateway, case: str, known: bool) -> None:
    text, hidden = _ESCAPED[case]
    session = f"escaped-{case}-{known}"
    if known:
        gateway.ask("Zoë Krüger, Jörg Müller and André Lefèvre live in Zürich.", session)
    assert gateway.ask(text, session) == f"You wrote: {text} Thank you."
    sent = gateway.upstream.bodies[-1]["messages"][-1]["content"]
    assert [word for word in hidden if word in sent] == []


def test_escapes_of_other_characters_are_left_alone(gateway: Gateway) -> None:
    text = r"C:\users\temp &amp; R&D; 100%25 a=C3 &copy; \u2014 \x00"
    gateway.ask(text, "escaped-none")
    assert gateway.upstream.bodies[-1]["messages"][-1]["content"] == text


def test_a_name_joined_by_the_provider_is_restored(scripted: Gateway) -> None:
    scripted.ask(_INTRODUCTION, "spelling-joined")
    words = scripted.upstream.bodies[-1]["messages"][-1]["content"].split()
    name = f"{words[2]}{words[3]}"
    answer = f"#{name} @{name.lower()} ?q={words[2]}%20{words[3]} {name}s"
    scripted.upstream.script = lambda handler, body: send_message(
        handler, body, {"content": answer}
    )
    for stream in (False, True):
        restored = scripted.ask("And?", "spelling-joined", stream)
        assert restored == f"#IlseVarga @ilsevarga ?q=Ilse%20Varga {name}s"


_WHOLE = ("placeholder", "hash", "redact", "mask")


@pytest.mark.parametrize("action", _WHOLE)
def test_parts_of_a_name_replaced_as_a_whole_are_known(
    tmp_path: Path, gateway: Gateway, action: str
) -> None:
    """What replaces a whole name leaves no part of it, and the sweep finds its parts, too."""
    people = {**ENTITIES, "PERSON": {"action": action}}
    with running_gateway(
        tmp_path, detector=gateway.services.detector, policy={"entities": people}
    ) as other:
        for text in ("Varga, Ilse and Tadeo Brandt met.", "so tadeo said no, ilse too"):
            other.ask(text, "parts")
        sent = other.upstream.bodies[-2:]
        found = found_in(str(sent), ["Varga", "Ilse", "arga", "Tadeo", "tadeo", "ilse", "andt"])
    assert found == []


_PEOPLE = (
    ("Tadeo", "Brandt"), ("Niamh", "Gallagher"), ("Zoë", "Krüger"), ("Lucía", "de la Fuente"),
    ("Sean", "O'Malley"), ("Jean-Luc", "Moreau-Petit"),
)  # fmt: skip
_FORMS = (
    "{0} {1}", "{1}, {0}", "{2}. {1}", "{1}", "{0}", "{0}_{1}.pdf", "{1}'s", r"\n{0} {1}\n", "q={0}%20{1}",
    "**{0}** *{1}*", "<b>{0}</b>&nbsp;{1}", "{0}\n{1}", "[{0}]({1})", '"{0}\\"{1}"', "{0}\u200b {1}", "{1}s",
    "Mr. {1}", "x_{1}_y", "{0}/{1}", "{0}-{1}", "@{0}.{1}", "{1} K.", "get{0}File()",
)  # fmt: skip
_BETWEEN = (" said ", " met ", "; ", "\n", "\n\n- ", " → ", "、", "的", "🎉", "|", ", ")


@pytest.mark.parametrize("seed", range(12))
def test_any_mixture_of_spellings_is_hidden_and_restored(gateway: Gateway, seed: int) -> None:
    rng = random.Random(seed)

    def spelling() -> str:
        given, family = rng.choice(_PEOPLE)
        written = rng.choice(_FORMS).format(given, family, given[0])
        return rng.choice((written, written, written.upper(), written.lower()))

    team = "The team: " + ", ".join(" ".join(person) for person in _PEOPLE)
    messages = [{"role": "user", "content": team}]
    for turn in range(4):
        answer = gateway.ask(messages, f"mixture-{seed}", bool(turn % 2))
        assert answer == f"You wrote: {messages[-1]['content']} Thank you."
        sent = gateway.upstream.bodies[-1]["messages"][-1]["content"]
        families = ("Brandt", "Gallagher", "Krüger", "Fuente", "Malley", "Moreau")
        assert found_in(sent, families) == []
        text = "".join(spelling() + rng.choice(_BETWEEN) for _ in range(6))
        messages += [
            {"role": "assistant", "content": answer},
            {"role": "user", "content": text.strip()},
        ]


OTHER_SIGNS = {
    "card in points": ("Card: 4111.1111.1111.1111 ok", "4111.1111"),
    "card in underscores": ("4111_1111_1111_1111", "4111_1111"),
    "card in no-break blanks": ("card 4111\u00a01111\u00a01111\u00a01111", "4111\u00a01111"),
    "card in full width": (
        "card \uff14\uff11\uff11\uff11 \uff11\uff11\uff11\uff11 \uff11\uff11\uff11\uff11 \uff11\uff11\uff11\uff11.",
        "\uff11\uff11\uff11\uff11",
    ),
    "telephone in no-break hyphens": ("tel (212) 555\u20110142", "555\u20110142"),
    "telephone with a whole prefix": ("ring 00 49 (0)30 / 123 456 78 today", "123 456"),
    "IBAN in dashes": ("IBAN DE89\u20133704\u20130044\u20130532\u20130130\u201300", "3704"),
    "telephone in Japanese": ("電話番号は090-1234-5678です。", "090-1234"),
    "card in Chinese": ("卡号4111111111111111。", "41111111"),
    "address of a host in Chinese": ("ip是192.168.1.20吗", "192.168.1.20"),
    "date in Chinese": ("她1984年3月12日出生。", "3月12"),
    "date in Korean": ("김민수는 1984년 3월 12일에", "3월 12"),
    "date in Hungarian": ("született 1984. március 12.", "március 12"),
    "date in Polish": ("dnia 12 marca 1984 r.", "12 marca"),
    "date in Turkish": ("12 Mart 1984 doğumlu", "12 Mart"),
    "date in Russian": ("родилась 12 марта 1984 года", "12 марта"),
    "date in Dutch": ("op 12 maart 1984", "12 maart"),
    "date in Czech": ("narozena 12. března 1984", "12. března"),
    "date with hyphens": ("b. 12-Mar-84 and", "12-Mar-84"),
}


@pytest.mark.parametrize("case", OTHER_SIGNS)
def test_other_signs_and_scripts_hide_no_identifier(gateway: Gateway, case: str) -> None:
    text, gone = OTHER_SIGNS[case]
    assert gateway.ask(text, f"signs-{len(case)}-{case[-4:]}") == f"You wrote: {text} Thank you."
    assert gone not in gateway.upstream.bodies[-1]["messages"][-1]["content"]
