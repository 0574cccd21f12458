"""The languages of the interface: message catalogues, and figures and days as each language writes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from babel import Locale
from babel.dates import format_date, format_datetime
from babel.messages.pofile import read_po

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
"""Between the parts of an Arabic day. Days are isolated from left to right, where it would scramble them."""
_MINUS: Final = "\N{MINUS SIGN}"
_NOTHING: Final = "\N{EN DASH}"


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
        if isinstance(message.id, str) and isinstance(message.string, str) and message.string
    }


@dataclass(frozen=True)
class Language:
    """One language: its messages, and how it writes figures and days."""

    code: str
    direction: str
    _group: str
    _point: str
    _messages: Mapping[str, str]
    _locale: Locale

    def text(self, message: str, /, **values: object) -> str:
        """The message in this language; English where the catalogue has none."""
        translated = self._messages.get(message, message)
        return translated % values if values else translated

    def figure(self, value: Decimal | int | float | None) -> str:
        """Every digit of a figure, grouped."""
        if value is None:
            return _NOTHING
        exact = value if isinstance(value, int) else Decimal(str(value))
        plain = f"{exact:,}" if isinstance(exact, int) else f"{exact:,f}"
        return self._localised(plain)

    def share(self, value: Decimal | float | None, digits: int = 1) -> str:
        """A ratio as a percentage, rounded."""
        if value is None:
            return _NOTHING
        return self._localised(f"{Decimal(str(value)) * 100:,.{digits}f}") + "\N{NO-BREAK SPACE}%"

    def signed_share(self, value: Decimal | float) -> str:
        """A change as a percentage with its sign."""
        sign = "+" if value > 0 else ""
        return sign + self.share(value, 0)

    def rounded(self, value: Decimal | float | None, digits: int = 2) -> str:
        return _NOTHING if value is None else self._localised(f"{Decimal(str(value)):,.{digits}f}")

    def short(self, value: Decimal | int | float) -> str:
        """A figure for an axis: three digits and a letter."""
        number = float(value)
        for limit, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "k")):
            if abs(number) >= limit:
                scale = 1e3 if letter == "k" else limit
                return self._localised(f"{number / scale:.4g}") + letter
        return self._localised(f"{number:.6g}")

    def brief(self, value: Decimal | int | float) -> str:
        """A figure at a glance: at most four digits."""
        number = float(value)
        return self.short(value) if abs(number) >= 1e4 else self._localised(f"{number:,.4g}")

    def size(self, count: int) -> str:
        """A number of bytes."""
        if count < 1000:
            return f"{count} B"
        if count < 1_000_000:
            return self._localised(f"{count / 1000:.0f}") + " kB"
        return self._localised(f"{count / 1_000_000:.1f}") + " MB"

    def day(self, day: date | str | None) -> str:
        return _NOTHING if day is None else _written_day(self._locale, _as_date(day))

    def instant(self, instant: str) -> str:
        return _written_instant(self._locale, instant)

    def country(self, code: str | None) -> str:
        """The country's name in this language; the code where it has none."""
        return _NOTHING if not code else str(self._locale.territories.get(code, code))

    def _localised(self, plain: str) -> str:
        signed = plain.replace("-", _MINUS)
        if self._group == "," and self._point == ".":
            return signed
        return signed.replace(",", "\0").replace(".", self._point).replace("\0", self._group)


def _as_date(day: date | str) -> date:
    return date.fromisoformat(day[:10]) if isinstance(day, str) else day


@lru_cache(maxsize=8192)
def _written_day(locale: Locale, day: date) -> str:
    return format_date(day, "medium", locale).replace(_RIGHT_TO_LEFT_MARK, "")


@lru_cache(maxsize=4096)
def _written_instant(locale: Locale, instant: str) -> str:
    moment = datetime.fromisoformat(instant.replace("Z", "+00:00"))
    written = format_datetime(moment, "medium", locale=locale)
    return written.replace(_RIGHT_TO_LEFT_MARK, "") + " UTC"


@cache
def language(code: str) -> Language:
    """The language of a code of LANGUAGES."""
    locale = Locale.parse(code)
    symbols = locale.number_symbols.get("latn", locale.number_symbols)
    return Language(
        code=code,
        direction="rtl" if code in _RIGHT_TO_LEFT else "ltr",
        _group=symbols["group"],
        _point=symbols["decimal"],
        _messages=_catalogue(code),
        _locale=locale,
    )


@lru_cache(maxsize=512)
def preferred(accept_language: str) -> str:
    """The language of ours that a browser likes best (RFC 9110, section 12.5.4)."""
    weighted: list[tuple[float, int, str]] = []
    for position, part in enumerate(accept_language.split(",")[:32]):
        tag, _, parameter = part.strip().partition(";")
        _, _, quality = parameter.strip().partition("q=")
        try:
            weight = float(quality) if quality else 1.0
        except ValueError:
            continue
        code = tag.strip().lower().partition("-")[0]
        if code in LANGUAGES and weight > 0:
            weighted.append((-weight, position, code))
    return min(weighted)[2] if weighted else DEFAULT
