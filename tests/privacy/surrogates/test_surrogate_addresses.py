"""E-mail addresses, hosts, URLs, IP and MAC addresses, user names."""

import base64
import ipaddress
import re

import pytest

from privacy.randomness import SeededRandomness
from privacy.surrogates import SurrogateContext, surrogate_for

EXAMPLE_DOMAIN = r"(?:[a-z0-9-]+\.)+example\.(?:com|org|net)"


def make(type_: str, value: str, seed: int = 5, context: SurrogateContext | None = None) -> str:
    return surrogate_for(type_).make(value, SeededRandomness(seed), context or SurrogateContext())


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("Ilse.Varga@corp.internal", rf"[A-Z][a-z]+\.[A-Z][a-z]+@{EXAMPLE_DOMAIN}"),
        ("ilse_v-84+news@acme.co.uk", r"[a-z]+_[a-z]+-\d\d\+[a-z]+@[a-z]+\.example\.\w+"),
        ("ilse.varga%40example.com", r"[a-z]+\.[a-z]+%40[a-z]+\.example\.com"),
        ("ilse%2Evarga%40corp%2Ecom", r"[a-z]+%2E[a-z]+%40[a-z]+%2Eexample%2Ecom"),
        ("ilse dot varga at corp dot com", r"[a-z]+ dot [a-z]+ at [a-z]+ dot example dot com"),
        ("ilse [at] corp [dot] com", r"[a-z]+ \[at\] [a-z]+ \[dot\] example \[dot\] com"),
        ("bo&#64;corp.org", r"[a-z]+&#64;[a-z]+\.example\.org"),
        ("BO@CORP.ORG", r"[A-Z]+@[A-Z]+\.EXAMPLE\.ORG"),
        ("bo@[10.0.0.1]", r"[a-z]+@\[[\d.]+\]"),
        ("jürgen@köln.de", rf"[a-z]+@{EXAMPLE_DOMAIN}"),
        ('"a b"@corp.com', r"-[a-z]+ [a-z]+-@[a-z]+\.example\.com"),
    ],
)
def test_email_forms(value: str, form: str) -> None:
    for seed in range(20):
        assert re.fullmatch(form, make("EMAIL", value, seed)), make("EMAIL", value, seed)


@pytest.mark.parametrize("padded", [True, False])
def test_email_in_base64(padded: bool) -> None:
    encoded = base64.b64encode(b"ilse.varga@example.com").decode()
    drawn = make("EMAIL", encoded if padded else encoded.rstrip("="))
    assert drawn == make("SECRET", encoded if padded else encoded.rstrip("="))
    decoded = base64.b64decode(drawn + "=" * (-len(drawn) % 4)).decode()
    assert re.fullmatch(rf"[a-z]+\.[a-z]+@{EXAMPLE_DOMAIN}", decoded)


def test_one_domain_has_one_surrogate() -> None:
    context = SurrogateContext()
    first = make("EMAIL", "ilse@Corp.com", 1, context).split("@")[1]
    assert make("EMAIL", "bo@corp.com", 2, context).split("@")[1] == first
    assert make("EMAIL", "bo@other.com", 3, context).split("@")[1] != first
    below = make("HOST", "db01.corp.com", 4, context)
    assert below.endswith("." + first)
    assert context.domains["corp.com"] == first
    assert make("URL", "https://db01.corp.com/x", 5, context).split("/")[2] == below
    assert make("URL", "https://www.corp.com/x", 6, context).split("/")[2] == f"www.{first}"
    assert make("EMAIL", "bo@mail.acme.co.uk", 7, context).count(".") == 3


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("https://linkedin.com/in/ilse-varga", r"https://linkedin\.com/in/[a-z]+-[a-z]+\d{4}"),
        (
            "https://files.example.org:8443/users/ilse-varga.png?mail=ilse@corp.com&id=42#top",
            rf"https://{EXAMPLE_DOMAIN}:8443/users/[a-z]+-[a-z]+\.png"
            rf"\?mail=[a-z]+@{EXAMPLE_DOMAIN}&id=\d\d#[a-z]+",
        ),
        (
            "ftp://ilse:geheim@nas.lan/Fotos/a.jpg",
            rf"ftp://[a-z]+:[a-z]+@{EXAMPLE_DOMAIN}/[A-Z][a-z]+/[a-z]+\.jpg",
        ),
        ("http://10.1.2.3/x", r"http://10\.\d+\.\d+\.\d+/[a-z]+"),
        ("http://[2a00:1450::1]/x", r"http://\[2001:db8:[0-9a-f:]+\]/[a-z]+"),
        ("https://github.com/", rf"https://{EXAMPLE_DOMAIN}/"),
        ("ilse-varga", r"[a-z]+-[a-z]+"),
        ("Ilse%20Varga", r"[A-Z][a-z]+%20[A-Z][a-z]+"),
        ("ilse%40corp.com", r"[a-z]+%40[a-z]+\.example\.com"),
        (
            "https://host.test/%C3%A9lise/ilse.lund",
            rf"https://{EXAMPLE_DOMAIN}/[a-z]+/[a-z]+\.[a-z]+",
        ),
    ],
)
def test_url_forms(value: str, form: str) -> None:
    for seed in range(20):
        drawn = make("URL", value, seed)
        assert re.fullmatch(form, drawn), drawn
        assert not re.search(r"ilse|varga|lund\b|lise|corp|geheim|Fotos", drawn, re.IGNORECASE)


