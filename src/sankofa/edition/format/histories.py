"""What was known of an issuer from each day on: its metrics, and its line items of full years.

One record for each issuer, by service_id, with a list of steps for each column. A step lasts until the next,
so the cell of a day is found by binary search.
"""

from typing import Final

import msgspec

from sankofa.model.rows import REASONS

HISTORIES: Final = "history"
"""The kind of these records."""
NOT_KNOWN: Final = "not_known"
"""Why a cell is missing: no figure of the line item, or no observation of the series, was known that day."""
MISSING: Final = (NOT_KNOWN, *REASONS.values())
"""Reasons; a step has the position of its own. Those of metrics are at the number of their `State`."""

CellStep = tuple[int, int, int, str]
"""First day; last day of the year, 0 for no value; number of the origin, or of the reason; value as JSON."""
CellOrigin = tuple[str, str, str, str]
"""source_ref, license_class, observed_at, and the unit; empty for a metric."""


class IssuerHistory(msgspec.Struct, frozen=True, array_like=True):
    """The history of an issuer."""

    known_from: int
    """The day on which its first figure was known."""
    names: bytes
    """service_id, legal_name and country as members of a row."""
    origins: list[CellOrigin]
    """The first one is that of its first figure."""
    columns: dict[str, msgspec.Raw]
    """The steps of each column, by slug of the metric or name of the line item."""


read_history = msgspec.msgpack.Decoder(IssuerHistory).decode
read_steps = msgspec.msgpack.Decoder(list[CellStep]).decode
