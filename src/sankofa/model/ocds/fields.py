"""The OCDS fields a release may keep, read from `fields.toml`: each is cleaned or left out.

A field that is not in the table is dropped. A value that does not match the schema becomes null and is
recorded as a fault. An amount of zero is the feeds' placeholder for "not published" and becomes null.

See contract: TEND-3, GATE-5.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, Final

from sankofa.model.countries import currencies
from sankofa.model.days import range_fault
from sankofa.model.figures import exact
from sankofa.model.text import toml_table

Json = Any
ORGANISATION: Final = "Organization"

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*\Z")
_UNTRANSLATED: Final = frozenset({"name", "legalName"})  # names in other languages have not been checked
_PERSONAL = re.compile(
    r"contact|person|author|signator|representative|owner|shareholder|official|email|e-mail|phone|fax|officer",
    re.IGNORECASE,
)
_OF_PARTIES = re.compile(
    r"director|signed|responsib|subcontract|supplier|tenderer|bidder|winner|buyer|payee|adjudicat"
    r"|proveedor|oferente|firmante|fornecedor|fournisseur|titulaire|attributaire|signataire",
    re.IGNORECASE,
)
_WEB: Final = re.compile(r"\s*https?://\S", re.IGNORECASE)
_WIDEST: Final = 60
_BEYOND: Final = 10 ** (_WIDEST + 1)
_WORDS_OF_A_NAME: Final = 6
_LEARNED: Final = 4096


NamedObject = tuple[dict[str, Json], str]
"""An object of a release that may name an organisation, and its field."""


class Cleaning:
    """Values collected while one release is cleaned."""

    __slots__ = ("faults", "latest", "lists", "organisations", "personal", "texts", "unplaced")

    def __init__(self, latest: str) -> None:
        self.latest = latest
        """The last valid day (`model.days.latest_day`)."""
        self.faults: list[tuple[str, str]] = []
        self.organisations: list[NamedObject] = []
        self.lists: list[list[Json]] = []
        self.personal: list[str] = []
        """Texts of fields about people; they must not be repeated elsewhere."""
        self.texts: list[str] = []
        """Possible free text: the text of free fields, and any text with blanks."""
        self.unplaced: list[str] = []
        """Names of parties in fields outside OCDS; people among them must not be named elsewhere."""

    def fault(self, name: str, reason: str) -> Json:
        """Record why a value becomes null."""
        self.faults.append((name, reason))


Cleaner = Callable[[Json, Cleaning, str], Json]


@cache
def release_cleaner() -> Cleaner:
    tables = toml_table("sankofa.model.ocds", "fields")
    specs: dict[str, dict[str, Cleaner]] = {name: {} for name in tables}
    for name, fields in tables.items():
        for field, kind in fields.items():
            specs[name][field] = _cleaner(kind, specs)
    return _object(specs["Release"])


@cache
def free_fields() -> frozenset[str]:
    """The names of the fields that hold free text."""
    tables = toml_table("sankofa.model.ocds", "fields")
    return frozenset(
        name for fields in tables.values() for name, kind in fields.items() if kind in ("text", ["text"])
    )


def _cleaner(kind: str | list[str], specs: dict[str, dict[str, Cleaner]]) -> Cleaner:
    if isinstance(kind, list):
        return _array(_cleaner(kind[0], specs), kind[0] == ORGANISATION)
    if kind == ORGANISATION:
        return _organisation(_object(specs[kind]))
    return _SCALARS.get(kind) or _object(specs[kind])


def _object(fields: dict[str, Cleaner]) -> Cleaner:
    @lru_cache(_LEARNED)
    def cleaner_of(key: str) -> Cleaner:
        if cleaner := fields.get(key):
            return cleaner
        if _translates(fields, key):
            return _text
        if _PERSONAL.search(key):
            return _gather
        return _gather_names if _OF_PARTIES.search(key) else _leave_out

    def clean(value: Json, cleaning: Cleaning, name: str) -> Json:
        if type(value) is not dict:
            return cleaning.fault(name, "expected an object")
        cleaned: dict[str, Json] = {}
        faults = cleaning.faults
        before = len(faults)
        for key, inner in value.items():
            cleaner = cleaner_of(key)
            if cleaner in _DROPPED:
                cleaner(inner, cleaning, key)
            else:
                cleaned[key] = None if inner is None else cleaner(inner, cleaning, key)
        if len(faults) != before and name:
            faults[before:] = [(f"{name}.{field}", reason) for field, reason in faults[before:]]
        return cleaned

    return clean


def _leave_out(_value: Json, _cleaning: Cleaning, _name: str) -> Json:
    """Drop a field that is not in the table."""


def _gather(value: Json, cleaning: Cleaning, name: str) -> Json:
    """Drop a field about a person that is not in the table; its texts must not be repeated elsewhere."""
    if type(value) is str:
        cleaning.personal.append(value)
    elif type(value) is dict:
        for inner in value.values():
            _gather(inner, cleaning, name)
    elif type(value) is list:
        for inner in value:
            _gather(inner, cleaning, name)


def _gather_names(value: Json, cleaning: Cleaning, name: str) -> Json:
    """Collect the names in a field that is not in the table and names a party; longer texts are ignored."""
    if type(value) is str:
        if len(value.split()) <= _WORDS_OF_A_NAME:
            cleaning.unplaced.append(value)
    elif type(value) is dict:
        for key, inner in value.items():
            if "name" in key.lower():
                _gather_names(inner, cleaning, key)
    elif type(value) is list:
        for inner in value:
            _gather_names(inner, cleaning, name)


_DROPPED: Final = (_leave_out, _gather, _gather_names)


def _translates(fields: dict[str, Cleaner], key: str) -> bool:
    """Whether it is a text in another language, `title_fr`, treated like the field itself."""
    base, _, language = key.rpartition("_")
    return (
        fields.get(base) in (_text, _code)
        and base not in _UNTRANSLATED
        and _LANGUAGE.match(language) is not None
    )


def _array(of: Cleaner, organisations: bool) -> Cleaner:
    def clean(value: Json, cleaning: Cleaning, name: str) -> Json:
        if type(value) is not list:
            if type(value) is not (str if of is _text or of is _code else dict):
                return cleaning.fault(name, "expected a list")
            value = [value] if value else []  # some portals omit the brackets of a one-element list
        cleaned_items = []
        faults = cleaning.faults
        before = len(faults)
        for number, inner in enumerate(value):
            cleaned = of(inner, cleaning, name)
            if len(faults) != before:
                field = f"{name}[{number}]"
                faults[before:] = [(field + p[len(name) :], why) for p, why in faults[before:]]
                before = len(faults)
            if cleaned is not None:
                cleaned_items.append(cleaned)
        if organisations:
            cleaning.lists.append(cleaned_items)
        return cleaned_items

    return clean


def _organisation(body: Cleaner) -> Cleaner:
    def clean(value: Json, cleaning: Cleaning, name: str) -> Json:
        cleaned = body(value, cleaning, name)
        if cleaned is not None:
            cleaning.organisations.append((cleaned, name))
        else:
            _gather_names(value, cleaning, name)
        return cleaned

    return clean


def _text(value: Json, cleaning: Cleaning, name: str) -> Json:
    if type(value) is str:
        cleaning.texts.append(value)
        return value
    if type(value) is int or type(value) is Decimal:
        return str(value)
    return cleaning.fault(name, "expected text")


def _code(value: Json, cleaning: Cleaning, name: str) -> Json:
    return value if type(value) is str and " " not in value else _text(value, cleaning, name)


def _address(value: Json, cleaning: Cleaning, name: str) -> Json:
    """A web address that a page may link to; dropped unless it is http or https."""
    if type(value) is str and _WEB.match(value):
        return _code(value, cleaning, name)
    if type(value) is not str or value.strip():
        cleaning.fault(name, "expected an address with http or https")
    return None


def _identifier(value: Json, cleaning: Cleaning, name: str) -> Json:
    if type(value) is int:
        return value
    if type(value) is str:
        return _code(value, cleaning, name)
    return cleaning.fault(name, "expected text or a whole number")


def _file_number(value: Json, cleaning: Cleaning, name: str) -> Json:
    """An identifier that cannot spell a name: digits after at most four letters."""
    if type(value) is int or (type(value) is str and _FILE_NUMBER.fullmatch(value)):
        return value
    return cleaning.fault(name, "expected digits, after at most four letters")


def _number(value: Json, cleaning: Cleaning, name: str) -> Json:
    if type(value) is int and abs(value) < _BEYOND:
        return value
    try:
        if type(value) is Decimal and value.is_finite() and abs(value.adjusted()) <= _WIDEST:
            return value
        if type(value) is str:
            return Decimal(exact(value.strip())) if value.strip() else None
    except ValueError:
        pass
    return cleaning.fault(name, "not a finite number")


def _amount(value: Json, cleaning: Cleaning, name: str) -> Json:
    return _number(value, cleaning, name) or None


def _integer(value: Json, cleaning: Cleaning, name: str) -> Json:
    number = _number(value, cleaning, name)
    if number is None or number == int(number):
        return None if number is None else int(number)
    return cleaning.fault(name, "expected a whole number")


def _boolean(value: Json, cleaning: Cleaning, name: str) -> Json:
    if type(value) is bool:
        return value
    if value in ("true", "false"):
        return value == "true"
    return cleaning.fault(name, "expected true or false")


def _currency(value: Json, cleaning: Cleaning, name: str) -> Json:
    code = value if type(value) is str else None
    if code in currencies():
        return code
    code = code and code.strip().upper()
    if code in currencies():
        return code
    if code != "":
        cleaning.fault(name, "unknown currency")
    return None


def _date(value: Json, cleaning: Cleaning, name: str) -> Json:
    if type(value) is str:
        instant = moment(value)
        if instant is not None:
            fault = range_fault(instant[:10], cleaning.latest)
            return cleaning.fault(name, fault) if fault else value
        if not value.strip():
            return None
    return cleaning.fault(name, "no such date")


def _scalar(value: Json, cleaning: Cleaning, name: str) -> Json:
    if type(value) is str:
        cleaning.texts.append(value)
        return value
    if type(value) is bool:
        return value
    return _number(value, cleaning, name)


def _numbers(value: Json, cleaning: Cleaning, name: str) -> Json:
    if type(value) is list:
        return [_numbers(inner, cleaning, name) for inner in value]
    return _number(value, cleaning, name)


_FILE_NUMBER: Final = re.compile(r"[A-Za-z]{0,4}[-/]?[0-9][0-9/.-]{0,40}")
_SCALARS: Final[dict[str, Cleaner]] = {
    "text": _text,
    "code": _code,
    "url": _code,
    "address": _address,
    "id": _identifier,
    "file": _file_number,
    "date": _date,
    "number": _number,
    "numbers": _numbers,
    "any": _scalar,
    "integer": _integer,
    "boolean": _boolean,
    "amount": _amount,
    "currency": _currency,
}


@lru_cache(maxsize=65536)
def moment(text: str) -> str | None:
    """Converts an ISO 8601 date or time to an RFC 3339 instant in UTC; None if malformed.

    A bare date or a time without zone is read as UTC.
    """
    try:
        when = datetime.fromisoformat(text.strip())
        if when.tzinfo is not None:
            when = when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    iso = when.replace(tzinfo=None).isoformat()
    return iso + "Z"
