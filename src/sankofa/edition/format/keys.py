"""The layout version, the names of editions, their kinds of rows with their keys, and the records of the
search index.

The name of an edition has the instant of the ledger, its last capture, and a digest of the content.
"""

import struct
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from sankofa.model.text import one_line, search_form

LAYOUT: Final = 24
"""Version of the layout. A reader refuses an edition of another version."""


ENTITIES: Final = "entity"
RELATIONS: Final = "relation"
"""By service_id, its successors, predecessors and parents, each with its days."""
KNOWN: Final = "known-day"
"""The first days of organisations: `ids`, `days` in the same order, and the `dated` numbers."""
TENDER_KNOWN: Final = "tender-known-day"
"""The same for the parties of releases, by the first release that names each."""
STATES: Final = "entity-state"
"""By service_id, the changed rows of an organisation, each with its first day."""
SERIES_KNOWN: Final = "series-known-day"
"""The first day of each entry of the series catalogue; by number of an entry, its days of release."""
TENDERS: Final = "tender"
PROCESSES: Final = "tender_process"
PROCESS_FACTS: Final = "process_facts"
"""By country, the input of indicators from its processes, in the order of their ocids."""
TENDER_FILTERS: Final = "tender_filter"
"""By `filter_key`, the numbers of the rows with a value; by `filter_column`, a number for every row."""
MACRO_ANNUAL: Final = "macro-annual"
MACRO_SERIES: Final = "macro-series"
FACTS: Final = "fact"
FACT_DAYS: Final = "fact_day"
MACRO_FACTS: Final = "fact_macro"
FACT_ORDER: Final = "fact_order"
SERIES_ENTRIES: Final = "series-entry"
SERIES_RELEASES: Final = "series-release"
"""By series key, the releases of all its series, newest first."""
ISSUERS: Final = "issuer"
STATEMENTS: Final = "statement"
FULL_YEARS: Final = "statement-years"
"""Statement rows of full years: the most frequent question, stored apart from the other periods."""
OF_ISSUERS: Final = frozenset(("fundamentals", STATEMENTS, FULL_YEARS))
"""Kinds in which only organisations with figures have a key."""
RESTATEMENTS: Final = "restatement"
RESTATEMENT_LISTS: Final = "restatement-list"
SOURCES: Final = "source"
COVERAGE: Final = "coverage"
COVERAGE_DAYS: Final = "coverage-day"
"""Running totals of coverage and of identifier sources, by day."""

TENDERS_PER_BLOCK: Final = 32
PROCESS_LISTS: Final = 1024
"""Number of lists that the releases of a country are spread over by ocid."""
FACTS_PER_BLOCK: Final = 128
ENTRIES_PER_BLOCK: Final = 64
"""Rows of the series catalogue in a block."""
RELEASES_PER_BLOCK: Final = 128
RANGES_PER_BLOCK: Final = 512
"""Byte ranges of facts in a block of `fact_order`."""

ANNUAL_MODE: Final = "annual"
SERIES_MODE: Final = "series"

ID_TYPES: Final = ("lei", "ticker", "registry", "isin", "figi", "aggregator")
"""In served order. The tag of a crosswalk row is the position of its type."""
FREE: Final = 1
PAID: Final = 2
"""Modes of a crosswalk row: visible to every tier, or to paid tiers."""


def annual_key(country: str, indicator: str) -> str:
    """The key of an indicator in a country; with one of them empty, of the list for the other."""
    return f"{country}|{indicator}"


def series_list(country: str, series_type: str, frequency: str) -> str:
    """The list of the series with all of these (empty: any)."""
    return f"{country}|{series_type}|{frequency}"


def key_list(series: str) -> str:
    return f"={series}"


def macro_key(country: str, measure: str, mode: str) -> str:
    """The facts of one measure of a country."""
    return f"{country}|{measure}|{mode}"


def order_key(country: str, *, dated: bool) -> str:
    """All macro facts of a country in order, or only the dated ones."""
    return f"{country}|dated" if dated else country


