"""The SEC Financial Statement Data Sets as their publisher ships them."""

import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.records import EntityRecord, Fact, Record, Rejected, Skipped
from tests.torture import rounds
from tests.unit.sources.conftest import Read

ADSH = "0001104659-10-006102"
SUB = ["adsh", "cik", "name", "countryba", "countryinc", "stprinc", "former", "filed"]
NUM = ["adsh", "tag", "version", "ddate", "qtrs", "uom", "segments", "coreg", "value", "footnote"]
FILING = [ADSH, "812074", "OWENS ILLINOIS INC /DE/", "US", "US", "DE", "OWENS HOLDINGS", "20100210"]
FIGURE = [ADSH, "Revenues", "us-gaap/2009", "20091231", "4", "USD", "", "", "7066500000.0000", ""]


def table(*rows: list[str]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def quarter(folder: Path, *figures: list[str], sub: str | bytes = table(SUB, FILING), num: str = "") -> Path:
    path = folder / "2010q1.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sub.txt", sub)
        archive.writestr("num.txt", num or table(NUM, *figures))
    return path


def figure(**changes: str) -> list[str]:
    return [changes.get(column, value) for column, value in zip(NUM, FIGURE, strict=True)]


def facts_of(records: list[Record]) -> list[Fact]:
    return [record for record in records if isinstance(record, Fact)]


def rejects_of(records: list[Record]) -> list[Rejected]:
    return [record for record in records if isinstance(record, Rejected)]


@pytest.mark.rule("ADP-3")
def test_a_figure_takes_its_day_and_issuer_from_its_filing(read: Read, tmp_path: Path) -> None:
    entity, fact = read("sec-fsds", quarter(tmp_path, FIGURE))
    assert fact == Fact(
        subject="registry:US-SEC-CIK:0000812074",
        concept="us-gaap:Revenues",
        unit="USD",
        period_start="2009-01-01",
        period_end="2009-12-31",
        available_at="2010-02-10",
        document=ADSH,
        value="7066500000",
        location="us-gaap:Revenues",
    )
    assert isinstance(entity, EntityRecord)
    assert (entity.subject, entity.effective) == ("registry:US-SEC-CIK:0000812074", "2010-02-10")
    assert entity.profile.legal_name == "OWENS ILLINOIS INC /DE/"
    assert entity.profile.other_names == ("OWENS HOLDINGS",)
    assert (entity.profile.country, entity.profile.jurisdiction) == ("US", "US-DE")
    assert entity.profile.document == ADSH


@pytest.mark.parametrize(
    ("ddate", "qtrs", "start", "end"),
    [
        ("20091231", "0", "", "2009-12-31"),
        ("20091231", "1", "2009-10-01", "2009-12-31"),
        ("20100228", "1", "2009-12-01", "2010-02-28"),
        ("20080229", "4", "2007-03-01", "2008-02-29"),
        ("20100531", "1", "2010-03-01", "2010-05-31"),
        ("20090630", "8", "2007-07-01", "2009-06-30"),
        ("20091231.0", "2.0", "2009-07-01", "2009-12-31"),
    ],
)
def test_dates_follow_from_the_end_and_the_quarters(
    read: Read, tmp_path: Path, ddate: str, qtrs: str, start: str, end: str
) -> None:
    [fact] = facts_of(read("sec-fsds", quarter(tmp_path, figure(ddate=ddate, qtrs=qtrs))))
    assert (fact.period_start, fact.period_end) == (start, end)


@pytest.mark.parametrize(
    ("version", "uom", "concept"),
    [
        ("us-gaap/2009", "USD", "us-gaap:Revenues"),
        ("ifrs/2015", "ZAR", "ifrs-full:Revenues"),
        ("ifrs-full/2023", "ZAR", "ifrs-full:Revenues"),
        ("srt/2019", "USD", "srt:Revenues"),
        ("dei/2009", "shares", "dei:Revenues"),
        (ADSH, "USD", "custom:Revenues"),
        ("dei/2009", "USD", None),
        ("ecd/2023", "shares", None),
        ("invest/2013", "USD", None),
    ],
)
def test_the_taxonomy_follows_from_the_version(
    read: Read, tmp_path: Path, version: str, uom: str, concept: str | None
) -> None:
    records = read("sec-fsds", quarter(tmp_path, figure(version=version, uom=uom)))
    assert [fact.concept for fact in facts_of(records)] == ([concept] if concept else [])
    assert (Skipped(1) in records) is (concept is None)


@pytest.mark.rule("ADP-3")
def test_segments_co_registrants_and_nulls_are_skipped(read: Read, tmp_path: Path) -> None:
    path = quarter(
        tmp_path, figure(segments="EquityComponents=Parent;"), figure(coreg="SUBCO"), figure(value=""), FIGURE
    )
    records = read("sec-fsds", path)
    assert len(facts_of(records)) == 1
    assert Skipped(3) in records
    assert rejects_of(records) == []


