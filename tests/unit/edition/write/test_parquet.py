"""Rows as Arrow columns, and tables as files."""

from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.edition.write import parquet
from sankofa.edition.write.parquet_file import ParquetColumns
from sankofa.edition.write.tables import Table
from sankofa.model.rows import MacroSeriesRow
from tests.every import every


def row(number: int, value: Any = None) -> MacroSeriesRow:
    return MacroSeriesRow(
        series="FX.EUR.ZAR",
        series_type="fx",
        frequency="daily",
        country=None,
        date=date.fromordinal(730_000 + number),
        value=Decimal(number) if value is None else value,
        note=None,
        unit="ZAR",
        available_at=date(2024, 1, 2),
        vintage=1,
        source_ref=f"file#{number}",
        license_class="cc-by",
        observed_at="2024-01-02T03:04:05Z",
    )


@pytest.mark.rule("EXP-5")
@every(
    "figure",
    ["9007199254740993", "0.00000000000000000000012345", "-1234567890123456789012345678901234567890.5"],
)
def test_every_digit_of_a_figure_is_kept(figure: str) -> None:
    for value in (Decimal(figure), msgspec.Raw(figure.encode())):
        batch = ParquetColumns(MacroSeriesRow).table([row(1, value)])
        assert batch.column("value").to_pylist() == [figure]
        assert batch.column("value_float").to_pylist() == [float(figure)]


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_ROWS_IN_A_BATCH", 10)
    monkeypatch.setattr(parquet, "_ROWS_IN_A_GROUP", 40)


def written(
    folder: Path, rows: Iterator[Any], rows_in_a_file: int, *, derived: bool = False
) -> list[dict[str, Any]]:
    folder.mkdir()
    table = Table("some", MacroSeriesRow, "AF-MACRO", "Some rows.", sorted_by=("date",), derived=derived)
    with ThreadPoolExecutor(1) as encoder:
        writer = parquet.TableWriter(folder, table, encoder, rows_in_a_file, told(folder))
        for one in rows:
            writer.add(one)
        writer.flush()
        return writer.finish()


def told(folder: Path) -> Callable[[Set[str]], str]:
    """Reports the sources so far, and how many files existed at each call."""
    return lambda named: f"{', '.join(sorted(named))} of {len(list(folder.iterdir()))}"


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize(
    ("derived", "owed"),
    [
        (False, ["a of 1", "a, b of 2", "b of 3"]),  # closed when it is full
        (True, ["a of 3", "a, b of 3", "b of 3"]),  # closed when its dataset has named its sources
    ],
)
def test_each_file_of_a_large_table_describes_its_own_rows(tmp_path: Path, derived: bool, owed: list[str]):
    own = {"a": "public-domain", "b": "cc-by"}
    rows = [
        msgspec.structs.replace(row(n), source_ref=f"{source}:file#{n}", license_class=own[source])
        for n, source in enumerate("a" * 120 + "b" * 120)
    ]
    files = written(tmp_path / "a", iter(rows), 80, derived=derived)
    assert [file["source_ref"] for file in files] == ["a:file#0", "a:file#80", "b:file#160"]
    assert [file["license_class"] for file in files] == ["public-domain", "cc-by", "cc-by"]
    metadata = [pq.read_metadata(tmp_path / "a" / file["name"]).metadata for file in files]
    assert [one[b"attribution"].decode() for one in metadata] == owed
    assert [one[b"license"].decode() for one in metadata] == [file["license"] for file in files]


@given(st.lists(st.integers(0, 60), max_size=9))
def test_a_row_group_ends_when_it_is_full_or_with_a_partition_that_half_fills_it(partitions: list[int]):
    full, half = 40, 20
    expected, waiting = list[int](), 0
    for size in partitions:
        expected += [full] * ((waiting + size) // full)
        waiting = (waiting + size) % full
        if waiting >= half:
            expected.append(waiting)
            waiting = 0
    with (
        TemporaryDirectory() as name,
        ThreadPoolExecutor(1) as encoder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(parquet, "_ROWS_IN_A_BATCH", 10)
        patch.setattr(parquet, "_ROWS_IN_A_GROUP", full)
        patch.setattr(parquet, "_ENOUGH_ROWS", half)
        table = Table("some", MacroSeriesRow, "AF-MACRO", "Some rows.")
        writer = parquet.TableWriter(Path(name), table, encoder, 10_000, told(Path(name)))
        for size in partitions:
            for number in range(size):
                writer.add(row(number))
            writer.end_partition()
        writer.flush()
        writer.finish()
        metadata = pq.read_metadata(Path(name) / "some.parquet")
    sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert sizes == expected + [waiting] * bool(waiting)


@pytest.mark.usefixtures("small_groups")
def test_a_large_table_is_several_files(tmp_path: Path) -> None:
    files = written(tmp_path / "a", map(row, range(305)), 80)
    assert [file["name"] for file in files] == [f"some-000{n}.parquet" for n in (1, 2, 3, 4)]
    assert [file["row_count"] for file in files] == [80, 80, 80, 65]
    read = pa.concat_tables(pq.read_table(tmp_path / "a" / file["name"]) for file in files)
    assert read.column("source_ref").to_pylist() == [f"file#{n}" for n in range(305)]
    metadata = pq.read_metadata(tmp_path / "a" / files[0]["name"])
    assert metadata.num_row_groups == 2
    assert metadata.row_group(1).column(4).statistics.min == date.fromordinal(730_040)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [file["name"] for file in files]
