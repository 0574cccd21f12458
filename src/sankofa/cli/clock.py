"""The clock of the machine: commands give it to whatever has to know the time."""

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)
