"""`ingest` of xlsx workbooks: the rows of our templates, every cell exact, and refusals."""

import datetime
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.live import run, succeed
from tests.spec.ingesting import HEADER, counts, ledger_facts, rejects, source_entry, write
from tests.spec.ingesting import home as home

COLUMNS = HEADER.split(",")
DAY = datetime.date
Sheet = Any
pytestmark = pytest.mark.rule("ING-15")


@pytest.fixture
def source(home: Path) -> Path:
    (home / "sources.toml").write_text(source_entry("own", "filings-csv"))
    return home


def row(value: object, document: str = "afs-2022", **cells: object) -> list[object]:
    values = {
        "entity": "ticker:JSE:TST",
        "line_item": "revenue",
        "value": value,
        "currency": "ZAR",
        "period_start": DAY(2022, 1, 1),
        "period_end": DAY(2022, 12, 31),
        "period_type": "FY",
        "available_at": DAY(2023, 3, 1),
        "document": document,
    } | cells
    return [values.get(column) for column in COLUMNS]


def save(
    path: Path, rows: Iterable[list[object]], change: Callable[[Sheet], object] = lambda sheet: None
) -> Path:
    book = openpyxl.Workbook()
    for line in ([*COLUMNS], *rows):
        book.active.append(line)
    change(book.active)
    book.save(path)
    return path


