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


class FactSource(msgspec.Struct, frozen=True, gc=False):
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
    entity_id, entity_name, country_iso3 = who
    period_end, period_type = period
    return SharedFact(
        f"{dataset}{IN_AN_ID}{record_ref}{IN_AN_ID}{measure}", entity_id, entity_name, country_iso3, dataset,
        measure, value, unit, period_end, period_type, available_at, str(vintage), provenance_id(source),
        source.source_ref, source.license_class, source.extraction_confidence, source.observed_at,
        source.method,
    )  # fmt: skip


def record_ref(*parts: str) -> str:
    """Identifies a vintage by its content, never by when or in which order it was ingested."""
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=12).hexdigest()


def provenance_id(source: FactSource) -> str:
    """Identifies a provenance: rows from one location in one document, captured at one time, share it."""
    score = "" if source.extraction_confidence is None else source.extraction_confidence
    place = f"{source.source_ref}\x1f{source.license_class}\x1f{source.observed_at or ''}"
    fields = f"{place}\x1f{score}\x1f{source.method}"
    return hashlib.blake2b(fields.encode(), digest_size=12).hexdigest()
