"""The languages of the pages: message catalogues, labels, and how each language writes figures and days."""

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from babel import Locale
from babel.dates import format_date, format_datetime
from babel.messages.pofile import read_po
from babel.numbers import get_currency_name

from sankofa.model.text import toml_table
from sankofa.operations.answers import weights_in

LANGUAGES: Final[Mapping[str, str]] = {
    "en": "English",
    "fr": "Français",
    "pt": "Português",
    "ar": "العربية",
    "sw": "Kiswahili",
}
DEFAULT: Final = "en"
_RIGHT_TO_LEFT: Final = frozenset({"ar"})
_RIGHT_TO_LEFT_MARK: Final = "\N{RIGHT-TO-LEFT MARK}"
"""Babel puts it into Arabic days. We remove it: pages isolate days left to right, where it reorders them."""
_MINUS: Final = "\N{MINUS SIGN}"
_NOTHING: Final = "\N{EN DASH}"
_POWERS: Final = (10**12, 10**9, 10**6, 10**3)
_LEAST_SHORTENED: Final = 10_000
_LARGE: Final = Decimal(9)
_SMALL: Final = Decimal("-0.99")
_TINY: Final = Decimal("0.001")
_TENTH: Final = Decimal("0.1")
_MANY: Final = 100
_SERIES: Final = re.compile(
    r"(.*?)(?:, (daily|weekly|monthly|quarterly|annual))?( \([A-Z0-9 ]+\))?", re.DOTALL
)
"""The name of a series, then its frequency and its source: "Policy rate, Angola, monthly"."""
_RATE: Final = re.compile(r".+ \((\w{3})\) for one .+ \((\w{3})\)")
_TABLE: Final = toml_table("sankofa.web", "labels")
UNITS: Final = tuple(_TABLE["units"])
CODES: Final = tuple(_TABLE["codes"])


@cache
def _catalogue(code: str) -> Mapping[str, str]:
    """The messages of a language by their English text; none for English itself."""
    if code == DEFAULT:
        return {}
    with files("sankofa.web").joinpath("locale", f"{code}.po").open("rb") as stream:
        messages = read_po(stream, locale=code)
    return {
        message.id: message.string
        for message in messages
        if isinstance(message.id, str) and isinstance(message.string, str) and message.id and message.string
    }


class Language:
    """One language: its messages, and how it writes figures and days."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.direction = "rtl" if code in _RIGHT_TO_LEFT else "ltr"
        self._messages = _catalogue(code)
        self._locale = Locale.parse(code)
        symbols = self._locale.number_symbols.get("latn", self._locale.number_symbols)
        self._group, self._point = symbols["group"], symbols["decimal"]

    def text(self, message: str, /, **values: object) -> str:
        """The message in this language, or English if the catalogue has none."""
        translated = self._messages.get(message, message)
        return translated % values if values else translated

    def figure(self, value: Decimal | int | float | None) -> str:
        """Every digit of a figure, grouped."""
        if value is None:
            return _NOTHING
        return self._localised(f"{value:,}" if isinstance(value, int) else f"{Decimal(str(value)):,f}")

    def reading(self, value: Decimal | int | float | None) -> str:
        """A figure rounded for reading: whole from a hundred on, else at most three digits."""
        if value is None:
            return _NOTHING
        exact = Decimal(str(value)).normalize()
        digits = max(0, min(2 - exact.adjusted(), -int(exact.as_tuple().exponent)))
        return self._localised(f"{exact:,.{digits}f}")

    def share(self, value: Decimal | float | None, digits: int = 1) -> str:
        """A ratio as a percentage, rounded."""
        if value is None:
            return _NOTHING
        written = self._localised(f"{Decimal(str(value)) * 100:,.{digits}f}")
        return written + str(self._locale.percent_formats[None].suffix[0])

    def signed_share(self, value: Decimal | float) -> str:
        """A change with its sign: a percentage, or a factor where a percentage says little."""
        ratio = Decimal(str(value))
        if ratio >= _LARGE:
            return "\N{MULTIPLICATION SIGN}" + self.reading(1 + ratio)
        if -1 < ratio <= _SMALL:
            return "\N{DIVISION SIGN}" + self.reading(1 / (1 + ratio))
        if 0 < abs(ratio) < _TINY:
            return "<" + self.share(_TINY)
        return ("+" if ratio > 0 else "") + self.share(ratio, 0 if abs(ratio) >= _TENTH else 1)

    def rounded(self, value: Decimal | float | None, digits: int = 2) -> str:
        return _NOTHING if value is None else self._localised(f"{Decimal(str(value)):,.{digits}f}")

    def short(self, value: Decimal | int | float) -> str:
        """A figure for an axis: four digits, with the language's abbreviations for millions and so on."""
        number = float(value)
        power = next((power for power in _POWERS if abs(number) >= max(power, _LEAST_SHORTENED)), None)
        if power is None:
            return self._localised(f"{number:,.6g}")
        pattern = self._locale.compact_decimal_formats["short"]["other"][str(power)]
        scaled = number / power
        digits = self._localised(f"{scaled:.4g}" if abs(scaled) < _LEAST_SHORTENED else f"{scaled:,.0f}")
        return f"{pattern.prefix[0]}{digits}{pattern.suffix[0]}"

    def brief(self, value: Decimal | int | float) -> str:
        """A figure at a glance: at most four digits."""
        number = float(value)
        return self.short(value) if abs(number) >= 1e4 else self._localised(f"{Decimal(f'{number:.4g}'):,f}")

    def size(self, count: int) -> str:
        for name, unit in (("GB", 10**9), ("MB", 10**6)):
            if count >= unit:
                return f"{self._localised(f'{count / unit:,.1f}')} {name}"
        return f"{self._localised(f'{count / 1000:.0f}')} kB" if count >= 1000 else f"{count} B"

    def day(self, day: date | str | None) -> str:
        if isinstance(day, str):
            day = date.fromisoformat(day[:10])
        return _NOTHING if day is None else _written_day(self._locale, day)

    def instant(self, instant: str) -> str:
        moment = datetime.fromisoformat(instant.replace("Z", "+00:00"))
        written = format_datetime(moment, "medium", locale=self._locale)
        return written.replace(_RIGHT_TO_LEFT_MARK, "") + " UTC"

    def country(self, code: str | None) -> str:
        """The country's name in this language, or its code if it has none."""
        return _NOTHING if not code else str(self._locale.territories.get(code, code))

    def unit(self, unit: str | None) -> str:
        """A unit in words: currencies by name, others by their message."""
        named = self._locale.currencies
        if not unit:
            return ""
        first, _, second = unit.partition(" per ")
        if first in named and second in named:
            base = get_currency_name(second, 1, self._locale)
            return self.text("%(quote)s for one %(base)s", quote=self.unit(first), base=base)
        if unit in named:
            return get_currency_name(unit, _MANY, self._locale)
        return self.text(unit)

    def series(self, name: str, country: str | None = None) -> str:
        """The name of a series in this language, or the publisher's if there is no message for it."""
        if self.code == DEFAULT or name in self._messages:
            return self.text(name)
        body, frequency, source = _SERIES.fullmatch(name).groups("")  # type: ignore[union-attr]  # any text matches
        comma = "، " if self.direction == "rtl" else ", "
        known = ""
        if rate := _RATE.fullmatch(body):
            known = self.unit(f"{rate[1]} per {rate[2]}")
        elif country:
            parts = body.split(", ")
            heads = (", ".join(parts[:number]) for number in range(len(parts) - 1, 0, -1))
            head = next((self._messages[one] for one in heads if one in self._messages), "")
            known = head and head + comma + self.country(country)
        if not known:
            return name
        return known[:1].upper() + known[1:] + (comma + self.text(frequency) if frequency else "") + source

    def _localised(self, plain: str) -> str:
        signed = plain.replace("-", _MINUS)
        if self._group == "," and self._point == ".":
            return signed
        return signed.replace(",", "\0").replace(".", self._point).replace("\0", self._group)


