"""Records of the search index, the kinds that store them, and the buckets of words."""

import zlib
from typing import Final, NamedTuple

import msgspec


class SearchIndex(NamedTuple):
    """The kinds of one index: records by number, and words that lead to numbers."""

    records: str
    """A number leads to a record."""
    words: str
    """A word leads to the numbers of the records that have it, as 32-bit integers in order.

    The index of the block has a byte for each record, padded to whole integers: the number of words of its
    name, or 0 if it has several names or a repeated word. It is empty if all bytes are 0.
    """
    near: str
    """A bucket leads to words that differ by one letter, for misspellings."""
    beginnings: str
    """The first letters of words lead to the words, most frequent first."""
    buckets: str
    """The manifest member with the number of buckets."""
    in_order_of_ids: bool = False
    """Whether records are numbered in the order of their ids."""


ORGANISATIONS: Final = SearchIndex("named", "word", "near", "beginning", "name_buckets", in_order_of_ids=True)
MACRO_ITEMS: Final = SearchIndex(
    "macro-named", "macro-word", "macro-near", "macro-beginning", "macro_name_buckets"
)
MACRO_SPANS: Final = "macro-span"
"""One key leads to the numbers [first, end) of the catalogue entries of each series or indicator."""
MOST_COUNTED: Final = 255
"""The most words of a name whose number fits the index."""
LETTERS: Final = 3
"""Letters needed to find a word by its beginning."""


class SearchRecord(msgspec.Struct, frozen=True, array_like=True):
    """An organisation, series or indicator in the search index."""

    id: str
    """A service_id, a series key or an indicator code."""
    country: str | None
    names: tuple[str, ...]
    """The legal name first."""
    words: tuple[tuple[str, ...], ...]
    """The search words of each name."""
    tickers: tuple[str, ...]
    type: str = "organisation"


def code_key(code: str) -> str:
    """The key of a ticker symbol, a series key or an indicator code among the words."""
    return f"${code}"


def bucket(form: str, buckets: int) -> int:
    """The bucket of a word, or of a form of it with one letter left out."""
    return zlib.crc32(form.encode()) % buckets
