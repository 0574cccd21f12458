"""Tickers, LEIs and ISINs where a service_id is asked for: looked up once, then remembered."""

import re
from typing import Any, Final

from sankofa.client.answers import Answer
from sankofa.client.errors import UnknownIdentifier

_SERVICE_ID: Final = re.compile(r"DC[0-9A-F]{24}")
_KINDS: Final = (
    ("lei", re.compile(r"[A-Z0-9]{18}[0-9]{2}")),
    ("isin", re.compile(r"[A-Z]{2}[A-Z0-9]{9}[0-9]")),
    ("ticker", re.compile(r"[A-Z0-9]+:\S+")),
)


def to_look_up(identifier: object) -> tuple[str, str] | None:
    """(id_type, id_value) to ask the crosswalk for; None for what is to be sent as it is."""
    if not isinstance(identifier, str) or _SERVICE_ID.fullmatch(identifier):
        return None
    for kind, pattern in _KINDS:
        if pattern.fullmatch(identifier.upper()):
            return kind, identifier.upper()
    return None


def service_id_of(identifier: str, matches: Answer[Any]) -> str:
    """The one organisation that the crosswalk named. Raises UnknownIdentifier."""
    ids: list[str] = sorted({row["service_id"] for row in matches.rows})
    if len(ids) == 1:
        return ids[0]
    why = f"{identifier}: {', '.join(ids)} have it" if ids else f"{identifier}: no organisation has it"
    raise UnknownIdentifier(why, ids)
