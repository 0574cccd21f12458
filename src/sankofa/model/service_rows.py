"""The rows that tell of the service itself: quality, files, usage and changes."""

from decimal import Decimal
from typing import Annotated

import msgspec
from msgspec import Meta

from sankofa.model.provenance import SKUS
from sankofa.model.rows import Row

FOLLOWED = ("crosswalk", "entities", "fundamentals", "macro-annual", "macro-series", "tenders")
"""The datasets whose changes can be followed, in the order in which changes are listed."""


class QualityRow(Row, frozen=True, kw_only=True):
    """One measure of a dataset's coverage or freshness."""

    sku: Annotated[str, Meta(description="The dataset.", extra_json_schema={"enum": list(SKUS)})]
    measure: Annotated[str, Meta(description="What is measured.")]
    value: Annotated[Decimal | None, Meta(description="Null where it was not measured.")]
    floor: Annotated[
        Decimal | None, Meta(description="The least it may be (of age, rejects and restatements: the most).")
    ]
    status: Annotated[
        str | None,
        Meta(
            description="Null where there is no floor; a floor not measured is never a pass.",
            extra_json_schema={"enum": ["PASS", "FAIL", "UNMEASURED", None]},
        ),
    ]
    measured_at: Annotated[
        str, Meta(description="The instant of the last capture.", extra_json_schema={"format": "date-time"})
    ]


class ExportRow(Row, frozen=True, kw_only=True):
    """One published Parquet file."""

    name: Annotated[str, Meta(description="Of the file; a large table is several.")]
    sku: Annotated[
        str | None,
        Meta(
            description="The dataset it is of; null where it is of all.",
            extra_json_schema={"enum": [*SKUS, None]},
        ),
    ]
    signal_key: Annotated[str | None, Meta(description="The signal panel it is; null where it is none.")]
    access: Annotated[
        str,
        Meta(description="Open files need no key.", extra_json_schema={"enum": ["open", "licensed"]}),
    ]
    license: Annotated[str, Meta(description="SPDX id, or a reference of ours.")]
    url: Annotated[str, Meta(description="Where it is fetched.", extra_json_schema={"format": "uri"})]
    media_type: Annotated[str, Meta(description="application/vnd.apache.parquet.")]
    size_bytes: Annotated[int, Meta(description="Of the file.", ge=0)]
    sha256: Annotated[str, Meta(description="Of the file; its ETag too.", pattern="^[0-9a-f]{64}$")]
    row_count: Annotated[int, Meta(description="Rows in it.", ge=0)]
    columns: Annotated[list[str], Meta(description="Names of its columns, in order.")]
    min_tier: Annotated[
        str | None,
        Meta(
            description="The least tier of a key that may fetch it; null where none is needed.",
            extra_json_schema={"enum": ["starter", None]},
        ),
    ]
    updated_at: Annotated[
        str,
        Meta(
            description="The instant of the edition's last capture.",
            extra_json_schema={"format": "date-time"},
        ),
    ]


class UsageRow(Row, frozen=True, kw_only=True):
    """Where a key stands."""

    tier: Annotated[str, Meta(description="Of the key: sample, starter or professional.")]
    minute_limit: Annotated[int, Meta(description="Requests per UTC minute.", ge=0)]
    minute_used: Annotated[int, Meta(description="Requests in this minute, this one included.", ge=0)]
    minute_reset_at: Annotated[
        str, Meta(description="When the next minute begins.", extra_json_schema={"format": "date-time"})
    ]
    month_limit: Annotated[int, Meta(description="Requests per UTC calendar month.", ge=0)]
    month_used: Annotated[int, Meta(description="Requests in this month, this one included.", ge=0)]
    month_reset_at: Annotated[
        str, Meta(description="When the next month begins.", extra_json_schema={"format": "date-time"})
    ]
    expires_at: Annotated[
        str | None,
        Meta(description="The last second in which the key is valid; null where it does not expire."),
    ]


class ChangeRow(Row, frozen=True, kw_only=True):
    """One row that is not as it was in an earlier edition."""

    dataset: Annotated[
        str, Meta(description="Which rows it is one of.", extra_json_schema={"enum": list(FOLLOWED)})
    ]
    change: Annotated[
        str,
        Meta(
            description="Removed: withheld now, or no longer served.",
            extra_json_schema={"enum": ["added", "changed", "removed"]},
        ),
    ]
    key: Annotated[list[str], Meta(description="What tells the row apart from every other of its dataset.")]
    row: Annotated[
        msgspec.Raw,
        Meta(
            description="The row as its endpoint serves it; null where it was removed.",
            extra_json_schema={"type": ["object", "null"]},
        ),
    ]
