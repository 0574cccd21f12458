"""Identifiers of organisations: exchanges, registers, check digits, and the service_id issued from them.

An exchange has one name, as people write it in EXCHANGE:TICKER, and the codes that mean it. An unlisted code
is its own name. Two-letter FIGI codes are read from FIGI sources only: elsewhere `NL` is the Netherlands.

python-stdnum decides which LEI and ISIN are valid. The tables here recognise valid ones many times faster and
pass all others to stdnum; a test compares the two.
"""

import hashlib
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import Final, NamedTuple

from stdnum import figi, isin, lei
from stdnum.exceptions import ValidationError

from sankofa.model.text import toml_table

_EXCHANGES: Final = toml_table("sankofa.model", "exchanges")
_CODES: Final = {name: tuple(entry["codes"].split()) for name, entry in _EXCHANGES.items()}
_NAME: Final = {code: name for name, codes in _CODES.items() for code in (name, *codes)}
_OF_FIGI: Final = {code: name for name, one in _EXCHANGES.items() for code in one.get("figi", "").split()}


def exchange(code: str) -> str:
    """The one name of an exchange, by any of its codes in any case."""
    code = code.strip().upper()
    return _NAME.get(code, code)


def market_codes(name: str) -> tuple[str, ...]:
    """The market identifier codes of an exchange; an unlisted one is its own code."""
    return _CODES.get(name, (name,))


def exchange_of_figi(code: str) -> str | None:
    """The name of the exchange behind a code of the FIGI standard; None for other venues.

    Most codes belong to trading platforms, off-exchange reporting and whole countries. A share has a hundred
    of them, but EXCHANGE:TICKER only where it is listed.
    """
    return _OF_FIGI.get(code.strip().upper())


_Rewrites = tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]
"""Patterns, each with the canonical form of a matching number: alternating texts and group numbers."""
_GROUP = re.compile(r"\\(\d)")


class _Register(NamedTuple):
    code: str
    numbers: _Rewrites
    under: Mapping[str, _Rewrites]
    """Rules for one spelling of the register, tried before `numbers`."""


def register_code(spelling: str) -> str:
    """The code of a register, however it is spelled; an unknown register keeps the given spelling."""
    written = _folded(spelling)
    register = _registers().get(written)
    return register.code if register else written


@lru_cache(maxsize=1 << 16)  # a buyer appears in thousands of releases
def one_spelling(spelling: str, number: str) -> tuple[str, str]:
    """A register and a number (in upper case, single spaces) in canonical form."""
    written = _folded(spelling)
    register = _registers().get(written)
    if register is None:
        return written, number
    for pattern, replacement in (*register.under.get(written, ()), *register.numbers):
        if match := pattern.fullmatch(number):
            texts = (match[int(part)] if at % 2 else part for at, part in enumerate(replacement))
            return register.code, "".join(texts)
    return register.code, number


def _folded(spelling: str) -> str:
    return " ".join(spelling.split()).upper()


@cache
def _registers() -> Mapping[str, _Register]:
    """Every register by each of its spellings, its code among them."""
    table = toml_table("sankofa.model", "registers")
    by_spelling: dict[str, _Register] = {}
    for code, entry in table.items():
        under = {_folded(name): _compiled(rules) for name, rules in entry.get("under", {}).items()}
        register = _Register(code, _compiled(entry.get("numbers", [])), under)
        for spelling in (code, *entry["spellings"]):
            if by_spelling.setdefault(_folded(spelling), register) is not register:
                raise ValueError(f"registers.toml: {spelling} is two registers")
    return by_spelling


def _compiled(rules: list[list[str]]) -> _Rewrites:
    # `Match.expand` would read the replacement anew for each number.
    return tuple((re.compile(pattern), tuple(_GROUP.split(replacement))) for pattern, replacement in rules)


