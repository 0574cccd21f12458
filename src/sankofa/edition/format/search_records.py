"""The records that a search by name weighs, the kinds they are kept under, and the buckets of words."""

import zlib
from typing import Final, NamedTuple

import msgspec


class SearchIndex(NamedTuple):
    """Where an index is kept: records by number, and words that lead to numbers."""

    records: str
    """A number leads to a record."""
    words: str
    """A word leads to the numbers of the records that have it, as 32-bit integers in order.

    Under an index of bytes, padded to whole integers: of each record how many words its name has, or 0 where
    that does not say all of its names: it has several, or one with a word twice. Without where all are 0.
    """
    near: str
    """A bucket leads to words that are one letter from each other, for slips of the pen."""
    beginnings: str
    """The first letters of words lead to the words, those that most records have first."""
    buckets: str
    """The member of the manifest that says how many buckets there are."""
    in_order_of_ids: bool = False
    """Whether records are numbered in the order of their ids."""


ORGANISATIONS: Final = SearchIndex("named", "word", "near", "beginning", "name_buckets", in_order_of_ids=True)
MACRO_ITEMS: Final = SearchIndex(
    "macro-named", "macro-word", "macro-near", "macro-beginning", "macro_name_buckets"
)
MACRO_SPANS: Final = "macro-span"
"""Under one key, for each series or indicator, the numbers [first, end) of its entries in the catalogue."""
LETTERS: Final = 3
"""How many letters of a word it takes to find it by its beginning."""


class SearchRecord(msgspec.Struct, frozen=True, array_like=True):
    """An organisation, series or indicator as a search weighs it."""

    id: str
    """A service_id, a series key or an indicator code."""
    country: str | None
    names: tuple[str, ...]
    """The legal name first."""
    words: tuple[tuple[str, ...], ...]
    """Of each name, those it is found by."""
    tickers: tuple[str, ...]
    type: str = "organisation"


def code_key(code: str) -> str:
    """Where a ticker symbol, a series key or an indicator code is found among the words."""
    return f"${code}"


def bucket(form: str, buckets: int) -> int:
    """Where a word and its forms with a letter left out are kept."""
    return zlib.crc32(form.encode()) % buckets