def test_public_ip_addresses_become_documentation_addresses() -> None:
    blocks = [
        ipaddress.ip_network(b) for b in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
    ]
    for seed in range(50):
        drawn = ipaddress.ip_address(make("IP_ADDRESS", "8.8.8.8", seed))
        assert any(drawn in block for block in blocks)
        drawn = ipaddress.ip_address(make("IP_ADDRESS", "2a00:1450:4001:81b::200e", seed))
        assert drawn in ipaddress.ip_network("2001:db8::/32")
    widened = SurrogateContext(attempt=100)
    drawn = ipaddress.ip_address(make("IP_ADDRESS", "8.8.8.8", 1, widened))
    assert drawn in ipaddress.ip_network("198.18.0.0/15")


@pytest.mark.parametrize(
    ("value", "block"),
    [
        ("10.0.0.7", "10.0.0.0/8"),
        ("172.20.1.1", "172.16.0.0/12"),
        ("192.168.1.10", "192.168.0.0/16"),
        ("169.254.1.1", "169.254.0.0/16"),
        ("fd12:3456:789a::1", "fd00::/8"),
        ("fe80::1", "fe80::/64"),
    ],
)
def test_private_addresses_stay_private(value: str, block: str) -> None:
    for seed in range(20):
        drawn = ipaddress.ip_address(make("IP_ADDRESS", value, seed))
        assert drawn in ipaddress.ip_network(block)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("10.2.0.0/16", r"10\.\d+\.0\.0/16"),
        ("8.8.8.8:53", r"[\d.]+:53"),
        ("8.8.0.0/16", r"(?:192\.0\.2|198\.51\.100|203\.0\.113)\.0/16"),
        ("172.16.0.0/12", r"172\.(?:1[6-9]|2\d|3[01])\.0\.0/12|172\.16\.\d+\.\d+/12"),
        ("10.0.0.0/8", r"10\.\d+\.\d+\.\d+/8"),
        ("fe80::1%eth0", r"fe80::[0-9a-f:]+%eth0"),
        ("2A00:1450:4001:081B:0000:0000:0000:200E", r"2001:0DB8(?::[0-9A-F]{4}){6}"),
    ],
)
def test_ip_forms(value: str, form: str) -> None:
    assert re.fullmatch(form, make("IP_ADDRESS", value)), make("IP_ADDRESS", value)


@pytest.mark.parametrize(
    "value", ["00:1A:2B:3C:4D:5E", "00-1a-2b-3c-4d-5e", "001a.2b3c.4d5e", "001a2b3c4d5e"]
)
def test_mac_addresses_are_locally_administered(value: str) -> None:
    for seed in range(30):
        drawn = make("MAC_ADDRESS", value, seed)
        assert re.sub(r"\w", "x", drawn) == re.sub(r"\w", "x", value)
        assert drawn.isupper() or drawn.islower() or not re.search("[a-f]", drawn, re.IGNORECASE)
        first = int(re.sub(r"\W", "", drawn)[:2], 16)
        assert first & 2 and not first & 1


@pytest.mark.parametrize(
    ("type_", "value", "form"),
    [
        ("HOST", "db01.corp.internal", rf"[a-z]+\d\d\.{EXAMPLE_DOMAIN}"),
        ("HOST", "ILSE-LAPTOP", r"[A-Z]+-[A-Z]+"),
        ("HOST", "printer.lan", EXAMPLE_DOMAIN),
        ("HOST", "10.0.0.1", r"10\.[\d.]+"),
        ("USERNAME", "@ilse_v84", r"@[a-z]+_[a-z]+\d\d"),
        ("USERNAME", "IlseVarga", r"[A-Z][a-z]+"),
        ("USERNAME", "елена.7", r"[a-z]+\.\d"),
    ],
)
def test_names_of_machines_and_accounts(type_: str, value: str, form: str) -> None:
    for seed in range(20):
        assert re.fullmatch(form, make(type_, value, seed)), make(type_, value, seed)
