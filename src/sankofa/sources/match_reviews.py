"""Decisions about parties of tenders, as `sankofa matches` writes them down."""

import re
from collections.abc import Iterator
from typing import Final

from sankofa.model.records import IdentifierLink, Record
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.template import Template

SOURCE: Final = "match-reviews"
COLUMNS: Final = ("match", "service_id", "verdict", "decided_at")
_TEMPLATE: Final = Template(SOURCE, COLUMNS)
_VERDICTS: Final = ("confirmed", "refused", "open")
_MATCH: Final = re.compile(r"[0-9a-f]{12}")
_SERVICE_ID: Final = re.compile(r"DC[0-9A-F]{24}")


@adapter(SOURCE)
def read(file: InputFile) -> Iterator[Record]:
    """Which organisation a party of tenders is, decided by hand: no name, only a keyed hash of it."""
    return _TEMPLATE.read(file, _decision)


def _decision(row: dict[str, str], location: str) -> Record:
    if not _MATCH.fullmatch(row["match"]):
        raise ValueError("match: expected 12 hexadecimal digits")
    if not _SERVICE_ID.fullmatch(row["service_id"]):
        raise ValueError("service_id: expected DC and 24 hexadecimal digits")
    if row["verdict"] not in _VERDICTS:
        raise ValueError(f"verdict: expected one of {', '.join(_VERDICTS)}")
    # With its instant, or a decision that is taken again within a second would count as known already.
    decision = f"{row['verdict']}@{row['decided_at']}"
    return IdentifierLink(f"match:{row['match']}:{row['service_id']}", decision, location)
