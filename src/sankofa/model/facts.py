"""Facts: a value of any dataset in one shape, with its entity and its provenance.

The one place that names a fact and its provenance, for the endpoint and for files in bulk alike: a fact has
the same `fact_id` in every edition and on every machine.
"""

import hashlib
from typing import Final, NamedTuple, Protocol

import msgspec

from sankofa.model.provenance import SKUS

FUND, TENDER, MACRO = SKUS
EXTRACTED: Final = "extracted"
STRUCTURED: Final = "structured"
STRUCTURED_ROUNDED: Final = "structured-rounded"
"""Published as data, the dates of its period rounded to month ends; a shared fact says `structured`."""
METHODS: Final = (EXTRACTED, STRUCTURED, STRUCTURED_ROUNDED)
SHARED_METHODS: Final = (EXTRACTED, STRUCTURED)
AWARD_VALUE: Final = "award_value"
TENDER_VALUE: Final = "tender_value"
IN_AN_ID: Final = ":"
"""Separates dataset, record and measure in a `fact_id`."""


class FactEntity(NamedTuple):
    """The entity a fact is of: an organisation, or a country by its alpha-3 code."""

    entity_id: str
    entity_name: str | None
    country_iso3: str | None


class FactSource(NamedTuple):
    """The provenance of a value, which `provenance_id` refers to."""

    source_ref: str
    license_class: str
    observed_at: str | None
    """None in a locked view."""
    extraction_confidence: float | None = None
    method: str = STRUCTURED


class Sourced(Protocol):
    """A row that says where it is from."""

    @property
    def source_ref(self) -> str: ...
    @property
    def license_class(self) -> str: ...
    @property
    def observed_at(self) -> str | None: ...
    @property
    def extraction_confidence(self) -> float | None: ...
    @property
    def method(self) -> str: ...


def source_of(row: Sourced) -> FactSource:
    """The provenance of a row, in the form a shared fact has it."""
    method = STRUCTURED if row.method == STRUCTURED_ROUNDED else row.method
    return FactSource(row.source_ref, row.license_class, row.observed_at, row.extraction_confidence, method)


class SharedFact(msgspec.Struct, frozen=True, gc=False):
    """A fact on the wire, its fields in served order; `model.rows.FactRow` describes them."""

    fact_id: str
    entity_id: str
    entity_name: str | None
    country_iso3: str | None
    dataset: str
    measure: str
    value: msgspec.Raw
    unit: str | None
    period_end: str
    period_type: str
    available_at: str | None
    vintage: str
    provenance_id: str
    source_ref: str
    license_class: str
    extraction_confidence: float | None
    observed_at: str | None
    method: str


def fact(
    who: FactEntity,
    dataset: str,
    record_ref: str,
    measure: str,
    value: msgspec.Raw,
    unit: str | None,
    period: tuple[str, str],
    available_at: str | None,
    vintage: int,
    source: FactSource,
) -> SharedFact:
    """One vintage of one value; `period` is its last day and what kind of period it is."""
    source_ref, license_class, observed_at, confidence, method = source
    return SharedFact(
        IN_AN_ID.join((dataset, record_ref, measure)), *who, dataset, measure, value, unit, *period,
        available_at, str(vintage), provenance_id(source), source_ref, license_class, confidence,
        observed_at, method,
    )  # fmt: skip


def record_ref(*parts: str) -> str:
    """Identifies a vintage by its content, never by when or in which order it was ingested."""
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=12).hexdigest()


def provenance_id(source: FactSource) -> str:
    """Identifies a provenance: rows from one location in one document, captured at one time, share it."""
    source_ref, license_class, observed_at, confidence, method = source
    score = "" if confidence is None else confidence
    fields = f"{source_ref}\x1f{license_class}\x1f{observed_at or ''}\x1f{score}\x1f{method}"
    return hashlib.blake2b(fields.encode(), digest_size=12).hexdigest()
