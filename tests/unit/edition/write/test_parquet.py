"""Rows as Arrow columns, and tables as files."""

from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sankofa.edition.format.columns import encode_columns, extra_column, field_types, in_force
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.write import parquet
from sankofa.edition.write.parquet_file import ParquetColumns
from sankofa.edition.write.tables import Table, tables
from sankofa.model.days import FOREVER
from sankofa.model.rows import FundamentalsRow, MacroSeriesRow, TenderPartyRow, TenderRow, wire


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
@pytest.mark.parametrize(
    "figure",
    ["9007199254740993", "0.00000000000000000000012345", "-1234567890123456789012345678901234567890.5"],
)
def test_every_digit_of_a_figure_is_kept(figure: str) -> None:
    for value in (Decimal(figure), msgspec.Raw(figure.encode())):
        batch = ParquetColumns(MacroSeriesRow).table([row(1, value)])
        assert batch.column("value").to_pylist() == [figure]
        assert batch.column("value_float").to_pylist() == [float(figure)]


def test_unknown_is_null_and_instants_are_in_utc() -> None:
    batch = ParquetColumns(MacroSeriesRow).table([row(1, msgspec.Raw(b"null"))])
    found = batch.to_pylist()[0]
    assert found["value"] is found["value_float"] is found["country"] is None
    assert found["observed_at"] == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_types_follow_the_fields() -> None:
    schema = ParquetColumns(TenderRow).schema
    assert schema.field("tag").type == pa.list_(pa.string())
    assert schema.field("release").type == pa.string()
    assert schema.field("release_date").type == pa.timestamp("us", tz="UTC")
    assert pa.types.is_struct(ParquetColumns(TenderPartyRow).schema.field("identifier").type)
    assert ParquetColumns(FundamentalsRow).schema.field("fiscal_year").type == pa.int64()
    assert ParquetColumns(FundamentalsRow).names[-3:] == ["source_ref", "license_class", "observed_at"]


def test_an_instant_finer_than_a_microsecond_is_cut() -> None:
    fine = msgspec.structs.replace(row(1), observed_at="2024-01-02T03:04:05.123456789Z")
    found = ParquetColumns(MacroSeriesRow).table([fine]).column("observed_at").to_pylist()
    assert found == [datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)]


def test_kept_columns_become_the_columns_that_rows_become() -> None:
    def figure(number: int, value: Decimal | None) -> FundamentalsRow:
        return FundamentalsRow(
            service_id="DC1",
            record_ref=f"ref-{number}",
            line_item="revenue",
            concept=None,
            value_reported=value,
            currency_reported="USD",
            unit="USD",
            period_start=None,
            period_end=date(2020 + number, 12, 31),
            period_type="FY",
            fiscal_year=2020 + number,
            available_at=date(2021 + number, 3, 1),
            available_instant=f"2021-03-01T0{number}:00:00Z" if number else None,
            available_precision="second" if number else "day",
            tradable_from=date(2021 + number, 3, 2),
            vintage=1,
            restated=False,
            split_ratio=Decimal("1.5") if number else None,
            superseded_at=None,
            superseding_record_ref=None,
            extraction_confidence=0.9 if number else None,
            method="structured",
            source_ref=f"document#{number}",
            license_class="public-domain",
            observed_at="2026-01-02T03:04:05Z",
        )

    fine = {"observed_at": "2024-01-02T03:04:05.123456789Z"}
    figures = [Decimal("1E+30"), Decimal("-0.10"), None, Decimal("9007199254740993")]
    rows = [figure(number, value) for number, value in enumerate(figures)]
    for told in (rows, [msgspec.structs.replace(one, **fine) for one in rows]):
        entries = [Entry(wire.encode(one), 1 + n, (FOREVER, 9)[n % 2]) for n, one in enumerate(told)]
        kept = encode_columns(FundamentalsRow, told, entries, {"name": lambda row: row.record_ref})
        flat = in_force(kept)
        assert flat.column(extra_column("name")).to_pylist() == [one.record_ref for one in told[::2]]
        columns = ParquetColumns(FundamentalsRow)
        assert columns.of_flat(flat).combine_chunks().equals(columns.table(told[::2]).combine_chunks())


def test_every_table_has_columns_and_says_what_it_is() -> None:
    for table in tables():
        assert ParquetColumns(table.row).names
        assert table.summary
        assert table.methodology or not table.signal_key


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
    """Tells which sources are owed, and how many files there were when that was asked."""
    return lambda named: f"{', '.join(sorted(named))} of {len(list(folder.iterdir()))}"


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize(
    ("derived", "owed"),
    [
        (False, ["a of 1", "a, b of 2", "b of 3"]),  # closed where it is full
        (True, ["a of 3", "a, b of 3", "b of 3"]),  # closed where its dataset has named what it is made of
    ],
)
def test_each_file_of_a_large_table_tells_of_its_own_rows(
    tmp_path: Path, derived: bool, owed: list[str]
) -> None:
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


@pytest.mark.usefixtures("small_groups")
def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    one, other = (written(tmp_path / name, map(row, range(305)), 1000) for name in "ab")
    assert one == other
    assert (tmp_path / "a" / "some.parquet").read_bytes() == (tmp_path / "b" / "some.parquet").read_bytes()


def test_a_table_without_rows_is_a_file_all_the_same(tmp_path: Path) -> None:
    (file,) = written(tmp_path / "a", iter(()), 1000)
    assert (file["row_count"], file["license_class"]) == (0, "public-domain")
    assert pq.read_table(tmp_path / "a" / "some.parquet").column_names == file["columns"]


def test_a_figure_is_told_by_its_type_and_says_so_in_its_description() -> None:
    decimals = [field for table in tables() for field in field_types(table.row) if field.type is Decimal]
    assert any(field.is_figure for field in decimals)
    assert any(not field.is_figure for field in decimals)
    for field in decimals:
        assert field.is_figure == ("every digit" in field.description.lower()), field
