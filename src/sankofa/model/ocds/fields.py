"""The OCDS fields a release may keep, read from `fields.toml`: field by field made fit, or left out.

A field that is not in the table goes; a value that is not what the schema has there becomes null and is
told; an amount of zero is the feeds' placeholder for "not published" and becomes null.
"""

import re
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from sankofa.model.figures import exact
from sankofa.model.places import currencies

Json = Any
ORGANISATION: Final = "Organization"

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*\Z")
_UNTRANSLATED: Final = frozenset({"name", "legalName"})  # a name in another language was not looked at
_PERSONAL = re.compile(
    r"contact|person|author|signator|representative|owner|shareholder|official|email|e-mail|phone|fax|officer",
    re.IGNORECASE,
)
_OLDEST_YEAR: Final = 1900
_WIDEST: Final = 60


class Named(NamedTuple):
    """An organisation met in a release: the object, under which field, and the person data beside it."""

    body: dict[str, Json]
    field: str


class Walk:
    """What is gathered on the way through one release."""

    __slots__ = ("faults", "lists", "organisations", "personal")

    def __init__(self) -> None:
        self.faults: list[tuple[str, str]] = []
        self.organisations: list[Named] = []
        self.lists: list[list[Json]] = []
        self.personal: list[str] = []
        """Texts of fields about people: what they say must not be repeated elsewhere."""


Cleaner = Callable[[Json, Walk, str], Json]


@cache
def release_cleaner() -> Cleaner:
    """The cleaner of a whole release."""
    tables = tomllib.loads(files("sankofa.model.ocds").joinpath("fields.toml").read_text("utf-8"))
    specs: dict[str, dict[str, Cleaner]] = {name: {} for name in tables}
    for name, fields in tables.items():
        for field, kind in fields.items():
            specs[name][field] = _cleaner(kind, specs)
    return _object(specs["Release"])


def _cleaner(kind: str | list[str], specs: dict[str, dict[str, Cleaner]]) -> Cleaner:
    if isinstance(kind, list):
        return _array(_cleaner(kind[0], specs), kind[0] == ORGANISATION)
    if kind == ORGANISATION:
        return _organisation(_object(specs[kind]))
    return _SCALARS.get(kind) or _object(specs[kind])


def _object(fields: dict[str, Cleaner]) -> Cleaner:
    listed = fields.get

    def clean(value: Json, walk: Walk, name: str) -> Json:
        if type(value) is not dict:
            walk.faults.append((name, "expected an object"))
            return None
        kept: dict[str, Json] = {}
        known = len(walk.faults)
        for key, inner in value.items():
            cleaner = listed(key)
            if type(inner) is str and (cleaner is _text or cleaner is _identifier):  # most of what there is
                kept[key] = inner
            elif cleaner is not None:
                kept[key] = None if inner is None else cleaner(inner, walk, key)
            elif "_" in key and _translates(fields, key):
                kept[key] = None if inner is None else _text(inner, walk, key)
            elif inner and _is_personal(key):
                _gather(inner, walk.personal)
        if name and len(walk.faults) != known:
            walk.faults[known:] = [(f"{name}.{place}", reason) for place, reason in walk.faults[known:]]
        return kept

    return clean


def _translates(fields: dict[str, Cleaner], key: str) -> bool:
    """Whether it is a text in another language, `title_fr`: kept like the field itself."""
    base, _, language = key.rpartition("_")
    return fields.get(base) is _text and base not in _UNTRANSLATED and _LANGUAGE.match(language) is not None


@lru_cache(maxsize=4096)
def _is_personal(key: str) -> bool:
    return _PERSONAL.search(key) is not None


def _gather(value: Json, texts: list[str]) -> None:
    if type(value) is str:
        texts.append(value)
    elif type(value) is dict:
        for inner in value.values():
            _gather(inner, texts)
    elif type(value) is list:
        for inner in value:
            _gather(inner, texts)


