"""Names of months and weekdays in some fifteen languages, as they stand in dates."""

import re
from dataclasses import dataclass
from typing import Final

from privacy.surrogates.base import SurrogateUnsupported

# One row a language and length, January to December.
_MONTHS: Final = (
    "january february march april may june july august september october november december",
    "jan feb mar apr may jun jul aug sep oct nov dec",
    "jan feb mar apr may jun jul aug sept oct nov dec",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "jan feb mär apr mai jun jul aug sep okt nov dez",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    "janv févr mars avr mai juin juil août sept oct nov déc",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "ene feb mar abr may jun jul ago sep oct nov dic",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "gen feb mar apr mag giu lug ago set ott nov dic",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "jan fev mar abr mai jun jul ago set out nov dez",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "jan feb mrt apr mei jun jul aug sep okt nov dec",
    # Polish, Czech, Turkish, Hungarian, Swedish, Norwegian, Danish, Romanian, Russian, Ukrainian
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "ledna února března dubna května června července srpna září října listopadu prosince",
    "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
    "január február március április május június július augusztus szeptember október november december",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "januar februar mars april mai juni juli august september oktober november desember",
    "januar februar marts april maj juni juli august september oktober november december",
    "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
)
_SHORT: Final = 4
# Monday to Sunday.
_WEEKDAYS: Final = (
    "monday tuesday wednesday thursday friday saturday sunday",
    "mon tue wed thu fri sat sun",
    "montag dienstag mittwoch donnerstag freitag samstag sonntag",
    "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "lunes martes miércoles jueves viernes sábado domingo",
    "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
)


@dataclass(frozen=True, slots=True)
class Word:
    """A month or weekday: its number from 1 and its row of names."""

    number: int
    row: tuple[str, ...]

    def same_form(self, number: int, written: str) -> str:
        """Return another name of the row in the case of ``written``."""
        name = self.row[number - 1]
        if written.isupper():
            return name.upper()
        return name.capitalize() if written[:1].isupper() else name


def _table(rows: tuple[str, ...]) -> dict[str, Word]:
    table: dict[str, Word] = {}
    for row in rows:
        names = tuple(row.split())
        for number, name in enumerate(names, start=1):
            table.setdefault(name, Word(number, names))
    return table


def _pattern(table: dict[str, Word]) -> str:
    return "|".join(re.escape(name) for name in sorted(table, key=len, reverse=True))


_MONTH_TABLE: Final = _table(_MONTHS)
_GERMAN_TABLE: Final = _table(tuple(row for row in _MONTHS if "mär" in row))
_WEEKDAY_TABLE: Final = _table(_WEEKDAYS)
MONTH_PATTERN: Final = _pattern(_MONTH_TABLE)
# Short forms such as "set", "out" and "ago" are words of other languages.
FULL_MONTH_PATTERN: Final = _pattern(
    {name: word for name, word in _MONTH_TABLE.items() if max(map(len, word.row)) > _SHORT}
)
WEEKDAY_PATTERN: Final = _pattern(_WEEKDAY_TABLE)


def month_of(name: str, german: bool = False) -> Word:
    """Return the month of a name, read as German if ``german`` and it can be.

    Raises:
        SurrogateUnsupported: When it is none.
    """
    if german and name.lower() in _GERMAN_TABLE:
        return _GERMAN_TABLE[name.lower()]
    return _found(_MONTH_TABLE, name)


def weekday_of(name: str) -> Word:
    """Return the weekday of a name.  Raises SurrogateUnsupported when it is none."""
    return _found(_WEEKDAY_TABLE, name)


def _found(table: dict[str, Word], name: str) -> Word:
    if name.lower() not in table:
        raise SurrogateUnsupported("a name of a month or weekday that is in no table")
    return table[name.lower()]
