"""What the fields of rows say of themselves: the words of OpenAPI, of the tools and of the client."""

from collections.abc import Iterable
from typing import Any

from msgspec import Meta


def doc(description: str, **limits: Any) -> Meta:
    """What a field is, and the limits that msgspec holds it to (`ge`, `min_length` ...)."""
    return Meta(description=description, **limits)


def one_of(words: Iterable[str | None], description: str) -> Meta:
    """The same of a field that has one of these values."""
    return Meta(description=description, extra_json_schema={"enum": list(words)})


def instant(description: str) -> Meta:
    """The same of an instant, written as RFC 3339 has it."""
    return Meta(description=description, extra_json_schema={"format": "date-time"})
