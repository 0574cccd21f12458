"""Our own template for identifiers gathered by hand or from a register: one row per identifier."""

import re
from collections.abc import Iterator
from typing import Final

from sankofa.model.days import day_in
from sankofa.model.identifiers import ID_TYPES, Identifier, exchange, make_identifier
from sankofa.model.records import IdentifierLink, Record, Skipped
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.template import ISSUER_COLUMNS, SUCCESSOR, Template, subject

_DAYS: Final = ("from", "to")
_TEMPLATE: Final = Template(
    "identifiers-csv", ("entity", "id_type", "id_value"), ("registry", *_DAYS, *ISSUER_COLUMNS, SUCCESSOR)
)
_ASSIGNED: Final = {"registry": re.compile(r"[1-9]"), "ticker": re.compile(r"\A(?!#?N/A\Z).*[0-9A-Z]")}
"""Patterns that a real value matches. `N/A`, `-` or `0` in a hundred rows would merge a hundred strangers."""


@adapter("identifiers-csv")
def read(file: InputFile) -> Iterator[Record]:
    """Tickers, registry numbers, aggregator ids, LEI, ISIN and FIGI, in our own CSV template.

    A ticker is written EXCHANGE:TICKER, or its exchange stands in `registry`. A registry number and an
    aggregator id are nothing without the register or aggregator in `registry`; other types need none.
    `from` and `to` are the first and the last day on which the entity had it; empty is open.
    `legal_name` and `country` are the entity's; `successor` names who took over from it, as `entity` does. A
    row whose identifier is the entity's own says only that.
    """
    return _TEMPLATE.read(file, _link)


def _link(row: dict[str, str], location: str) -> Record:
    entity = subject(row["entity"])
    identifier = str(_identifier(row["id_type"].lower(), row["id_value"], row.get("registry", "")))
    first, last = (day_in(column, row[column]) if row.get(column) else "" for column in _DAYS)
    if first and last and last < first:
        raise ValueError("to: before from")
    return Skipped(1) if identifier == entity else IdentifierLink(identifier, entity, location, first, last)


def _identifier(id_type: str, value: str, registry: str) -> Identifier:
    """The identifier of a row. Raises ValueError naming the column at fault."""
    if id_type not in ID_TYPES:
        raise ValueError(f"id_type: expected one of {', '.join(ID_TYPES)}")
    if not value:
        raise ValueError("id_value is missing")
    scheme = registry
    if id_type == "ticker" and ":" in value:
        scheme, _, value = value.partition(":")
        if registry and exchange(registry) != exchange(scheme):
            raise ValueError("registry: another exchange than in id_value")
    if id_type in ("registry", "aggregator", "ticker") and not scheme.strip():
        missing = "the exchange, here or as EXCHANGE:TICKER" if id_type == "ticker" else f"the {id_type}"
        raise ValueError(f"registry is missing: expected {missing}")
    try:
        identifier = make_identifier(id_type, value, scheme)
    except ValueError as failure:
        raise ValueError(f"id_value: {failure}") from None
    if id_type in _ASSIGNED and not _ASSIGNED[id_type].search(identifier.value):
        raise ValueError("id_value: a placeholder")
    return identifier