def _array(of: Cleaner, organisations: bool) -> Cleaner:
    texts = of is _text

    def clean(value: Json, walk: Walk, name: str) -> Json:
        if type(value) is not list:
            if not (type(value) is str if texts else type(value) is dict):
                walk.faults.append((name, "expected a list"))
                return None
            value = [value] if value else []  # some portals write a list of one without its brackets
        kept = []
        for number, inner in enumerate(value):
            known = len(walk.faults)
            cleaned = of(inner, walk, name)
            if len(walk.faults) != known:
                place = f"{name}[{number}]"
                walk.faults[known:] = [(place + p[len(name) :], why) for p, why in walk.faults[known:]]
            if cleaned is not None:
                kept.append(cleaned)
        if organisations:
            walk.lists.append(kept)
        return kept

    return clean


def _organisation(body: Cleaner) -> Cleaner:
    def clean(value: Json, walk: Walk, name: str) -> Json:
        kept = body(value, walk, name)
        if kept is not None:
            walk.organisations.append(Named(kept, name))
        return kept

    return clean


def _text(value: Json, walk: Walk, name: str) -> Json:
    if type(value) is str:
        return value
    if type(value) is int or type(value) is Decimal:
        return str(value)
    walk.faults.append((name, "expected text"))
    return None


def _identifier(value: Json, walk: Walk, name: str) -> Json:
    if type(value) is str or type(value) is int:
        return value
    walk.faults.append((name, "expected text or a whole number"))
    return None


def _number(value: Json, walk: Walk, name: str) -> Json:
    if type(value) is int:
        return value
    try:
        if type(value) is Decimal and value.is_finite() and abs(value.adjusted()) <= _WIDEST:
            return value
        if type(value) is str:
            return Decimal(exact(value.strip())) if value.strip() else None
    except ValueError:
        pass
    walk.faults.append((name, "not a finite number"))
    return None


def _amount(value: Json, walk: Walk, name: str) -> Json:
    return (value if type(value) is int else _number(value, walk, name)) or None


def _integer(value: Json, walk: Walk, name: str) -> Json:
    number = _number(value, walk, name)
    if number is None or number == int(number):
        return None if number is None else int(number)
    walk.faults.append((name, "expected a whole number"))
    return None


def _boolean(value: Json, walk: Walk, name: str) -> Json:
    if type(value) is bool:
        return value
    if value in ("true", "false"):
        return value == "true"
    walk.faults.append((name, "expected true or false"))
    return None


def _currency(value: Json, walk: Walk, name: str) -> Json:
    if value in currencies():
        return value
    code = value.strip().upper() if type(value) is str else None
    if code in currencies():
        return code
    if code != "":
        walk.faults.append((name, "unknown currency"))
    return None


def _date(value: Json, walk: Walk, name: str) -> Json:
    if type(value) is str:
        if moment(value) is not None:
            return value
        if not value.strip():
            return None
    walk.faults.append((name, "no such date"))
    return None


def _scalar(value: Json, walk: Walk, name: str) -> Json:
    if type(value) is str or type(value) is bool:
        return value
    return _number(value, walk, name)


def _numbers(value: Json, walk: Walk, name: str) -> Json:
    if type(value) is list:
        return [_numbers(inner, walk, name) for inner in value]
    return _number(value, walk, name)


_SCALARS: Final[dict[str, Cleaner]] = {
    "text": _text,
    "code": _text,
    "url": _text,
    "id": _identifier,
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
    """An instant in UTC, RFC 3339, of an ISO 8601 date or time; None where it is not a usable one.

    A bare date or a time without zone is read as UTC. Years before 1900 are placeholders.
    """
    try:
        when = datetime.fromisoformat(text.strip())
        if when.tzinfo is not None:
            when = when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    if when.year < _OLDEST_YEAR:
        return None
    told = when.replace(tzinfo=None).isoformat()
    return told + "Z"
