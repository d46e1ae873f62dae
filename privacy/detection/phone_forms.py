"""The digit strings under which one telephone number is written."""

from typing import Final

import phonenumbers

_LEAST_NATIONAL: Final = 7


def phone_forms(surface: str) -> set[str]:
    """Return digit strings of ``surface``: as written, national with and without trunk zero, international.

    A number without a country code says nothing about its country; only the trunk zero or the
    North American 1 is added and removed then.
    """
    digits = "".join(
        c for c in surface.split("x")[0].split("ext")[0] if c.isascii() and c.isdigit()
    )
    forms = {digits}
    international = surface.lstrip(" (").startswith("+") or digits.startswith("00")
    if international:
        plus = "+" + (digits[2:] if digits.startswith("00") else digits)
        try:
            number = phonenumbers.parse(plus, None)
        except phonenumbers.NumberParseException:
            return forms
        national = phonenumbers.national_significant_number(number)
        code = str(number.country_code)
        forms |= (
            {code + national, "00" + code + national, "0" + national, "1" + national}
            if code == "1"
            else {code + national, "00" + code + national, "0" + national}
        )
        forms.add(national)
    elif digits.startswith("0"):
        forms.add(digits[1:])
    elif len(digits) == 11 and digits.startswith("1"):
        forms.add(digits[1:])
    elif len(digits) == 10:
        forms.add("1" + digits)
    return {form for form in forms if len(form) >= _LEAST_NATIONAL}
