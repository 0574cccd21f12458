"""Tickers, LEIs, ISINs and names where a service_id is asked for: looked up once, then remembered."""

import re
from typing import Any, Final

from sankofa.client.answers import Answer
from sankofa.client.errors import UnknownIdentifier

NAME: Final = "name"
_ISSUED: Final = re.compile(r"DC[0-9A-Fa-f]+\Z")
_KINDS: Final = (
    ("lei", re.compile(r"[A-Z0-9]{18}[0-9]{2}")),
    ("isin", re.compile(r"[A-Z]{2}[A-Z0-9]{9}[0-9]")),
    ("ticker", re.compile(r"\A[A-Z0-9]+:\S+")),
)


def to_look_up(identifier: object) -> tuple[str, str] | None:
    """(id_type, id_value) to ask the crosswalk for, or (NAME, text) to search for; None for what is to be
    sent as it is."""
    if not isinstance(identifier, str) or not identifier.strip() or _ISSUED.match(identifier):
        return None
    for kind, pattern in _KINDS:
        if pattern.fullmatch(identifier.upper()):
            return kind, identifier.upper()
    return NAME, identifier.strip()


def service_id_of(identifier: str, matches: Answer[Any]) -> str:
    """The one organisation that the crosswalk named. Raises UnknownIdentifier."""
    ids: list[str] = sorted({row["service_id"] for row in matches.rows})
    if len(ids) == 1:
        return ids[0]
    why = f"{identifier}: {', '.join(ids)} have it" if ids else f"{identifier}: no organisation has it"
    raise UnknownIdentifier(why, ids)


def named_by(text: str, matches: Answer[Any]) -> str:
    """The one organisation that has exactly this name, or this ticker on whatever exchange.

    Raises UnknownIdentifier, with what comes near.
    """
    exact = {row["id"] for row in matches.rows if _is_exact(text, row)}
    if len(exact) == 1:
        return str(exact.pop())
    if exact:
        ids = sorted(exact)
        raise UnknownIdentifier(f"{text}: {', '.join(ids)} have it; write a ticker as EXCHANGE:TICKER", ids)
    near = [f"{row['name']} ({row['id']})" for row in matches.rows[:3]]
    close = f"; nearest: {', '.join(near)}" if near else ""
    raise UnknownIdentifier(f"{text}: no organisation has exactly this name or ticker{close}", [])


def _is_exact(text: str, row: Any) -> bool:
    matched: str = row["matched"] or ""
    identifiers = [matched.rpartition(":")[2]] if matched.startswith("ticker:") else []
    return text.casefold() in (str(name).casefold() for name in (row["name"], matched, *identifiers))