# A counts as 10, Z as 35.
_VALUES = str.maketrans({letter: str(int(letter, 36)) for letter in string.ascii_uppercase})
_LEI = re.compile(r"[0-9A-Z]{18}[0-9]{2}\Z")
_ISIN = re.compile(r"[A-Z]{2}[0-9A-Z]{9}[0-9]\Z")
_SINGLE = bytes.maketrans(b"0123456789", bytes(range(10)))
_DOUBLED = bytes.maketrans(b"0123456789", bytes((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)))


def is_lei(text: str) -> bool:
    """Whether this is an LEI in canonical form with the right check digits (ISO 7064, mod 97-10)."""
    return _LEI.match(text) is not None and int(text.translate(_VALUES)) % 97 == 1


def is_isin(text: str) -> bool:
    """Whether this is an ISIN in canonical form, of an issuing country, with the right check digit (Luhn)."""
    if not _ISIN.match(text) or not _issues(text[:2]):
        return False
    digits = text.translate(_VALUES).encode()
    return (sum(digits[::-2].translate(_SINGLE)) + sum(digits[-2::-2].translate(_DOUBLED))) % 10 == 0


@lru_cache(maxsize=26 * 26)
def _issues(country: str) -> bool:
    return bool(isin.is_valid(isin.from_natid(country, "0")))


ID_TYPES: Final = ("lei", "registry", "isin", "ticker", "figi", "aggregator")
FREE_ID_TYPES: Final = ("lei", "ticker")
"""The types that every tier gets; the others are the paid crosswalk."""
STRONG: Final = ("lei", "registry", "isin", "ticker")
"""The types that identify an organisation on their own, strongest first (contract: ENT-2)."""
SEC_CIK: Final = "US-SEC-CIK"
SERVICE_ID_PATTERN: Final = r"^[A-Za-z0-9]+$"
ENTITY_ID_PATTERN: Final = r"^(DC[A-Za-z0-9]+|[A-Z]{3})$"
EDITION_PATTERN: Final = r"^[A-Za-z0-9-]{1,53}$"

_STANDARDS: Final = {"lei": lei, "isin": isin, "figi": figi}
_WITH_SCHEME = ("registry", "ticker", "aggregator")
_SCHEME = re.compile(r"[A-Z0-9][A-Z0-9._-]{0,39}\Z")
_VALUE = re.compile(r"[^\s:\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,62}[^\s\x00-\x1f\x7f])?\Z")


class Identifier(NamedTuple):
    """One identifier; `scheme` is the register, exchange or aggregator where the type needs one."""

    id_type: str
    scheme: str | None
    value: str

    def __str__(self) -> str:
        return ":".join(part for part in self if part is not None)

    @property
    def strong(self) -> bool:
        return self.id_type in STRONG


def parse_identifier(text: str) -> Identifier:
    """Read `lei:...`, `isin:...`, `ticker:JSE:WHL`, `registry:ZA-CIPC:...`. Raises ValueError."""
    id_type, _, rest = text.strip().partition(":")
    id_type = id_type.strip().lower()
    if id_type not in ID_TYPES:
        raise ValueError(f"expected one of {', '.join(ID_TYPES)} before the first colon")
    if id_type in _WITH_SCHEME:
        scheme, colon, value = rest.partition(":")
        if not colon:
            raise ValueError(f"expected {id_type}:SCHEME:VALUE")
        return make_identifier(id_type, value, scheme)
    return make_identifier(id_type, rest)


def stored_identifier(text: str) -> Identifier:
    """Reads a stored `str(Identifier)`, which was verified before it was stored."""
    id_type, _, rest = text.partition(":")
    if id_type not in _WITH_SCHEME:
        return Identifier(id_type, None, rest)
    scheme, _, value = rest.partition(":")
    return Identifier(id_type, scheme, value)


def free_location(text: str) -> str:
    """A stored `str(Identifier)` as the location in a `source_ref`. Every tier reads it, so it leaves out
    values of the paid crosswalk.
    """
    id_type, scheme, _ = stored_identifier(text)
    return text if id_type in FREE_ID_TYPES else f"{id_type}:{scheme}" if scheme else id_type