def listed_under(country: str | None, exchange: str | None) -> str:
    """The list of the issuers of a country, or with a listing on an exchange, or both."""
    return f"{country or ''}@{exchange or ''}"


def restatement_list(country: str, year: int) -> str:
    """The restatements of a year, for one country or for all (empty)."""
    return f"{country}|{year}"


def coverage_key(country: str | None, sku: str | None) -> str:
    """Coverage of a country, of a dataset, or of both."""
    return f"{country or ''}|{sku or ''}"


def party_key(country: str | None = None, role: str | None = None, service_id: str | None = None) -> str:
    return service_id or f"{country or '*'}|{(role or '*').lower()}"


def searched_words(text: str) -> set[str]:
    """The words of a text that a search of tenders compares."""
    return set(search_form(text).split())


def process_list(country: str, ocid: str) -> tuple[str, int]:
    """The list with the releases of a process, and their hash in it.

    A list has pairs of a hash and the number of a release, so a million processes need few keys.
    """
    hashed = crc32(ocid.encode())
    return f"{country}|{hashed % PROCESS_LISTS:03x}", hashed - (1 << 31)


def filter_key(country: str, field: str, value: str) -> str:
    """The list of the releases of a country with a value in a field, in any case."""
    return f"{country}|{field}|{blake2b(one_line(value).casefold().encode(), digest_size=16).hexdigest()}"


def filter_column(country: str, field: str) -> str:
    """The column with one number for each release of a country: its closing day, the size of its value."""
    return f"{country}|{field}"


def size_of(amount: Decimal | None) -> int:
    """A 32-bit number that grows with the amount; close amounts may share a number. 0 for unknown."""
    if amount is None:
        return 0
    try:
        (bits,) = struct.unpack("<i", struct.pack("<f", abs(amount)))
    except OverflowError:
        bits = 2**31 - 2
    return -bits - 1 if amount < 0 else int(bits) + 1


def panel_kind(key: str) -> str:
    return f"signal-{key}"


def edition_name(clock: str, last_capture: int, digest: str) -> str:
    """The last capture orders the editions of one second; the digest distinguishes their contents."""
    stamp = clock.translate({ord(c): None for c in "-:"})
    return f"{stamp}-{last_capture:05d}-{digest[:10]}"


def last_capture(edition: str) -> datetime:
    """The instant of the last capture in an edition, which its name begins with."""
    return datetime.strptime(edition.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def ledger_position(edition: str) -> int:
    """The last capture in the ledger of an edition; 0 if the name has none."""
    _, _, rest = edition.partition("-")
    capture = rest.partition("-")[0]
    return int(capture) if capture.isascii() and capture.isdigit() else 0


def may_name_a_person(edition: str, last_person_capture: int) -> bool:
    """Whether an edition is older than a capture that proved a party to be a natural person."""
    return last_person_capture > 0 and int(edition.split("-")[1]) < last_person_capture


def may_hold(manifest: Mapping[str, Any], source_ids: Collection[str]) -> bool:
    """Whether an edition may hold rows from one of these sources. Without a list of sources it may."""
    listed = manifest.get("sources")
    return bool(source_ids) if listed is None else not set(listed).isdisjoint(source_ids)


def holds_withdrawn(
    edition: str, manifest: Mapping[str, Any], withdrawals: Iterable[Mapping[str, Any]]
) -> bool:
    """Whether an edition may hold a file that a later manifest withdraws everywhere.

    True if its ledger had the file but not yet the withdrawal.
    """
    return any(
        withdrawal["everywhere"]
        and withdrawal["first_capture"] <= ledger_position(edition) < withdrawal["number"]
        and may_hold(manifest, [withdrawal["source"]])
        for withdrawal in withdrawals
    )


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


def former_scope(country: str) -> str:
    """Among the words, the scope of organisations that were of a country in an earlier record."""
    return f"~{country}"


def bucket(form: str, buckets: int) -> int:
    """The bucket of a word, or of the word with one letter left out."""
    return crc32(form.encode()) % buckets
