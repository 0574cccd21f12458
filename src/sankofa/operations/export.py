"""GET /v1/export."""

from typing import Final

from sankofa.edition.read.edition import Selection
from sankofa.model.catalogue_rows import ExportRow
from sankofa.model.provenance import SERVICE, source_ref
from sankofa.model.rows import wire
from sankofa.operations.contract import Answer, Call, operation

MEDIA_TYPE: Final = "application/vnd.apache.parquet"
OPEN_FILES: Final = "/open/"
LICENSED_FILES: Final = "/v1/export/files/"


@operation("/v1/export", row=ExportRow, errors=(401, 429, 503))
async def get_export(call: Call) -> Answer:
    """The Parquet files of the current edition, ordered by name, and where to fetch them.

    Open panels are licensed CC-BY-4.0 and are read by their URL with no key. The files of the datasets and of
    the licensed panels need a key of `min_tier`. A URL stays the same from edition to edition; with `edition`
    and an id in its query it names one that is kept, and so does every URL where the question does. Range,
    `If-Range` and HEAD are answered, so that a reader of Parquet fetches no more than it needs.
    """
    built_from = call.edition.manifest["built_from"]
    pinned = f"?edition={call.edition.id}" if call.pinned else ""
    rows = []
    for name in sorted(call.edition.files):
        file = call.edition.files[name]
        folder = OPEN_FILES if file["access"] == "open" else LICENSED_FILES
        rows.append(
            wire.encode(
                ExportRow(
                    name=name,
                    sku=file["sku"],
                    signal_key=file["signal_key"],
                    access=file["access"],
                    license=file["license"],
                    url=f"{call.base_url}{folder}{name}{pinned}",
                    media_type=MEDIA_TYPE,
                    size_bytes=file["size_bytes"],
                    sha256=file["sha256"],
                    row_count=file["row_count"],
                    columns=file["columns"],
                    min_tier=file["min_tier"],
                    updated_at=built_from,
                    source_ref=file.get("source_ref") or source_ref(SERVICE, "edition", name),
                    license_class=file["license_class"],
                    observed_at=built_from,
                )
            )
        )
    return Answer(Selection(rows, len(rows), truncated=False))
