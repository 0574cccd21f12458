"""The rows that tell of the service itself: quality, files, usage and changes."""

from decimal import Decimal
from typing import Annotated

import msgspec

from sankofa.model.field_docs import doc, instant, one_of
from sankofa.model.provenance import SKUS
from sankofa.model.rows import Row

FOLLOWED = ("crosswalk", "entities", "fundamentals", "macro-annual", "macro-series", "tenders")
"""The datasets whose changes can be followed, in the order in which changes are listed."""


class QualityRow(Row, frozen=True, kw_only=True):
    """One measure of a dataset's coverage or freshness."""

    sku: Annotated[str, one_of(SKUS, "The dataset.")]
    measure: Annotated[str, doc("Name of the measure.")]
    value: Annotated[Decimal | None, doc("Measured value; null where not measured.")]
    floor: Annotated[Decimal | None, doc("Minimum, or for age, rejects and restatements the maximum.")]
    status: Annotated[
        str | None,
        one_of(
            ("PASS", "FAIL", "UNMEASURED", None),
            "Null where there is no floor; a floor not measured is never a pass.",
        ),
    ]
    measured_at: Annotated[str, instant("The instant of the last capture.")]


class ExportRow(Row, frozen=True, kw_only=True):
    """One published Parquet file."""

    name: Annotated[str, doc("Name of the file; a large table has several.")]
    sku: Annotated[str | None, one_of((*SKUS, None), "The dataset it is of; null where it is of all.")]
    signal_key: Annotated[str | None, doc("Signal panel in the file; null for other tables.")]
    access: Annotated[str, one_of(("open", "licensed"), "Open files need no key.")]
    license: Annotated[str, doc("Licence of the file: SPDX id, or the service's own reference.")]
    url: Annotated[str, doc("Web address of the file.", extra_json_schema={"format": "uri"})]
    media_type: Annotated[str, doc("Media type: application/vnd.apache.parquet.")]
    size_bytes: Annotated[int, doc("Size of the file in bytes.", ge=0)]
    sha256: Annotated[str, doc("SHA-256 of the file, which is also its ETag.", pattern="^[0-9a-f]{64}$")]
    row_count: Annotated[int, doc("Number of rows in the file.", ge=0)]
    columns: Annotated[list[str], doc("Names of the columns, in order.")]
    min_tier: Annotated[
        str | None,
        one_of(("starter", None), "The least tier of a key that may fetch it; null where none is needed."),
    ]
    updated_at: Annotated[str, instant("The instant of the edition's last capture.")]


class UsageRow(Row, frozen=True, kw_only=True):
    """Where a key stands."""

    tier: Annotated[str, doc("Tier of the key: sample, starter or professional.")]
    minute_limit: Annotated[int, doc("Requests per UTC minute.", ge=0)]
    minute_used: Annotated[int, doc("Requests in this minute, including this one.", ge=0)]
    minute_reset_at: Annotated[str, instant("When the next minute begins.")]
    month_limit: Annotated[int, doc("Requests per UTC calendar month.", ge=0)]
    month_used: Annotated[int, doc("Requests in this month, including this one.", ge=0)]
    month_reset_at: Annotated[str, instant("When the next month begins.")]
    expires_at: Annotated[
        str | None, doc("Last second in which the key is valid; null where it does not expire.")
    ]


class ChangeRow(Row, frozen=True, kw_only=True):
    """One row that is not as it was in an earlier edition."""

    dataset: Annotated[str, one_of(FOLLOWED, "Which rows it is one of.")]
    change: Annotated[
        str, one_of(("added", "changed", "removed"), "Removed: withheld now, or no longer served.")
    ]
    key: Annotated[list[str], doc("Key of the row, unique in its dataset.")]
    row: Annotated[
        msgspec.Raw,
        doc(
            "Row as its endpoint serves it; null where it was removed.",
            extra_json_schema={"type": ["object", "null"]},
        ),
    ]
