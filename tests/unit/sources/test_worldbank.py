"""World Bank indicators, in every form they are shipped in."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.observations import AnnualColumn
from sankofa.model.records import Record, Rejected, Skipped
from tests.every import every
from tests.unit.sources.conftest import Read, Written

TIDY = "Country Name,Country Code,Year,Value\n"
WIDE = "Country Name,Country Code,Indicator Name,Indicator Code,2020,2021,2022\n"


def columns(records: list[Record]) -> list[AnnualColumn]:
    """Those that say something; a tidy table also tells of every country that it does not list."""
    return [
        record for record in records if isinstance(record, AnnualColumn) and (record.values or record.unread)
    ]


def faults(records: list[Record]) -> list[tuple[str, str]]:
    return [(r.position, r.reason) for r in records if isinstance(r, Rejected)]


def page(*points: dict[str, Any]) -> str:
    return json.dumps([{"page": 1, "pages": 1, "per_page": 50, "total": len(points)}, list(points)])


def point(code: str, year: str, value: object, **more: str) -> dict[str, Any]:
    indicator = {"id": "NY.GDP.MKTP.CD", "value": "GDP (current US$)"}
    return {"indicator": indicator, "country": {"id": code[:2], "value": "x"}, "countryiso3code": code,
            "date": year, "value": value, "unit": "", "obs_status": "", "decimal": 0, **more}  # fmt: skip


@pytest.mark.rule("ADP-5")
def test_a_tidy_table_is_named_after_its_indicator_and_speaks_of_every_year(read: Read, written: Written):
    rows = "South Africa,ZAF,2020,337974620000.50\r\nSouth Africa,ZAF,2021,4.2E+11\r\nKenya,KEN,2021,\r\n"
    found = read("worldbank", written("ny.gdp.mktp.cd.csv", TIDY + rows))
    assert len({record.country for record in found if isinstance(record, AnnualColumn)}) == 249
    assert columns(found) == [
        AnnualColumn(
            "NY.GDP.MKTP.CD",
            "ZA",
            "ny.gdp.mktp.cd.csv",
            {"2020": "337974620000.5", "2021": "420000000000"},
            None,
        ),
        AnnualColumn("NY.GDP.MKTP.CD", "KE", "ny.gdp.mktp.cd.csv", {"2021": ""}, None),
    ]


def test_a_tidy_table_in_an_archive_is_named_by_its_member(read: Read, tmp_path: Path) -> None:
    content = (TIDY + "Ghana,GHA,2020,1\n").encode()
    with gzip.open(tmp_path / "sp.pop.totl.csv.gz", "wb") as stream:
        stream.write(content)
    with zipfile.ZipFile(tmp_path / "any.zip", "w") as archive:
        archive.writestr("data/SP.POP.TOTL.csv", content)
        archive.writestr("Metadata_Country.csv", "Country Code,Region\nGHA,x\n")
        archive.writestr("readme.txt", "nothing to read here\n")
    for name in ("sp.pop.totl.csv.gz", "any.zip"):
        (column,) = columns(read("worldbank", tmp_path / name))
        assert column[:2] == ("SP.POP.TOTL", "GH")


@pytest.mark.rule("ADP-5")
@every("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
@every("separator", [",", ";", "\t"])
def test_a_wide_table_is_read_under_its_preamble_in_any_encoding(
    read: Read, written: Written, encoding: str, separator: str
) -> None:
    cells = [
        ['"Data Source"', '"World Development Indicators"'],
        [],
        ["Country Name", "Country Code", "Indicator Name", "Indicator Code", "2020", "2021", "2022", ""],
        ["Côte d'Ivoire", "CIV", '"Dépenses, total (% of GDP)"', "AA.BB", "1.50", "", "..", ""],
    ]
    text = "\r\n".join(separator.join(row) for row in cells) + "\r\n"
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    (column,) = read("worldbank", written("table.txt", (mark + text).encode(encoding)))
    assert column == AnnualColumn(
        "AA.BB",
        "CI",
        "table.txt",
        {"2020": "1.5"},
        frozenset(("2020", "2021", "2022")),
        "Dépenses, total (% of GDP)",
    )


def test_a_databank_table_names_series_and_years_in_its_own_way(read: Read, written: Written) -> None:
    table = (
        "Series Name,Series Code,Country Name,Country Code,2020 [YR2020],2021 [YR2021]\n"
        '"Population, total",SP.POP.TOTL,Kenya,KEN,51985780,..\n\n'
        "Data from database: World Development Indicators,,,,,\n"
    )
    found = read("worldbank", written("P_Data.csv", table))
    assert columns(found) == [
        AnnualColumn(
            "SP.POP.TOTL",
            "KE",
            "P_Data.csv",
            {"2020": "51985780"},
            frozenset(("2020", "2021")),
            "Population, total",
        )
    ]


@pytest.mark.rule("ADP-5")
def test_a_page_of_the_api_keeps_every_digit_and_its_nulls_are_what_it_covers(read: Read, written: Written):
    text = page(point("ZAF", "2022", None), point("ZAF", "2021", 0), point("ZAF", "2020", 1)).replace(
        '"value": 0,', '"value": 420886900000.12345678901,'
    )
    assert read("worldbank", written("page.json", text)) == [
        AnnualColumn(
            "NY.GDP.MKTP.CD",
            "ZA",
            "page.json",
            {"2021": "420886900000.12345678901", "2020": "1"},
            frozenset(("2020", "2021", "2022")),
            "GDP (current US$)",
        )
    ]


def test_aggregates_and_forecasts_are_skipped_in_every_form(read: Read, written: Written) -> None:
    tidy = TIDY + "Sub-Saharan Africa,SSF,2020,1\nSub-Saharan Africa,SSF,2021,2\nLow income,LIC,2021,2\n"
    wide = WIDE + "World,WLD,GDP,AA.BB,1,,3\nArab World,ARB,GDP,AA.BB,,,\n"
    aggregate = {**point("", "2020", 5), "country": {"id": "ZG", "value": "Sub-Saharan Africa"}}
    json_page = page(
        aggregate,
        point("SSF", "2020", 1),
        point("SSF", "2021", None),
        point("ZAF", "2027", 3, obs_status="F"),
    )
    for name, text, skipped in (("aa.bb.csv", tidy, 3), ("wide.csv", wide, 2), ("page.json", json_page, 3)):
        assert read("worldbank", written(name, text)) == [Skipped(skipped)]


def test_a_bad_row_costs_itself(read: Read, written: Written) -> None:
    tidy = (
        "Kosovo,XKX,2020,1\nNowhere,,2020,1\nKenya,KEN,20,1\nKenya,KEN,2020,much\nKenya,KEN,2020,NaN\n"
        "Kenya,KEN,2021\nKenya,KEN,2022,1\nKenya,KEN,2022,2\n"
    )
    found = read("worldbank", written("aa.bb.csv", TIDY + tidy))
    (column,) = columns(found)
    assert (dict(column.values), set(column.unread)) == ({"2022": "1"}, {"20", "2020", "2022"})
    assert faults(found) == [
        ("aa.bb.csv line 2", "country: not an ISO 3166-1 code"),
        ("aa.bb.csv line 3", "country: not an ISO 3166-1 code"),
        ("aa.bb.csv line 4", "year: expected four digits"),
        ("aa.bb.csv line 5", "value: not a number"),
        ("aa.bb.csv line 6", "value: not a finite number"),
        ("aa.bb.csv line 7", "3 fields where the header has 4"),
        ("aa.bb.csv line 9", "year: given twice with another value"),
    ]
    wide = (
        "Kenya,KEN,GDP,AA.BB,1,x,inf\nKenya,KEN,GDP,A B,1,2,3\nKosovo,XKX,GDP,AA.BB,1,2,3\n"
        "Kenya,KEN,GDP,AA.BB\n"
    )
    found = read("worldbank", written("wide.csv", WIDE + wide))
    (column,) = columns(found)
    assert (dict(column.values), set(column.unread)) == ({"2020": "1"}, {"2021", "2022"})
    assert [position for position, _ in faults(found)] == [
        "wide.csv line 2, 2021",
        "wide.csv line 2, 2022",
        "wide.csv line 3",
        "wide.csv line 4",
        "wide.csv line 5",
    ]
    found = read("worldbank", written("page.json", page(point("XKX", "2020", 1), point("ZAF", "2020Q1", 1))))
    assert [reason for _, reason in faults(found)] == [
        "country: not an ISO 3166-1 code",
        "date: expected a year",
    ]


@every(
    ("name", "content", "said"),
    [
        ("2017-07-11_975d1e37.csv", TIDY + "Kenya,KEN,2020,1\n", "named after its indicator"),
        ("aa.bb.csv", "Date,Country,Value\n1971-01-01,Australia,0.88\n", "expected World Bank indicators"),
        ("aa.bb.csv", "", "expected World Bank indicators"),
        ("aa.bb.csv", b"\xff\xfe\x00\xd8\x00", "expected World Bank indicators"),
        ("aa.bb.csv", b"PK\x03\x04 not an archive", "not a zip file"),
        ("aa.bb.csv", WIDE.replace("2021", "2020"), "a year stands twice"),
        ("p.json", "{}", "expected World Bank indicators"),
        ("p.json", '[{"page":1},[{"indicator":1}]]', "expected World Bank indicators"),
        ("p.json", '[{"message":[{"id":"120","key":"Invalid value","value":"not valid"}]}]', "120 not valid"),
    ],
)
def test_another_format_is_an_error_that_says_what_was_expected(
    read: Read, written: Written, name: str, content: str | bytes, said: str
) -> None:
    with pytest.raises(FormatError, match=said) as refusal:
        read("worldbank", written(name, content))
    assert name in str(refusal.value) or said.startswith("a year")
