"""SQLite to Parquet, in the environment of the peers: parquet.py FACTS.db FACTS.parquet.

The file is sorted by issuer, so that the statistics of a row group show whether to read it. ROAPI answers
fastest from this layout: smaller groups cost more in reading the footer than they save; compression, a page
index and bloom filters only cost.
"""

import sqlite3
import sys

import pyarrow
from pyarrow import parquet

_TYPES = {
    "value_reported": pyarrow.float64(),
    "extraction_confidence": pyarrow.float64(),
    "fiscal_year": pyarrow.int64(),
    "vintage": pyarrow.int64(),
    "restated": pyarrow.bool_(),
}
_GROUP = 16_384


def main(source: str, target: str) -> None:
    rows = sqlite3.connect(f"file:{source}?mode=ro", uri=True).execute(
        "SELECT * FROM facts ORDER BY service_id"
    )
    names = [column[0] for column in rows.description]
    schema = pyarrow.schema([(name, _TYPES.get(name, pyarrow.string())) for name in names])
    with parquet.ParquetWriter(target, schema, compression="none") as writer:
        while batch := rows.fetchmany(_GROUP):
            columns = [
                pyarrow.array(map(bool, values) if name == "restated" else values, schema.field(name).type)
                for name, values in zip(names, zip(*batch, strict=True), strict=True)
            ]
            writer.write_table(pyarrow.table(columns, schema=schema), row_group_size=_GROUP)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