def test_an_older_file_has_no_segments_and_its_own_order_of_columns(read: Read, tmp_path: Path) -> None:
    columns = ["adsh", "tag", "version", "coreg", "ddate", "qtrs", "uom", "value", "footnote"]
    row = [FIGURE[NUM.index(column)] for column in columns]
    assert len(facts_of(read("sec-fsds", quarter(tmp_path, num=table(columns, row))))) == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ddate": "20090230"}, "ddate: no such day"),
        ({"ddate": "2009-12-31"}, "ddate: expected a date"),
        ({"qtrs": "-1"}, "qtrs"),
        ({"qtrs": "9999"}, "qtrs"),
        ({"qtrs": ""}, "qtrs"),
        ({"value": "NaN"}, "not a finite number"),
        ({"value": "1,000.0000"}, "not a number"),
        ({"value": "1e5.0000"}, "not a number"),
        ({"uom": ""}, "uom"),
        ({"tag": "Rev\0"}, "tag"),
        ({"adsh": "0000000000-10-000000"}, "no such filing"),
        ({"footnote": "one\ttoo many"}, "number of columns"),
    ],
)
def test_a_malformed_row_is_rejected_with_its_line(
    read: Read, tmp_path: Path, changes: dict[str, str], reason: str
) -> None:
    records = read("sec-fsds", quarter(tmp_path, FIGURE, figure(**changes), FIGURE))
    assert len(facts_of(records)) == 2
    [rejected] = rejects_of(records)
    assert rejected.position == "num.txt row 3"
    assert reason in rejected.reason


def test_a_malformed_filing_rejects_only_its_own_figures(read: Read, tmp_path: Path) -> None:
    other = ["0000000000-10-000001", "x", "X", "", "", "", "", "20100210"]
    records = read(
        "sec-fsds", quarter(tmp_path, FIGURE, figure(adsh=other[0]), sub=table(SUB, other, FILING))
    )
    assert len(facts_of(records)) == 1
    assert [r.position for r in rejects_of(records)] == ["sub.txt row 2", "num.txt row 3"]


@pytest.mark.parametrize(
    ("incorporated", "state", "business", "country", "jurisdiction"),
    [
        ("", "", "ZA", "ZA", None),
        ("BM", "", "US", "BM", "BM"),
        ("XX", "ON", "CA", "CA", None),
        ("", "", "X0", None, None),
    ],
)
def test_only_a_real_country_is_served(
    read: Read,
    tmp_path: Path,
    incorporated: str,
    state: str,
    business: str,
    country: str | None,
    jurisdiction: str | None,
) -> None:
    filing = [ADSH, "812074.0", "X", business, incorporated, state, "", "20100210.0"]
    [entity] = read("sec-fsds", quarter(tmp_path, sub=table(SUB, filing)))
    assert isinstance(entity, EntityRecord)
    assert (entity.profile.country, entity.profile.jurisdiction) == (country, jurisdiction)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "latin-1"])
def test_a_name_in_an_old_encoding_is_read(read: Read, tmp_path: Path, encoding: str) -> None:
    sub = table(SUB, [*FILING[:2], "SOCIÉTÉ GÉNÉRALE", *FILING[3:]]).encode(encoding)
    entity = read("sec-fsds", quarter(tmp_path, sub=sub))[0]
    assert isinstance(entity, EntityRecord)
    assert entity.profile.legal_name == "SOCIÉTÉ GÉNÉRALE"


def test_a_file_of_another_format_is_refused_by_name(read: Read, tmp_path: Path) -> None:
    (tmp_path / "num.txt").write_text(table(NUM, FIGURE))
    with pytest.raises(FormatError, match=r"num\.txt: expected a zip with sub\.txt and num\.txt"):
        read("sec-fsds", tmp_path / "num.txt")
    with pytest.raises(FormatError, match=r"2010q1\.zip: num\.txt: expected a column version"):
        read("sec-fsds", quarter(tmp_path, num=table(["adsh", "tag"])))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("sub.txt", table(SUB))
    with pytest.raises(FormatError, match=r"a\.zip: expected one num\.txt"):
        read("sec-fsds", tmp_path / "a.zip")


def plainly_counted(path: Path) -> Iterator[tuple[str, str, str, str, bool]]:
    with zipfile.ZipFile(path) as archive, archive.open("num.txt") as stream:
        text = io.TextIOWrapper(stream, "utf-8", newline="")
        for row in csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE):
            is_company_figure = (
                row["version"].startswith("us-gaap") or "/" not in row["version"] or row["uom"] == "shares"
            )
            if is_company_figure and row["value"] and not row["segments"] and not row["coreg"]:
                yield row["adsh"], row["tag"], row["ddate"], row["uom"], row["qtrs"] == "0"


QUARTERS = [("2009q3", 54201), ("2010q1", 69021), ("2010q2", 52919)]


@pytest.mark.ci
@pytest.mark.parametrize(("name", "count"), QUARTERS[: rounds(1, 3)])
def test_real_quarters_agree_with_a_plain_count(read: Read, shared_data: Path, name: str, count: int) -> None:
    path = shared_data / "fundamentals" / "sec-fsds" / f"{name}.zip"
    records = read("sec-fsds", path)
    ours = [
        (f.document, f.concept.partition(":")[2], f.period_end.replace("-", ""), f.unit, not f.period_start)
        for f in facts_of(records)
    ]
    assert rejects_of(records) == []
    assert sorted(ours) == sorted(plainly_counted(path))
    assert len(ours) == count
