"""DEA certificate numbers, through presidio's check digit."""

import re
from typing import Final

from privacy.detection.recognizers.support import PresidioPattern, digest_of
from privacy.types import RECORD_ID, Span

_CANDIDATE: Final = re.compile(r"(?<![\w-])[A-Za-z][A-Za-z9]\d{7}(?![\w-])")


class MedicalLicenceRecognizer:
    """Two letters and seven digits whose last is the check digit of the other six."""

    name = "medical_licence"
    types = (RECORD_ID,)

    def __init__(self) -> None:
        self._presidio = PresidioPattern(
            "country_specific.us.medical_license_recognizer", "MedicalLicenseRecognizer"
        )

    def find(self, text: str) -> list[Span]:
        return self._presidio.spans(
            text,
            digest_of(text, _CANDIDATE),
            RECORD_ID,
            self.name,
            lambda _t, _s, _e, score: 0.85 if score == 1.0 else None,
        )