def edited(path: Path, member: str, old: str, new: str) -> Path:
    """The workbook with other text in a member, which openpyxl would not write."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert old.encode() in members[member]
    members[member] = members[member].replace(old.encode(), new.encode(), 1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def same_as_csv(source: Path, tmp_path: Path, book: Path, values: list[str]) -> None:
    """Every figure of the workbook equals that of a CSV file with these texts."""
    done = succeed(source, "ingest", "own", book)
    assert counts(done)["appended"] == len(values)
    lines = [
        f"ticker:JSE:TST,item_{n},{value},ZAR,2022-01-01,2022-12-31,FY,2023-03-01,afs-2022,,"
        for n, value in enumerate(values)
    ]
    done = run(source, "ingest", "own", write(tmp_path / "same.csv", *lines))
    assert (counts(done)["read"], counts(done)["unchanged"]) == (len(values), len(values))


def items(*values: object) -> list[list[object]]:
    return [row(value, line_item=f"item_{n}") for n, value in enumerate(values)]


def test_every_cell_is_the_exact_text_that_a_csv_file_would_have(source: Path, tmp_path: Path) -> None:
    texts = ["1200000", "0.1", "-3.25", "1234567.891", "0", "12.5", "0.00000012", "0.07"]
    values: list[object] = [12e5, 0.1, -3.25, 1234567.891, 0, " 12.5 ", 1.2e-7, 0.07]
    # Values that openpyxl rounds; and 1.1 as Excel writes it, with the digits of the float.
    written = ["12345678901234567891", "-9007199254740993", "123456789012345678.12", "1.1000000000000001"]
    written += ["0.30000000000000004"]  # the sum of 0.1 and 0.2, which a spreadsheet shows as 0.3

    def formatted(sheet: Sheet) -> None:
        sheet["C9"].number_format = "0%"
        for cell in ("C2", "C5"):
            sheet[cell].number_format = "#,##0.00"

    book = save(tmp_path / "a.xlsx", items(*values, *range(801, 806)), formatted)
    for number, text in enumerate(written, 801):
        edited(book, "xl/worksheets/sheet1.xml", f"<v>{number}</v>", f"<v>{text}</v>")
    same_as_csv(source, tmp_path, book, [*texts, *written[:3], "1.1", "0.3"])


def test_the_first_sheet_with_the_columns_is_read_and_blank_rows_are_skipped(
    source: Path, tmp_path: Path
) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Notes", "value"])
    sheet = book.create_sheet("Figures")
    sheet["B2"] = "Figures of the year"
    sheet.merge_cells("B2:F2")
    lines: list[list[object]] = [[*COLUMNS], *items(1), [None], *items(2, 3)[1:]]
    for number, line in enumerate(lines, 4):
        for column, cell in enumerate(line, 3):
            sheet.cell(number, column, cell)
    sheet["C30"].number_format = "0.00"  # an empty cell with a format
    other = book.create_sheet("More")
    other.append([*COLUMNS])
    other.append(row(99))
    book.save(tmp_path / "a.xlsx")
    same_as_csv(source, tmp_path, tmp_path / "a.xlsx", ["1", "3"])


def test_a_cell_without_a_certain_value_rejects_its_row(source: Path, tmp_path: Path) -> None:
    def changed(sheet: Sheet) -> None:
        sheet["C3"] = "#N/A"
        sheet["C3"].data_type = "e"
        sheet["C4"] = "=C2*2"  # openpyxl writes no result
        sheet["L7"] = "a note"
        sheet.merge_cells("A8:A9")
        sheet["F10"] = datetime.datetime(2022, 12, 31, 12, 30)  # noqa: DTZ001 - a cell has no zone
        sheet["F11"] = 44926
        sheet["F11"].number_format = "General"
        sheet.merge_cells("A12:K12")

    rows: list[list[object]] = [
        *items(1, 2, 3, True, DAY(2022, 1, 1), 6, 7, 8, 9, 10),
        ["Source: annual report"],
    ]
    done = succeed(source, "ingest", "own", save(tmp_path / "a.xlsx", rows, changed))
    assert [(one["position"], one["reason"]) for one in rejects(done)] == [
        ("sheet 1 row 3", "value: the error #N/A"),
        ("sheet 1 row 4", "value: a formula without a result: open the workbook, save it, and ingest that"),
        ("sheet 1 row 5", "value: not a number"),
        ("sheet 1 row 6", "value: not a number"),
        ("sheet 1 row 7", "column 12 has a value and no heading"),
        ("sheet 1 row 9", "entity: part of a merged cell: write it in each row"),
        ("sheet 1 row 10", "period_end: expected a date as YYYY-MM-DD"),
        ("sheet 1 row 11", "period_end: expected a date as YYYY-MM-DD"),
        ("sheet 1 row 12", "line_item: part of a merged cell: write it in each row"),
    ]
    assert ledger_facts(source) == 2


def test_days_are_read_in_either_calendar_of_excel(source: Path, tmp_path: Path) -> None:
    book = save(tmp_path / "a.xlsx", items(1))
    edited(book, "xl/workbook.xml", "<workbookPr", '<workbookPr date1904="1"')
    with zipfile.ZipFile(book) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    for day in (DAY(2022, 1, 1), DAY(2022, 12, 31), DAY(2023, 3, 1)):
        serial = (day - DAY(1899, 12, 30)).days
        assert f"<v>{serial}</v>" in sheet
        edited(book, "xl/worksheets/sheet1.xml", f"<v>{serial}</v>", f"<v>{serial - 1462}</v>")
    same_as_csv(source, tmp_path, book, ["1"])


def test_series_and_identifiers_come_from_workbooks_too(home: Path, tmp_path: Path) -> None:
    entries = [source_entry(adapter, adapter) for adapter in ("series-csv", "identifiers-csv")]
    (home / "sources.toml").write_text("".join(entries))
    for adapter, header, line, text in (
        (
            "series-csv",
            ["Series", "Series type", "Frequency", "Date", "Value", "Release date"],
            ["CPI.ZA", "cpi", "monthly", DAY(2024, 1, 31), 101.3, DAY(2024, 2, 20)],
            "CPI.ZA,cpi,monthly,2024-01-31,101.3,2024-02-20",
        ),
        (
            "identifiers-csv",
            ["entity", "id_type", "id_value", "registry"],
            ["ticker:JSE:TST", "registry", 196800025706, "ZA-CIPC"],
            "ticker:JSE:TST,registry,196800025706,ZA-CIPC",
        ),
    ):
        book = openpyxl.Workbook()
        book.active.append(header)
        book.active.append(line)
        book.save(tmp_path / "a.xlsx")
        done = run(home, "ingest", adapter, tmp_path / "a.xlsx")
        assert (done.returncode, counts(done)["appended"]) == (0, 1), done.stderr
        same = tmp_path / "same.csv"
        same.write_text(",".join(header) + "\n" + text + "\n")
        assert counts(run(home, "ingest", adapter, same))["unchanged"] == 1


def test_a_damaged_workbook_or_one_without_the_template_is_refused(source: Path, tmp_path: Path) -> None:
    def refusal(path: Path) -> str:
        done = run(source, "ingest", "own", path)
        assert (done.returncode, counts(done)["read"]) == (1, 0)
        assert "Traceback" not in done.stderr
        return done.stderr

    def renamed(sheet: Sheet) -> None:
        sheet["C1"] = "amount"

    reason = refusal(save(tmp_path / "a.xlsx", items(1), renamed))
    assert "a.xlsx: sheet 1: the required column value is missing (unknown column 'amount')" in reason
    empty = openpyxl.Workbook()
    empty.save(tmp_path / "b.xlsx")
    assert "b.xlsx: the workbook has no rows" in refusal(tmp_path / "b.xlsx")
    empty.active.append(["nothing", "of the kind"])
    empty.save(tmp_path / "b.xlsx")
    assert "b.xlsx: sheet 1: expected the filings-csv template, with columns" in refusal(tmp_path / "b.xlsx")
    good = save(tmp_path / "c.xlsx", items(1))
    edited(good, "xl/_rels/workbook.xml.rels", "worksheets/sheet1.xml", "worksheets/sheet7.xml")
    assert "c.xlsx: not a workbook that can be read" in refusal(good)
    (tmp_path / "d.xlsx").write_bytes(good.read_bytes()[:-100])
    assert "d.xlsx: damaged or unsupported archive" in refusal(tmp_path / "d.xlsx")
    assert ledger_facts(source) == 0


def test_a_workbook_that_unpacks_to_too_much_is_refused_before_it_is_read(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANKOFA_INGEST_DOCUMENT_BYTES", "2000000")
    bomb = save(tmp_path / "bomb.xlsx", items(1))
    edited(bomb, "xl/worksheets/sheet1.xml", "</sheetData>", "</sheetData>" + " " * 3_000_000)
    assert bomb.stat().st_size < 20_000

    def far_apart(sheet: Sheet) -> None:
        sheet["XFD1048576"] = 1

    wide = save(tmp_path / "wide.xlsx", items(1), far_apart)
    unnumbered = save(tmp_path / "unnumbered.xlsx", items(1), far_apart)
    edited(unnumbered, "xl/worksheets/sheet1.xml", 'r="XFD1048576"', "")
    edited(unnumbered, "xl/worksheets/sheet1.xml", 'r="A1"', 'r="ZZZ1"')
    for path in (bomb, wide, unnumbered):
        done = run(source, "ingest", "own", path)
        assert done.returncode == 1
        assert f"{path.name}: more than 2,000,000 bytes" in done.stderr
        assert "(SANKOFA_INGEST_DOCUMENT_BYTES)" in done.stderr
    assert counts(run(source, "ingest", "own", save(tmp_path / "good.xlsx", items(1))))["appended"] == 1
