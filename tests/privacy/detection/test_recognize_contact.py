"""E-mail, telephone, URL, host, user name and network address recognizers, by table."""

import pytest

from privacy.detection.base import Recognizer
from privacy.detection.recognizers.email import EmailRecognizer, SpokenEmailRecognizer
from privacy.detection.recognizers.encoded import Base64Recognizer, EscapedEmailRecognizer
from privacy.detection.recognizers.host import HostRecognizer
from privacy.detection.recognizers.ip import IpRecognizer
from privacy.detection.recognizers.mac import MacRecognizer
from privacy.detection.recognizers.phone import PhoneRecognizer
from privacy.detection.recognizers.url import UrlRecognizer
from privacy.detection.recognizers.username import UsernameRecognizer


def surfaces(recognizer: Recognizer, text: str, least: float = 0.5) -> list[str]:
    spans = sorted(recognizer.find(text), key=lambda s: (s.start, s.end))
    return list(dict.fromkeys(text[s.start : s.end] for s in spans if s.score >= least))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("write to bo.lund@example.com.", ["bo.lund@example.com"]),
        (
            "ilse@corp.internal, bo@files.lan, cy@dept.local",
            ["ilse@corp.internal", "bo@files.lan", "cy@dept.local"],
        ),
        ("<ilse.varga+tag@sub.example.co.uk>", ["ilse.varga+tag@sub.example.co.uk"]),
        ("mailto:ilse_v@example.com?subject=x", ["ilse_v@example.com"]),
        ("O'Brien: o'brien@example.ie", ["o'brien@example.ie"]),
        ("zoë@bücher.example и иван@пример.рф", ["zoë@bücher.example", "иван@пример.рф"]),
        ("ilse@[192.0.2.1]", ["ilse@[192.0.2.1]"]),
        ("root@localhost", ["root@localhost"]),
        ("mail ilse@dept for access", ["ilse@dept"]),
        ("'ilse@example.com'", ["ilse@example.com"]),
        ("person@example.invalid", ["person@example.invalid"]),
        ("ilse＠example.com", ["ilse＠example.com"]),
        ("icon@2x.png", []),
        ("lodash@4.17.21 and pkg@latest", []),
        ("uses: actions/checkout@v4", []),
        ("git clone git@github.com:acme/tool.git", []),
        ("y = x @ weights; y = x@weights", []),
        ("@property\ndef x(self): ...", []),
        ("a @ b", []),
        ("@", []),
        ("https://svc:secret@host.example/x", []),
        ("one@ two @three", []),
    ],
)
def test_email(text: str, found: list[str]) -> None:
    assert surfaces(EmailRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ilse dot varga at example dot com", ["ilse dot varga at example dot com"]),
        ("ilse [at] example [dot] com", ["ilse [at] example [dot] com"]),
        ("reach bo(at)example.org now", ["bo(at)example.org"]),
        ("BO AT EXAMPLE DOT ORG", ["BO AT EXAMPLE DOT ORG"]),
        ("bo {at} mail {dot} example {dot} net", ["bo {at} mail {dot} example {dot} net"]),
        ("we met at example.com", []),
        ("look at the dot on the map", []),
        ("at dot at dot", []),
    ],
)
def test_spoken_email(text: str, found: list[str]) -> None:
    assert surfaces(SpokenEmailRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("and ilse.varga%40example.com", ["ilse.varga%40example.com"]),
        ("?u=ilse%2Bx%40example.com&b=1", ["ilse%2Bx%40example.com"]),
        ("ilse&#64;example.com", ["ilse&#64;example.com"]),
        (r"{\"m\": \"ilse\u0040example.com\"}", [r"ilse\u0040example.com"]),
        ("100%40 off", []),
        ("%40", []),
    ],
)
def test_escaped_email(text: str, found: list[str]) -> None:
    assert surfaces(EscapedEmailRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # "ilse.varga@example.com", then "hello world, nothing here"
        ("token=aWxzZS52YXJnYUBleGFtcGxlLmNvbQ== end", ["aWxzZS52YXJnYUBleGFtcGxlLmNvbQ=="]),
        ("aGVsbG8gd29ybGQsIG5vdGhpbmcgaGVyZQ==", []),
        ("d41d8cd98f00b204e9800998ecf8427e", []),
        ("notbase64butlongword", []),
        ("20261130081502123456", []),
    ],
)
def test_base64(text: str, found: list[str]) -> None:
    assert surfaces(Base64Recognizer([EmailRecognizer()]), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("My line is 943 476 5919, thanks!", ["943 476 5919"]),
        ("ring 212-555-0142 after six", ["212-555-0142"]),
        ("(212) 555-0142 x12", ["(212) 555-0142 x12"]),
        ("1-212-555-0142", ["1-212-555-0142"]),
        ("+49 30 901820 or +44 20 7946 0958", ["+49 30 901820", "+44 20 7946 0958"]),
        ("+12125550142", ["+12125550142"]),
        ("+33 1 70 18 99 00.", ["+33 1 70 18 99 00"]),
        ("020 7946 0958", ["020 7946 0958"]),
        ("06 12 34 56 78", ["06 12 34 56 78"]),
        ("ring 07700900123 tonight", ["07700900123"]),
        ("call 2125550142", ["2125550142"]),
        ("phone: 555-0142", ["555-0142"]),
        ("Tel. 030/901820", ["030/901820"]),
        ("7305551234567 and SKU 536804398", []),
        ("Order 5550142 shipped", []),
        ("2024-01-15 and 17.02.1984", []),
        ("between 1990 - 2000", []),
        ("1.234.567 people", []),
        ("version 10.12.2024.1", []),
        ("db/migrate/20261130081502_add_users.sql", []),
        ("SSN 536-22-8714", []),
        ("192.168.100.200", []),
        ("3.14159265358979", []),
        ("ISBN 978-3-16-148410-0", []),
        ("id=2125550142", []),
        ("part no 212-555-0142", []),
        ("3,Kofi,0033698765432,58000", ["0033698765432"]),
        ("case 0000123456789012", []),
    ],
)
def test_phone(text: str, found: list[str]) -> None:
    assert surfaces(PhoneRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("host 10.1.2.3 up", ["10.1.2.3"]),
        ("192.0.2.0/24", ["192.0.2.0/24"]),
        ("from 2001:db8::ff00:42:8329.", ["2001:db8::ff00:42:8329"]),
        ("::ffff:192.0.2.128", ["::ffff:192.0.2.128"]),
        ("127.0.0.1 and 0.0.0.0 and ::1", []),
        ("version 1.2.3.4", []),
        ("v1.2.3.4", []),
        ("std::abs x[::2] a::b", []),
        ("300.1.1.1", []),
        ("12:30:45", []),
    ],
)
def test_ip(text: str, found: list[str]) -> None:
    assert surfaces(IpRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("00:1A:2B:3C:4D:5E", ["00:1A:2B:3C:4D:5E"]),
        ("00-1a-2b-3c-4d-5e", ["00-1a-2b-3c-4d-5e"]),
        ("001a.2b3c.4d5e", ["001a.2b3c.4d5e"]),
        ("FF:FF:FF:FF:FF:FF", []),
        ("1234.5678.9012", []),
        ("00:1A:2B:3C:4D:5E:6F", []),
    ],
)
def test_mac(text: str, found: list[str]) -> None:
    assert surfaces(MacRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("db01.corp.internal answers", ["db01.corp.internal"]),
        ("http://wiki.intranet/x", ["wiki.intranet"]),
        ("printer.lan", ["printer.lan"]),
        ("ssh nas.local", ["nas.local"]),
        (r"\\fileserver01\share", ["fileserver01"]),
        ("threading.local()", []),
        ("settings.private", []),
        ("com.sun.internal", []),
        ("example.com", []),
        ("cfg.name = re.search(p, s); run build.sh then main.rs", []),
    ],
)
def test_host(text: str, found: list[str]) -> None:
    assert surfaces(HostRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("postgres://svc:hunter22@db.example/x", ["svc", "hunter22"]),
        ("https://x.example/users/ilse-v/posts", ["ilse-v"]),
        ("https://x.example/~ilsev/", ["ilsev"]),
        ("https://github.com/ilsevarga", ["ilsevarga"]),
        ("see linkedin.com/in/ilse-varga-1", ["ilse-varga-1"]),
        ("https://x.example/a?name=Ilse+Varga&page=2", ["Ilse+Varga"]),
        ("https://x.example/a?access_token=abc123def", ["abc123def"]),
        ("https://files.example.com/ilse-varga.png", ["ilse-varga"]),
        ("https://github.com/acme/tool/issues/1", []),
        ("https://example.com/users/settings", []),
        ("https://example.com/blog/annual-report.pdf?page=2&sort=asc", []),
        ("https://url.spec.whatwg.org/#percent", []),
        ("git@github.com:acme/tool", []),
    ],
)
def test_url(text: str, found: list[str]) -> None:
    assert surfaces(UrlRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ask @ilsev about it", ["ilsev"]),
        ("username: ilsevarga", ["ilsevarga"]),
        ("login=ilse.varga", ["ilse.varga"]),
        ("user = 'ilse_v'", ["ilse_v"]),
        ("my user name is ilse.v84", ["ilse.v84"]),
        ("/home/ilsev/notes.txt", ["ilsev"]),
        (r"C:\Users\ilse.varga\Desktop", ["ilse.varga"]),
        ("@property\ndef name(self): ...", []),
        ("@app.route('/x')\ndef x(): ...", []),
        ("npm i @types/node", []),
        ("@media (min-width: 3px) {}", []),
        ("user = request.user", []),
        ("user: current_user", []),
        ("/home/ubuntu/app", []),
        ("bo@example.com", []),
        ("use the `@command` decorator", []),
        ("INFO login ok user=hkim ip=192.0.2.7", ["hkim"]),
        ("notify(user=obj, kind=1)", []),
        ("user=current theme=dark", []),
    ],
)
def test_username(text: str, found: list[str]) -> None:
    assert surfaces(UsernameRecognizer(), text) == found
