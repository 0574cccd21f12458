"""The series-csv template."""

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.observations import ReportedValue, SeriesColumn
from sankofa.model.records import Rejected
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


@every(
    ("header", "said"),
    [
        ("series,series_type,frequency,datum,value", "unknown column 'datum'"),
        ("series,series_type,frequency,date", "the required column value is missing"),
        ("a,b", "expected the series-csv template"),
    ],
)
def test_a_header_with_a_typo_is_an_error_that_names_it(read: Read, written: Written, header: str, said: str):
    with pytest.raises(FormatError, match=said):
        read("series-csv", written("s.csv", f"{header}\n1,2,3,4,5\n"))
