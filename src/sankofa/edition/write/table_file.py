"""Writes one Parquet file of a table: its rows, and what its end says of them.

The same rows give the same bytes: nothing in a file tells when or where it was written, or for which edition.
"""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import compute

from sankofa.edition.write.parquet_columns import ParquetColumns
from sankofa.edition.write.tables import MIN_TIER, Table
from sankofa.model.provenance import LICENSE_NOTICE, SERVICE, file_license, source_ref, strictest

_PAGES: Final = {"min_chunk_size": 32 << 10, "max_chunk_size": 128 << 10}
"""Pages end where the values say so: a row more changes one page of a column, not every page behind it, and a
node that follows pulls little (docs/decisions/following-editions.md). Files are larger by 2%."""
_NO_DICTIONARY: Final = ("record_ref", "superseding_record_ref", "fact_id", "provenance_id", "release")
"""Columns whose values hardly ever come twice. Figures do now and then, yet a dictionary of them is soon full
and takes twice as long."""
LONG_TEXT: Final = ("release",)
"""What more effort makes smaller by a twentieth; other columns get no smaller, and take a third longer."""
_NO_STATISTICS: Final = ("release",)


class TableFile:
    """One file, under a name for the time being. Where its pages are is in memory until it is closed."""

    def __init__(self, path: Path, table: Table, columns: ParquetColumns) -> None:
        self.rows = 0
        self.sources: set[str] = set()
        """The sources that the rows name."""
        self.closed = False
        self._path = path
        self._table = table
        self._columns = columns
        self._classes: set[str] = set()
        self._first_ref = source_ref(SERVICE, "edition", table.name)
        self._file = _Summed(path)
        leaves = [leaf for field in columns.schema for leaf in _leaves(field)]
        distinct = columns.figures.union(_NO_DICTIONARY)
        self._parquet = pq.ParquetWriter(
            pa.PythonFile(self._file, mode="w"),
            columns.schema,
            version="2.6",
            compression="zstd",
            compression_level={leaf: 3 if leaf in LONG_TEXT else 1 for leaf in leaves},
            use_dictionary=[leaf for leaf in leaves if leaf not in distinct],
            write_statistics=[leaf for leaf in leaves if leaf not in _NO_STATISTICS],
            write_page_index=True,
            use_content_defined_chunking=_PAGES,
            sorting_columns=[
                pq.SortingColumn(leaves.index(name.lstrip("-")), descending=name.startswith("-"))
                for name in table.sorted_by
            ],
            store_schema=False,
        )

    def add(self, group: pa.Table) -> None:
        """Take down what a row group has that is to be written."""
        self.rows += group.num_rows
        self._note_sources(group.column("source_ref"))
        self._classes.update(group.column("license_class").unique().to_pylist())

    def _note_sources(self, refs: pa.ChunkedArray) -> None:
        """Take down which sources the rows name: one look at all of them for each source."""
        if not self.sources:
            self._first_ref = refs[0].as_py()
        while len(refs):
            source, colon, _ = refs[0].as_py().partition(":")
            self.sources.add(source)
            own = compute.starts_with(refs, pattern=source + colon)
            if compute.all(own).as_py():  # most often: nothing has to be copied
                return
            refs = refs.filter(compute.invert(own))

    def write(self, group: pa.Table) -> None:
        self._parquet.write_table(group, row_group_size=group.num_rows)
        self._file.flush()

    def close(self, attribution: str) -> None:
        """Write its end, with what there is to say of all its rows."""
        self._parquet.add_key_value_metadata(self._metadata(attribution))
        self._parquet.close()
        self._file.close()
        self.closed = True

    def abandon(self) -> None:
        with suppress(OSError):  # on a full disk the end cannot be written
            self._parquet.close()
        with suppress(OSError):
            self._file.close()

    def name(self, stem: str, left_out: int) -> dict[str, Any]:
        """Give the closed file its name; what the manifest says of it. `left_out` counts the whole table."""
        name = f"{stem}.parquet"
        self._path.rename(self._path.with_name(name))
        table = self._table
        return {
            "name": name,
            "sku": table.sku,
            "signal_key": table.signal_key,
            "access": "open" if table.open else "licensed",
            "license": self._license,
            "size_bytes": self._file.tell(),
            "sha256": self._file.sum.hexdigest(),
            "row_count": self.rows,
            "columns": self._columns.names,
            "min_tier": None if table.open else MIN_TIER,
            "license_class": strictest(self._classes or ("public-domain",)),
            "source_ref": self._first_ref,
            "rows_left_out": left_out,
        }

    @property
    def _license(self) -> str:
        return file_license(self._classes, keyed=not self._table.open)

    def _metadata(self, attribution: str) -> dict[str, str]:
        table = self._table
        return {
            "name": table.name,
            "sku": table.sku or "",
            "signal_key": table.signal_key or "",
            "license": self._license,
            "attribution": attribution,
            "notice": LICENSE_NOTICE,
            "methodology": table.methodology or table.summary,
            "columns": json.dumps(self._columns.descriptions),
        }


class _Summed:
    """A file that is only written, and summed up as it is."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self.sum = hashlib.sha256()
        self._written = 0

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, data: bytes) -> int:
        self.sum.update(data)
        self._written += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _leaves(field: pa.Field, path: str = "") -> list[str]:
    """The columns as Parquet has them: of a list or struct, what is in it."""
    path = f"{path}.{field.name}" if path else field.name
    if pa.types.is_list(field.type):
        return _leaves(field.type.value_field.with_name("element"), f"{path}.list")
    if pa.types.is_struct(field.type):
        return [leaf for part in field.type for leaf in _leaves(part, path)]
    return [path]
