"""The history of euro reference rates."""

from importlib.resources import as_file, files

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.observations import ReportedValue, SeriesColumn
from sankofa.model.records import Rejected
from tests.every import every
from tests.unit.sources.conftest import Read, Written


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
    assert [told.value for told in cyp.values] == ["", ""]


def test_a_bad_cell_line_or_column_costs_itself(read: Read, written: Written) -> None:
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
    assert [told.value for told in zar.values] == ["20"]


@every("text", ["", "Data,USD\n2024-01-01,1\n", "Date,Country,Value\n1971-01-01,Kenya,1\n", "{}"])
def test_another_format_is_an_error_that_says_what_was_expected(read: Read, written: Written, text: str):
    with pytest.raises(FormatError, match=r"rates\.csv: expected the ECB history"):
        read("ecb-fx", written("rates.csv", text))


@pytest.mark.deep
def test_the_history_that_the_sample_takes_is_read_without_a_reject(read: Read) -> None:
    with as_file(files("currency_converter").joinpath("eurofxref-hist.zip")) as path:
        found = read("ecb-fx", path)
    assert all(isinstance(record, SeriesColumn) for record in found)
    series = {record.series: record for record in found if isinstance(record, SeriesColumn)}
    assert ReportedValue("1999-01-04", "", "6.9358", "ZAR", "") in series["FX.EUR.ZAR"].values