def in_one_spelling(text: str) -> str:
    """A stored `str(Identifier)` in today's spelling of its register; an older one may differ."""
    return _number_in_one_spelling(text) if text.startswith("registry:") else text


@lru_cache(maxsize=1 << 16)
def _number_in_one_spelling(text: str) -> str:
    scheme, _, value = text.removeprefix("registry:").partition(":")
    return ":".join(("registry", *one_spelling(scheme, value)))


def make_identifier(id_type: str, value: str, scheme: str | None = None) -> Identifier:
    """The canonical form of an identifier; check digits verified. Raises ValueError."""
    if standard := _STANDARDS.get(id_type):
        return Identifier(id_type, None, _checked(standard, id_type.upper(), value))
    value = " ".join(value.split())
    if id_type != "aggregator":  # an aggregator's ids may differ by case only
        value = value.upper()
    if not _VALUE.match(value):
        raise ValueError(f"a {id_type} of 1 to 64 printable characters is expected")
    if id_type not in _WITH_SCHEME:
        return Identifier(id_type, None, value)
    scheme = exchange(scheme or "") if id_type == "ticker" else (scheme or "").strip().upper()
    if id_type == "registry":
        scheme, value = one_spelling(scheme, value)
    if not _SCHEME.match(scheme):
        raise ValueError(f"expected {id_type}:SCHEME:VALUE")
    if scheme == SEC_CIK:
        value = cik(value).value
    return Identifier(id_type, scheme, value)


def stored_lookup_key(text: str) -> str:
    """The lookup key of a stored `str(Identifier)`, without case and spaces, which people type differently.

    The key of a registry number leaves out the registry, so one key may match several organisations.
    """
    id_type, _, value = text.partition(":")
    scheme = ""
    if id_type in _WITH_SCHEME:
        scheme, _, value = value.partition(":")
    value = "".join(value.split()).upper()
    return f"{id_type}:{scheme}:{value}" if id_type == "ticker" else f"{id_type}:{value}"


def lookup_key_of_text(id_type: str, text: str) -> str:
    """The lookup key of what a person typed. Raises ValueError for a ticker without its exchange."""
    value = "".join(text.split()).upper()
    if id_type in _STANDARDS:
        value = value.replace("-", "")
    if id_type == "ticker":
        code, colon, symbol = value.partition(":")
        if not (code and colon and symbol):
            raise ValueError("expected EXCHANGE:TICKER, e.g. JSE:NPN")
        value = f"{exchange(code)}:{symbol}"
    return f"{id_type}:{value}"


_LENGTHS: Final = {"lei": 20, "isin": 12, "figi": 12}
"""The length of identifiers by type; a text of another length is none of them."""


def lookup_keys_of_text(id_types: Iterable[str], text: str) -> Iterator[tuple[str, str]]:
    """The types that a typed text may be an identifier of, each with its lookup key."""
    size = len("".join(text.replace("-", "").split()))
    for id_type in id_types:
        if _LENGTHS.get(id_type, size) == size and (id_type != "ticker" or ":" in text):
            with suppress(ValueError):
                yield id_type, lookup_key_of_text(id_type, text)


def cik(value: str | int) -> Identifier:
    """A SEC CIK: the registry number of scheme US-SEC-CIK, ten digits. Raises ValueError."""
    text = str(value).strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) > 0):
        raise ValueError("not a CIK: expected up to ten digits")
    return Identifier("registry", SEC_CIK, text.zfill(10))


def service_id(identifier: Identifier | str) -> str:
    """DC and 24 upper-case hex characters: the same on every machine for the same identifier."""
    return "DC" + hashlib.sha256(str(identifier).encode()).hexdigest()[:24].upper()


def _checked(standard: object, name: str, value: str) -> str:
    compacted = re.sub(r"[\s-]", "", value).upper()
    try:
        return str(standard.validate(compacted))  # type: ignore[attr-defined]
    except ValidationError as failure:
        raise ValueError(f"not a valid {name}: {failure}") from None