@lru_cache(maxsize=8192)
def _written_day(locale: Locale, day: date) -> str:
    return format_date(day, "medium", locale).replace(_RIGHT_TO_LEFT_MARK, "")


@cache
def language(code: str) -> Language:
    """The language of a code of LANGUAGES."""
    return Language(code)


@lru_cache(maxsize=512)
def preferred(accept_language: str) -> str:
    """The supported language that a browser prefers (RFC 9110, section 12.5.4)."""
    weights = weights_in(accept_language.encode("latin-1", "replace"))
    liked = [tag for tag, weight in weights.items() if weight and tag.partition("-")[0] in LANGUAGES]
    return max(liked, key=weights.__getitem__, default=DEFAULT).partition("-")[0]


def _in_words(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


LABELS: Final[Mapping[str, str]] = {
    **{name: _in_words(name) for name in _TABLE["named_as_written"].split()},
    **{name: name for name in _TABLE["same"].split()},
    **_TABLE["labels"],
}
"""English labels of the words of the API, to be translated. Other words are their own label."""
_KNOWN_ON: Final = re.compile(r"known_(\d{4}-\d{2}-\d{2})")
"""The chart column for the values known on a day."""
_SHARES: Final = frozenset(_TABLE["shares"].split())
"""Metrics and measures that people read as percentages; other metrics are multiples, or days."""
_CHANGES: Final = frozenset(_TABLE["changes"].split())
"""Measures that compare a value with an earlier one."""


def label(language: Language, name: object) -> str:
    """The name of a line item, a metric or another word of the API in this language."""
    known = LABELS.get(str(name))
    if known is not None:
        return language.text(known)
    kind, colon, detail = str(name).partition(": ")
    if colon and kind in LABELS:
        return f"{language.text(LABELS[kind])}: {detail}"
    if day := _KNOWN_ON.fullmatch(str(name)):
        return language.text("Known on %(day)s", day=language.day(day[1]))
    return _in_words(str(name).removeprefix("ifrs_full_").removeprefix("us_gaap_"))


def measure(language: Language, column: str, value: Decimal | float) -> str:
    """A measure of a panel for reading: a change or a share as a percentage."""
    if column in _CHANGES:
        return language.signed_share(value)
    return language.share(value) if column in _SHARES else language.brief(value)


def metric_value(language: Language, slug: str, value: Decimal | float | None) -> str:
    """A metric for reading, rounded: a percentage, a multiple, or days."""
    if value is None:
        return language.rounded(None)
    if slug in _SHARES:
        return language.share(value)
    if slug.endswith("_days"):
        return language.text("%(count)s days", count=language.rounded(value, 1))
    return language.rounded(value, 2) + "\N{MULTIPLICATION SIGN}"
