"""The layout version, the kinds of rows in an edition, and the keys that lead to them."""

from typing import Final
from zlib import crc32

from sankofa.model.text import search_form

LAYOUT: Final = 10
"""A reader refuses an edition of another."""


ENTITIES: Final = "entity"
PREDECESSORS: Final = "predecessor"
TENDERS: Final = "tender"
PROCESSES: Final = "tender_process"
MACRO_ANNUAL: Final = "macro-annual"
MACRO_SERIES: Final = "macro-series"
FACTS: Final = "fact"
FACT_DAYS: Final = "fact_day"
MACRO_FACTS: Final = "fact_macro"
FACT_ORDER: Final = "fact_order"
SERIES_ENTRIES: Final = "series-entry"
SERIES_RELEASES: Final = "series-release"
ISSUERS: Final = "issuer"
STATEMENTS: Final = "statement"
FULL_YEARS: Final = "statement-years"
"""The rows of statements that are of full years: asked for most, and read without looking at the others."""
SOURCES: Final = "source"
COVERAGE: Final = "coverage"

TENDERS_PER_BLOCK: Final = 32
PROCESS_LISTS: Final = 1024
"""Lists that the releases of a country are spread over by their ocid."""
FACTS_PER_BLOCK: Final = 128
ENTRIES_PER_BLOCK: Final = 64
"""Rows of the catalogue of series in a block."""
RANGES_PER_BLOCK: Final = 512
"""Byte ranges of facts in a block of `fact_order`."""

ANNUAL_MODE: Final = "annual"
SERIES_MODE: Final = "series"

ID_TYPES: Final = ("lei", "ticker", "registry", "isin", "figi", "aggregator")
"""In served order; the tag of a row of the crosswalk is the number of its type."""
FREE: Final = 1
PAID: Final = 2
"""The modes by which a row of the crosswalk is seen: by every tier, or by the paid ones."""


def annual_key(country: str, indicator: str) -> str:
    """Of an indicator in a country, or of the list of those that any of the two admits (empty: every one)."""
    return f"{country}|{indicator}"


def series_list(country: str, series_type: str, frequency: str) -> str:
    """The list of the series of which all of these hold (empty: every one)."""
    return f"{country}|{series_type}|{frequency}"


def key_list(series: str) -> str:
    """The list of the series under one key."""
    return f"={series}"


def macro_key(country: str, measure: str, mode: str) -> str:
    """The facts of one measure of a country."""
    return f"{country}|{measure}|{mode}"


def order_key(country: str, *, dated: bool) -> str:
    """All macro facts of a country in one order, or those that are dated."""
    return f"{country}|dated" if dated else country


def listed_under(country: str | None, exchange: str | None) -> str:
    """The list of the issuers of a country, or with a listing on an exchange, or both."""
    return f"{country or ''}@{exchange or ''}"


def coverage_key(country: str | None, sku: str | None) -> str:
    """What there is for a country, or of a dataset, or both."""
    return f"{country or ''}|{sku or ''}"


def party_key(country: str | None = None, role: str | None = None, service_id: str | None = None) -> str:
    """What a question about parties is looked up by."""
    return service_id or f"{country or '*'}|{(role or '*').lower()}"


def searched_words(text: str) -> set[str]:
    """The words a tender is found by, and a query is read as."""
    return set(search_form(text).split())


def process_list(country: str, ocid: str) -> tuple[str, int]:
    """The list that has the releases of a process, and the hash that they are marked with in it.

    A list is pairs of a hash and the number of a release, so that a million processes are few keys.
    """
    hashed = crc32(ocid.encode())
    return f"{country}|{hashed % PROCESS_LISTS:03x}", hashed - (1 << 31)


def panel_kind(key: str) -> str:
    """The kind of the rows of a panel."""
    return f"signal-{key}"
