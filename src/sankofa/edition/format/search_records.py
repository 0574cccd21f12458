"""The records that a search by name weighs, and the buckets of words a slip of the pen apart."""

import zlib

import msgspec


class SearchRecord(msgspec.Struct, frozen=True, array_like=True):
    """An organisation as a search weighs it."""

    service_id: str
    country: str | None
    names: tuple[str, ...]
    """The legal name first."""
    words: tuple[tuple[str, ...], ...]
    """Of each name, those it is found by."""
    tickers: tuple[str, ...]


def bucket(form: str, buckets: int) -> int:
    """Where a word and its forms with a letter left out are kept."""
    return zlib.crc32(form.encode()) % buckets
