"""Files of series and indicators: our template, the ECB, ALFRED and the World Bank."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.observations import AnnualColumn, ReportedValue, SeriesColumn
from sankofa.model.records import Record, Rejected, Skipped
from tests.every import every
from tests.unit.sources.conftest import Read, Written

HEADER = "series,series_type,frequency,country,date,value,unit,release_date\n"


@pytest.mark.rule("ADP-6")
def test_the_rows_of_a_series_are_one_column_in_their_order(read: Read, written: Written) -> None:
    text = (
        "cpi.za,CPI,Monthly,zaf,2024-01-31,101.50,index,2024-02-21\n"
        "FX.USD.ZAR,fx,daily,,2024-01-02,18.5,ZAR,\n"
        "CPI.ZA,cpi,monthly,ZA,2024-01-31,,,2024-03-20\n"
    )
    assert read("series-csv", written("s.csv", HEADER + text)) == [
        SeriesColumn(
            "CPI.ZA", "cpi", "monthly", "ZA", "s.csv",
            [
                ReportedValue("2024-01-31", "2024-02-21", "101.5", "index", "row 2"),
                ReportedValue("2024-01-31", "2024-03-20", "", "", "row 4"),
            ],
        ),
        SeriesColumn(
            "FX.USD.ZAR", "fx", "daily", "", "s.csv",
            [ReportedValue("2024-01-02", "", "18.5", "ZAR", "row 3")],
        ),
    ]  # fmt: skip


@every(
    ("row", "reason"),
    [
        ("A B,cpi,monthly,,2024-01-31,1,,", "series: expected up to 64"),
        (",cpi,monthly,,2024-01-31,1,,", "series: expected up to 64"),
        ("FX.USD,fx,monthly,,2024-01-31,1,,", "series: expected FX.<base>.<quote>"),
        ("FX.USD.QQQ,fx,monthly,,2024-01-31,1,,", "series: expected FX.<base>.<quote>"),
        ("FX.USD.USD,fx,monthly,,2024-01-31,1,,", "series: expected FX.<base>.<quote>"),
        ("A,c p i,monthly,,2024-01-31,1,,", "series_type: expected a family"),
        ("A,cpi,hourly,,2024-01-31,1,,", "frequency: expected one of daily"),
        ("A,cpi,monthly,ZZ,2024-01-31,1,,", "country: not an ISO 3166-1 code"),
        ("A,cpi,monthly,,2024-02-30,1,,", "date: no such day"),
        ("A,cpi,monthly,,2024-02,1,,", "date: expected a date"),
        ("A,cpi,monthly,,2024-01-31,Infinity,,", "value: not a finite number"),
        ("A,cpi,monthly,,2024-01-31,1,,soon", "release_date: expected a date"),
        (f"A,cpi,monthly,,2024-01-31,1,{'u' * 101},", "unit: expected up to 100"),
        ("A,cpi,monthly,,2024-01-31,1,", "7 fields where the header has 8"),
    ],
)
def test_a_bad_row_is_rejected_with_the_column_at_fault(read: Read, written: Written, row: str, reason: str):
    (fault,) = read("series-csv", written("s.csv", f"{HEADER}{row}\n"))
    assert isinstance(fault, Rejected)
    assert fault.position == "row 2"
    assert fault.reason.startswith(reason)


@pytest.mark.rule("ADP-7")
def test_each_currency_is_a_daily_series_of_quote_units_for_one_euro(read: Read, written: Written) -> None:
    text = "Date,USD,ZAR,CYP,\r\n2024-01-03,1.0919,20.5190,N/A,\r\n2024-01-02,1.0956,20.3674,,\r\n"
    usd, zar, cyp = read("ecb-fx", written("eurofxref-hist.csv", text))
    assert isinstance(usd, SeriesColumn)
    assert isinstance(zar, SeriesColumn)
    assert isinstance(cyp, SeriesColumn)
    assert usd[:5] == ("FX.EUR.USD", "fx", "daily", "", "eurofxref-hist.csv")
    assert zar.values == [
        ReportedValue("2024-01-03", "", "20.519", "ZAR", ""),
        ReportedValue("2024-01-02", "", "20.3674", "ZAR", ""),
    ]
    assert zar.on_its_day
    assert [value.value for value in cyp.values] == ["", ""]


def test_a_bad_cell_line_or_column_rejects_only_itself(read: Read, written: Written) -> None:
    text = "Date,USD,ZRA,ZAR\n2024-01-03,x,1,20\n2024-13-03,1,1,1\n2024-01-02,1,1\n\n2024-01-01,-1,1,0\n"
    *faults, _, zar = read("ecb-fx", written("rates.csv", text))
    assert faults == [
        Rejected("rates.csv column 3", "header: not an ISO 4217 code"),
        Rejected("rates.csv line 2, USD", "rate: not a number"),
        Rejected("rates.csv line 3", "date: no such day in the calendar"),
        Rejected("rates.csv line 4", "3 fields where the header has 4"),
        Rejected("rates.csv line 6, USD", "rate: not above zero"),
        Rejected("rates.csv line 6, ZAR", "rate: not above zero"),
    ]
    assert isinstance(zar, SeriesColumn)
    assert [value.value for value in zar.values] == ["20"]


@every("text", ["", "Data,USD\n2024-01-01,1\n", "Date,Country,Value\n1971-01-01,Kenya,1\n", "{}"])
def test_another_format_is_an_error_that_says_what_was_expected(read: Read, written: Written, text: str):
    with pytest.raises(FormatError, match=r"rates\.csv: expected the ECB history"):
        read("ecb-fx", written("rates.csv", text))


FOREVER = "9999-12-31"


def document(*rows: tuple[str, str, str, str], **members: Any) -> str:
    names = ("realtime_start", "realtime_end", "date", "value")
    whole = {
        "realtime_start": "1776-07-04", "realtime_end": FOREVER, "observation_start": "1600-01-01",
        "observation_end": FOREVER, "units": "lin", "output_type": 1, "file_type": "json", "count": len(rows),
        "observations": [dict(zip(names, row, strict=True)) for row in rows],
    }  # fmt: skip
    return json.dumps(whole | members)


def first_columns(record: object) -> list[tuple[str, str, str]]:
    assert isinstance(record, SeriesColumn)
    return [entry[:3] for entry in record.values]


@pytest.mark.rule("ADP-8")
def test_a_value_is_public_from_realtime_start_and_a_dot_is_no_value(read: Read, written: Written) -> None:
    text = document(
        ("2024-02-13", "2025-02-11", "2024-01-01", "308.417"),
        ("2025-02-12", FOREVER, "2024-01-01", "309.6850"),
        ("2024-03-12", FOREVER, "2024-02-01", "."),
    )
    (column,) = read("alfred", written("cpiaucsl.json", text))
    assert isinstance(column, SeriesColumn)
    assert column[:5] == ("CPIAUCSL", "cpi", "monthly", "", "cpiaucsl.json")
    assert first_columns(column) == [
        ("2024-01-01", "2024-02-13", "308.417"),
        ("2024-01-01", "2025-02-12", "309.685"),
        ("2024-02-01", "2024-03-12", ""),
    ]


def test_a_value_that_ended_with_none_after_it_was_withdrawn(read: Read, written: Written) -> None:
    rows = (("2024-02-13", "2024-06-30", "2024-01-01", "1"), ("2024-03-13", FOREVER, "2024-02-01", "2"))
    (column,) = read("alfred", written("X.json", document(*rows)))
    assert first_columns(column)[2:] == [("2024-01-01", "2024-07-01", "")]
    # If the period simply ends with the request, that is no withdrawal; nor is it in a list of first
    # releases.
    for members in ({"realtime_end": "2024-06-30"}, {"output_type": 4}):
        (column,) = read("alfred", written("X.json", document(*rows, **members)))
        assert len(first_columns(column)) == 2


@every(
    ("days", "frequency"),
    [
        (("2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-08"), "daily"),
        (("2024-01-03", "2024-01-10", "2024-01-17", "2024-01-31"), "weekly"),
        (("2024-01-01", "2024-02-01", "2024-03-01", "2024-06-01"), "monthly"),
        (("2024-01-01", "2024-04-01", "2024-07-01"), "quarterly"),
        (("2022-01-01", "2023-01-01", "2024-01-01"), "annual"),
    ],
)
def test_the_frequency_follows_from_the_dates(
    read: Read, written: Written, days: tuple[str, ...], frequency: str
) -> None:
    (column,) = read("alfred", written("X.json", document(*((d, FOREVER, d, "1") for d in days))))
    assert isinstance(column, SeriesColumn)
    assert column.frequency == frequency


def test_a_bad_observation_rejects_only_itself(read: Read, written: Written) -> None:
    good = [("2024-02-13", FOREVER, day, "1") for day in ("2024-01-01", "2024-02-01")]
    bad = [
        ("2024-02-13", "2024-01-01", "2024-03-01", "1"),
        ("x", FOREVER, "2024-03-01", "1"),
        ("2024-02-13", FOREVER, "2024-03-01", "nan"),
    ]
    *faults, column = read("alfred", written("X.json", document(*good, *bad)))
    assert [type(fault) for fault in faults] == [Rejected] * 3
    assert len(first_columns(column)) == 2


@every(
    ("text", "message"),
    [
        ("{}", "not such a document"),
        ("[]", "not such a document"),
        (document(("2024-01-01", FOREVER, "2024-01-01", "1")), "frequency is unknown"),
        (document(units="pch"), "units is 'pch'"),
        (document(output_type=2), "output_type"),
        ('{"error_code":400,"error_message":"Bad Request."}', "not such a document"),
    ],
)
def test_another_format_than_that_of_alfred_is_an_error(
    read: Read, written: Written, text: str, message: str
) -> None:
    with pytest.raises(FormatError, match=r"X\.json: expected observations of FRED or ALFRED") as refusal:
        read("alfred", written("X.json", text))
    assert message in str(refusal.value)


TIDY = "Country Name,Country Code,Year,Value\n"
WIDE = "Country Name,Country Code,Indicator Name,Indicator Code,2020,2021,2022\n"


def columns(records: list[Record]) -> list[AnnualColumn]:
    """The columns with values; a tidy table also covers every country that it does not list."""
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
def test_a_tidy_table_is_named_after_its_indicator_and_covers_every_year(read: Read, written: Written):
    rows = "South Africa,ZAF,2020,337974620000.50\r\nSouth Africa,ZAF,2021,4.2E+11\r\nKenya,KEN,2021,\r\n"
    records = read("worldbank", written("ny.gdp.mktp.cd.csv", TIDY + rows))
    assert len({record.country for record in records if isinstance(record, AnnualColumn)}) == 249
    assert columns(records) == [
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
    records = read("worldbank", written("P_Data.csv", table))
    assert columns(records) == [
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
def test_a_page_of_the_api_keeps_every_digit_and_its_nulls_are_covered_years(read: Read, written: Written):
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


def test_a_bad_row_rejects_only_itself(read: Read, written: Written) -> None:
    tidy = (
        "Kosovo,XKX,2020,1\nNowhere,,2020,1\nKenya,KEN,20,1\nKenya,KEN,2020,much\nKenya,KEN,2020,NaN\n"
        "Kenya,KEN,2021\nKenya,KEN,2022,1\nKenya,KEN,2022,2\n"
    )
    records = read("worldbank", written("aa.bb.csv", TIDY + tidy))
    (column,) = columns(records)
    assert (dict(column.values), set(column.unread)) == ({"2022": "1"}, {"20", "2020", "2022"})
    assert faults(records) == [
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
    records = read("worldbank", written("wide.csv", WIDE + wide))
    (column,) = columns(records)
    assert (dict(column.values), set(column.unread)) == ({"2020": "1"}, {"2021", "2022"})
    assert [position for position, _ in faults(records)] == [
        "wide.csv line 2, 2021",
        "wide.csv line 2, 2022",
        "wide.csv line 3",
        "wide.csv line 4",
        "wide.csv line 5",
    ]
    records = read(
        "worldbank", written("page.json", page(point("XKX", "2020", 1), point("ZAF", "2020Q1", 1)))
    )
    assert [reason for _, reason in faults(records)] == [
        "country: not an ISO 3166-1 code",
        "date: expected a year",
    ]


@every(
    ("name", "content", "message"),
    [
        ("2017-07-11_975d1e37.csv", TIDY + "Kenya,KEN,2020,1\n", "named after its indicator"),
        ("aa.bb.csv", "Date,Country,Value\n1971-01-01,Australia,0.88\n", "expected World Bank indicators"),
        ("aa.bb.csv", "", "expected World Bank indicators"),
        ("aa.bb.csv", b"\xff\xfe\x00\xd8\x00", "expected World Bank indicators"),
        ("aa.bb.csv", b"PK\x03\x04 not an archive", "not a zip file"),
        ("aa.bb.csv", WIDE.replace("2021", "2020"), "a year is twice"),
        ("p.json", "{}", "expected World Bank indicators"),
        ("p.json", '[{"page":1},[{"indicator":1}]]', "expected World Bank indicators"),
        ("p.json", '[{"message":[{"id":"120","key":"Invalid value","value":"not valid"}]}]', "120 not valid"),
    ],
)
def test_another_format_than_that_of_the_world_bank_is_an_error(
    read: Read, written: Written, name: str, content: str | bytes, message: str
) -> None:
    with pytest.raises(FormatError, match=message) as refusal:
        read("worldbank", written(name, content))
    assert name in str(refusal.value) or message.startswith("a year")
