"""Telephone numbers that regulators keep for fiction, and how to find unassigned ones elsewhere.

A template is an area code, a blank and the rest; ``x`` is any digit, ``q`` 0 to 4, ``p`` 1 to 9.
"""

from typing import Final

import phonenumbers
from phonenumbers import PhoneNumberType

from privacy.randomness import Randomness
from privacy.surrogates.base import SurrogateContext, SurrogateExhausted, digits, pick

FIXED: Final = "fixed"
MOBILE: Final = "mobile"
FREE: Final = "free"
PREMIUM: Final = "premium"

RESERVED: Final[dict[int, dict[str, tuple[str, ...]]]] = {
    # Ofcom, numbers for use in TV and radio drama.
    44: {
        FIXED: (
            "20 79460xxx", "29 20180xxx", "28 96496xxx", "113 4960xxx", "114 4960xxx",
            "115 4960xxx", "116 4960xxx", "117 4960xxx", "118 4960xxx", "121 4960xxx",
            "131 4960xxx", "141 4960xxx", "151 4960xxx", "161 4960xxx", "191 4980xxx",
            "1632 960xxx",
        ),
        MOBILE: ("7700 900xxx",),
        FREE: ("808 1570xxx",),
        PREMIUM: ("909 8790xxx",),
    },
    # Bundesnetzagentur, Mitteilung 148/2021, numbers for media productions.
    49: {
        FIXED: ("30 23125xxx", "69 90009xxx", "40 66969xxx", "221 4710xxx", "89 99998xxx"),
        MOBILE: ("171 39200xx", "176 040690xx"),
    },
    # ARCEP, national numbering plan, numbers for audiovisual works.
    33: {
        FIXED: ("1 9900xxxx", "2 6191xxxx", "3 5301xxxx", "4 6571xxxx", "5 3649xxxx"),
        MOBILE: ("6 3998xxxx",),
    },
    # ACMA, phone numbers for use in TV shows, films and creative works.
    61: {
        FIXED: (
            "2 5550xxxx", "2 7010xxxx", "3 5550xxxx", "3 7010xxxx",
            "7 5550xxxx", "7 7010xxxx", "8 5550xxxx", "8 7010xxxx",
        ),
        MOBILE: (
            " 491570006", " 491570110", " 491570156", " 491570157", " 491570158", " 491570159",
            " 491570313", " 491570737",
        ),
    },
    # ComReg, numbering conditions of use, numbers for drama.
    353: {FIXED: ("20 91xxxxx",), MOBILE: ("20 91xxxxx",)},
    # Post- och telestyrelsen, numbers for films and books.
    46: {
        FIXED: ("31 39006qx", "40 62804qx", "8 465004qx", "980 3192qx"),
        MOBILE: ("70 17406px",),
    },
}  # fmt: skip

# NANP: 555-0100 to 555-0199 in every geographic area code (ATIS-0300115).
US_AREAS: Final = tuple(
    "201 202 203 205 206 207 208 209 210 212 213 214 215 216 217 218 219 224 225 228 229 231 234 "
    "239 240 248 251 252 253 254 256 260 262 267 269 270 276 281 301 302 303 304 305 307 308 309 "
    "310 312 313 314 315 316 317 318 319 320 321 323 325 330 334 336 337 352 360 361 386 401 402 "
    "404 405 406 407 408 409 410 412 413 414 415 417 419 423 425 432 434 440 443 469 470 478 479 "
    "480 484 501 502 503 504 505 507 508 509 510 512 513 515 516 517 518 520 530 540 541 559 561 "
    "562 563 570 571 573 574 580 585 586 601 602 603 605 606 607 608 609 610 612 614 615 616 617 "
    "618 619 620".split()
)
CA_AREAS: Final = tuple(
    "204 250 306 403 416 418 506 514 519 604 613 705 709 780 807 819 902 905".split()
)

_KIND: Final = {
    PhoneNumberType.FIXED_LINE: FIXED,
    PhoneNumberType.FIXED_LINE_OR_MOBILE: FIXED,
    PhoneNumberType.MOBILE: MOBILE,
    PhoneNumberType.TOLL_FREE: FREE,
    PhoneNumberType.PREMIUM_RATE: PREMIUM,
}
_TRIES: Final = 200


def national_number(
    number: phonenumbers.PhoneNumber, rng: Randomness, context: SurrogateContext
) -> str:
    """Return a national significant number that belongs to nobody, of the same country and kind.

    Raises:
        SurrogateExhausted: When the country's plan leaves no unassigned number of this length.
    """
    code = number.country_code or 0
    own = phonenumbers.national_significant_number(number)
    if code == 1:
        canadian = phonenumbers.region_code_for_number(number) == "CA"
        return pick(rng, CA_AREAS if canadian else US_AREAS) + "55501" + digits(rng, 2)
    kind = _KIND.get(phonenumbers.number_type(number), FIXED)
    plan = RESERVED.get(code, {})
    templates = plan.get(kind, ())
    if kind == FIXED and not context.widened:
        # Prefer an area code as long as the original's, so that its grouping fits.
        size = phonenumbers.length_of_geographical_area_code(number)
        templates = tuple(t for t in templates if t.index(" ") == size) or templates
    if templates and not (context.widened and kind != FIXED):
        return _filled(pick(rng, templates), rng)
    return _unassigned(code, own, rng)


def _filled(template: str, rng: Randomness) -> str:
    out: list[str] = []
    for char in template.replace(" ", ""):
        if char == "x":
            out.append(digits(rng, 1))
        elif char == "q":
            out.append(str(rng.below(5)))
        elif char == "p":
            out.append(str(1 + rng.below(9)))
        else:
            out.append(char)
    return "".join(out)


def _unassigned(code: int, own: str, rng: Randomness) -> str:
    """Draw a number of a possible length that lies in no assigned range of the country's plan."""
    for attempt in range(_TRIES):
        # The first digit tells fixed from mobile in most plans; keep it while that can be.
        lead = own[0] if attempt < _TRIES // 4 else str(1 + rng.below(9))
        drawn = lead + digits(rng, len(own) - 1)
        # Parsed, not built, because a leading zero counts in Italy.
        try:
            number = phonenumbers.parse(f"+{code}{drawn}")
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_possible_number(number) and not phonenumbers.is_valid_number(number):
            return drawn
    raise SurrogateExhausted(
        f"the numbering plan of +{code} leaves no unassigned number of {len(own)} digits: "
        "use a placeholder for telephone numbers of this country"
    )
