"""National identity, tax and health numbers of some thirty countries.

Presidio's recognizers supply patterns and check digits. Which of them may speak without a context
word is decided here: a form that is its own evidence (letters in fixed places and a check character)
may, a plain run of nine to thirteen digits may not, because one in ten passes any check.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from privacy.detection.recognizers import national_checks as checks
from privacy.detection.recognizers.support import (
    DIGIT_RUN,
    PresidioPattern,
    digest_of,
    luhn,
    near,
    spoken,
)
from privacy.types import NATIONAL_ID, Span


@dataclass(frozen=True)
class _Rule:
    """One presidio recognizer and when to believe it.

    Attributes:
        module: Module below ``country_specific``.
        cls: Class name.
        context: Regular expression of the words that name the number.
        alone: Score without context when presidio's validator accepts, 0 to ask for context.
        floor: Presidio's score from which on a match counts at all.
        form: What the surface must look like to stand alone.
    """

    module: str
    cls: str
    context: str
    alone: float = 0.0
    floor: float = 0.1
    form: str = ""


_RULES: Final = (
    _Rule("australia.au_abn_recognizer", "AuAbnRecognizer", r"abn|australian business"),
    _Rule("australia.au_medicare_recognizer", "AuMedicareRecognizer", r"medicare"),
    _Rule("australia.au_tfn_recognizer", "AuTfnRecognizer", r"tfn|tax file"),
    _Rule("finland.fi_personal_identity_code_recognizer", "FiPersonalIdentityCodeRecognizer",
          r"hetu|henkil\w+|personal identity", 0.9, 0.4),
    _Rule("germany.de_health_insurance_recognizer", "DeHealthInsuranceRecognizer",
          r"kvnr|krankenvers\w*|versichert\w*|health insurance", 0.6, 0.9, r"[A-Z]\d{9}"),
    _Rule("germany.de_id_card_recognizer", "DeIdCardRecognizer", r"personalausweis\w*|ausweis\w*|identity card|id card"),
    _Rule("germany.de_passport_recognizer", "DePassportRecognizer", r"reisepass\w*|pass(?:port)?\w*"),
    _Rule("germany.de_social_security_recognizer", "DeSocialSecurityRecognizer",
          r"rentenvers\w*|sozialvers\w*|rvnr|svnr|social security", 0.9, 0.9, r"\d{8}[A-Z]\d{3}"),
    _Rule("germany.de_tax_id_recognizer", "DeTaxIdRecognizer", r"steuer\w*|idnr|tax id\w*|tin"),
    _Rule("germany.de_vat_id_recognizer", "DeVatIdRecognizer", r"ust\w*|vat|umsatzsteuer\w*"),
    _Rule("germany.de_fuehrerschein_recognizer", "DeFuehrerscheinRecognizer", r"f[üu]e?hrerschein\w*|licen[cs]e"),
    _Rule("india.in_aadhaar_recognizer", "InAadhaarRecognizer", r"aadhaa?r|uidai", 0.7, 0.9,
          r"\d{4} \d{4} \d{4}"),
    _Rule("india.in_pan_recognizer", "InPanRecognizer", r"pan|permanent account", 0.6, 0.4,
          r"[A-Z]{5}\d{4}[A-Z]"),
    _Rule("india.in_voter_recognizer", "InVoterRecognizer", r"voter|epic"),
    _Rule("italy.it_fiscal_code_recognizer", "ItFiscalCodeRecognizer", r"codice fiscale|fiscal", 0.95, 0.9),
    _Rule("italy.it_vat_code", "ItVatCodeRecognizer", r"partita iva|p\.? ?iva|vat"),
    _Rule("italy.it_identity_card_recognizer", "ItIdentityCardRecognizer", r"carta d.identit\w+|identity card", 0.0, 0.0),
    _Rule("korea.kr_rrn_recognizer", "KrRrnRecognizer", r"rrn|resident registration", 0.7, 0.9, r"\d{6}-\d{7}"),
    _Rule("nigeria.ng_nin_recognizer", "NgNinRecognizer", r"nin|national identification", 0.0, 0.0),
    _Rule("poland.pl_pesel_recognizer", "PlPeselRecognizer", r"pesel"),
    _Rule("singapore.sg_fin_recognizer", "SgFinRecognizer", r"nric|fin", 0.6, 0.4, r"[STFGM]\d{7}[A-Z]"),
    _Rule("south_africa.za_id_number_recognizer", "ZaIdNumberRecognizer", r"id|identity|south african?"),
    _Rule("spain.es_nie_recognizer", "EsNieRecognizer", r"nie|extranjero", 0.85, 0.9, r"[XYZ]\d{7}-?[A-Z]"),
    _Rule("spain.es_nif_recognizer", "EsNifRecognizer", r"nif|dni|identidad", 0.75, 0.9, r"\d{8}-?[A-Z]"),
    _Rule("sweden.se_personnummer_recognizer", "SePersonnummerRecognizer",
          r"personnummer|personal (?:identity )?number", 0.8, 0.9, r"\d{6}(?:\d\d)?[-+]\d{4}"),
    _Rule("thai.th_tnin_recognizer", "ThTninRecognizer", r"thai|tnin|citizen"),
    _Rule("turkey.tr_national_id_recognizer", "TrNationalIdRecognizer", r"t\.?c\.?|kimlik|tckn"),
    _Rule("uk.uk_nhs_recognizer", "NhsRecognizer", r"nhs|national health"),
    _Rule("uk.uk_nino_recognizer", "UkNinoRecognizer", r"nino?|national insurance", 0.75, 0.4,
          r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]"),
    _Rule("uk.uk_passport_recognizer", "UkPassportRecognizer", r"passport"),
    _Rule("uk.uk_driving_licence_recognizer", "UkDrivingLicenceRecognizer", r"driv\w+ licen[cs]e|dvla", 0.8, 0.4),
    _Rule("us.us_itin_recognizer", "UsItinRecognizer", r"itin|individual taxpayer|tax id\w*", 0.6, 0.4,
          r"9\d\d-\d\d-\d{4}"),
    _Rule("us.us_mbi_recognizer", "UsMbiRecognizer", r"mbi|medicare|beneficiary", 0.7, 0.4, r"\d[A-Z].{9,11}"),
    _Rule("us.us_npi_recognizer", "UsNpiRecognizer", r"npi|national provider"),
    _Rule("us.us_passport_recognizer", "UsPassportRecognizer", r"passport", 0.0, 0.0),
)  # fmt: skip

# How far before a number its name may stand; half of that behind it.
_BEFORE: Final = 48

# (form, validator of the digits, score alone or 0 to ask for context, context)
_OWN: Final[tuple[tuple[str, Callable[[str], bool], float, str], ...]] = (
    (r"\d{3}\.\d{3}\.\d{3}-\d{2}|\d{11}", checks.brazil_cpf, 0.95, r"cpf|cadastro"),
    (r"[12] ?\d\d ?(?:0[1-9]|1[0-2]) ?\d\d ?\d{3} ?\d{3} ?\d\d", checks.france_nir, 0.9, r"nir|s[ée]curit[ée] sociale|insee"),
    (r"756\.\d{4}\.\d{4}\.\d{2}|756\d{10}", checks.switzerland_ahv, 0.9, r"ahv|avs|oasi"),
    (r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d|\d{11}", checks.belgium_nn, 0.9, r"rijksregister\w*|national register|registre national"),
    # Written in one, presidio knows it.
    (r"\d\d \d{3} \d{3} \d{3}", checks.germany_tax, 0.8, r"steuer\w*|idnr|tin"),
    (r"\d{9}", checks.netherlands_bsn, 0.0, r"bsn|burgerservice\w*|sofi"),
    (r"[1-79]\d\d[- ]\d{3}[- ]\d{3}|[1-79]\d{8}", luhn, 0.6, r"sin|social insurance"),
)  # fmt: skip
_RUT: Final = re.compile(r"(?<![\w.])\d{1,2}\.?\d{3}\.?\d{3}-[\dkK](?![\w-])")


class _Compiled:
    """A rule made ready to run."""

    def __init__(self, rule: _Rule) -> None:
        self._rule = rule
        self._context = _words(rule.context)
        self._form = re.compile(rf"(?:{rule.form})\Z") if rule.form else None
        self._form_anywhere = re.compile(
            rf"(?<![A-Za-z0-9])(?:{rule.form})(?![A-Za-z0-9])" if rule.form else ""
        )
        self.presidio = PresidioPattern(f"country_specific.{rule.module}", rule.cls)

    def has_chance(self, around: str, digest: str) -> bool:
        """Tell whether any match could pass `judge`, much faster than finding the matches."""
        if self._rule.alone and self._form_anywhere.search(digest):
            return True
        return self._context.search(around) is not None

    def judge(self, text: str, start: int, end: int, score: float) -> float | None:
        """Score one match of presidio by form and context."""
        rule = self._rule
        if score < rule.floor or not _bordered(text, start, end):
            return None
        if near(text, start, end, self._context, _BEFORE):
            return 0.95 if score == 1.0 else 0.85
        if not rule.alone or (self._form is not None and not self._form.match(text[start:end])):
            return None
        return rule.alone


class NationalIdRecognizer:
    """The table above, run over the regions of a text that hold digits."""

    name = "national_id"
    types = (NATIONAL_ID,)

    @cached_property
    def _compiled(self) -> list["_Compiled"]:
        return [_Compiled(rule) for rule in _RULES]

    def find(self, text: str) -> list[Span]:
        digest = digest_of(text, _LONG_RUN)
        if not digest.text:
            return []
        around = _surroundings(text, digest.regions)
        spans = self._own(text)
        for compiled in self._compiled:
            if compiled.has_chance(around, digest.text):
                spans.extend(
                    compiled.presidio.spans(text, digest, NATIONAL_ID, self.name, compiled.judge)
                )
        return spans

    def _own(self, text: str) -> list[Span]:
        spans = []
        for pattern, validate, alone, context in _OWN_COMPILED:
            for match in pattern.finditer(text):
                digits = "".join(filter(str.isdigit, match.group()))
                if not validate(digits):
                    continue
                if near(text, *match.span(), context):
                    spans.append(Span(match.start(), match.end(), NATIONAL_ID, 0.95, self.name))
                elif alone and len(digits) != len(match.group()):
                    spans.append(Span(match.start(), match.end(), NATIONAL_ID, alone, self.name))
        for match in _RUT.finditer(text):
            if checks.chile_rut(match.group().replace(".", "").replace("-", "")):
                spans.append(Span(match.start(), match.end(), NATIONAL_ID, 0.8, self.name))
        return spans


def _surroundings(text: str, regions: list[tuple[int, int]]) -> str:
    """Return the text in reach of the regions, each stretch once."""
    parts, last = [], 0
    for low, high in regions:
        low, high = max(last, low - _BEFORE), high + _BEFORE // 2
        parts.append(text[low:high])
        last = max(last, high)
    return spoken("\n".join(parts))


def _bordered(text: str, start: int, end: int) -> bool:
    """Tell whether the match is not a piece of a longer token, path or decimal."""
    left = text[start - 1 : start] if start else ""
    right = text[end : end + 2]
    return not (left.isalnum() or left in ("_", "/", ".", "-", "+")) and not (
        right[:1].isalnum()
        or right[:1] in ("_", "/")
        or (right[:1] in ("-", ".") and right[1:].isalnum())
    )


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.I)


# At least six digits somewhere in the run, or nothing of the table can match.
_LONG_RUN: Final = re.compile(
    # With the letters that some countries set before and behind ("AB 12 34 56 C").
    rf"(?=(?:[^\d\n]{{0,6}}\d){{6}})(?:(?<!\w)[A-Za-z]{{2}} )?{DIGIT_RUN.pattern}(?: [A-Za-z](?!\w))?|(?<!\w)[A-Za-z]{{4,6}}\d[\w]{{4,14}}"
)
_OWN_COMPILED: Final = tuple(
    (re.compile(rf"(?<![\w.+/-])(?:{form})(?![\w/]|[-.]\d)"), validate, alone, _words(context))
    for form, validate, alone, context in _OWN
)
