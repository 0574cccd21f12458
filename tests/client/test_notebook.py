"""The client in a notebook: no arguments, whole series, tickers as ids, warnings and tables."""

import asyncio
import warnings
from typing import Any

import pandas
import polars
import pytest

from sankofa.client import AsyncClient, Client, TruncatedWarning, UnknownIdentifier, UnknownSeries
from tests.live import LiveServer

LEI = "999900SAMPLEZA000189"
RIFTLINE = "DC8342E4A6CD9A7F25CAC383F4"


def test_a_client_without_arguments_reads_the_environment(
    server: LiveServer, paid_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANKOFA_URL", server.url)
    monkeypatch.setenv("SANKOFA_API_KEY", paid_key)
    with Client() as client:
        assert client.get_fundamentals(RIFTLINE).count > 25  # more rows than the sample tier gets
        assert paid_key not in repr(client)
    with Client("sankofa-sandbox") as client:
        assert client.get_fundamentals(RIFTLINE).count == 25


def test_a_truncated_frame_warns_once(client: Client) -> None:
    answer = client.search_tenders(country="ZA")
    assert answer.truncated
    with pytest.warns(TruncatedWarning, match="first 100 rows"):
        frame = answer.to_pandas()
    assert frame.attrs["truncated"] is True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer.to_polars()  # the answer was marked as truncated
        assert (
            client.search_tenders(country="ZA", limit=3).to_pandas().attrs["truncated"] is True
        )  # the caller set the limit


@pytest.mark.parametrize("columns", [False, True])
def test_all_fetches_every_page(client: Client, columns: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sankofa.client.session.PAGE", 60)
    caller = client.columns if columns else client
    whole = caller.search_tenders(country="ZA", all=True)
    expected = client.search_tenders(country="ZA", limit=10_000)
    assert whole.count == len(whole.rows) == expected.count > 120
    assert whole.rows == expected.rows
    assert not whole.truncated
    assert whole.next_cursor is None
    pandas.testing.assert_frame_equal(whole.to_pandas(), expected.to_pandas())
    assert caller.search_tenders(country="ZA", all=True, limit=70).rows == expected.rows


def test_a_ticker_or_an_lei_works_as_a_service_id(client: Client, server: LiveServer, paid_key: str):
    listed: Any = client.get_entity(RIFTLINE).rows[0]
    ticker = "{exchange}:{ticker}".format(**listed["listings"][0])
    expected = client.get_metrics(RIFTLINE).rows
    for identifier in (ticker, ticker.lower(), listed["lei"]):
        assert client.get_metrics(identifier).rows == expected, identifier

    async def awaited() -> list[Any]:
        async with AsyncClient(paid_key, server.url) as other:
            return (await other.get_metrics(ticker)).rows

    assert asyncio.run(awaited()) == expected
    with pytest.raises(UnknownIdentifier, match="JSE:NONE") as raised:
        client.get_metrics("JSE:NONE")
    assert raised.value.matches == []


def test_a_bare_ticker_or_an_exact_name_works_as_a_service_id(client: Client) -> None:
    listed: Any = client.get_entity(RIFTLINE).rows[0]
    expected = client.get_fundamentals(RIFTLINE).rows
    for identifier in (listed["listings"][0]["ticker"], listed["legal_name"], listed["legal_name"].lower()):
        assert client.get_fundamentals(identifier).rows == expected, identifier
    with pytest.raises(UnknownIdentifier, match="Riftline Sample Telecom PLC"):
        client.get_fundamentals("Riftline")


def test_the_advice_of_a_warning_can_be_followed(client: Client, server: LiveServer, sample_key: str) -> None:
    assert len(client.universe(all=True)) == len(client.universe()) == client.list_issuers(all=True).count
    with pytest.warns(TruncatedWarning, match="all=True fetches every page"):
        client.search_tenders(country="ZA").to_pandas()
    refused = pytest.warns(TruncatedWarning, match="the tier of your key serves no more")
    with Client(sample_key, server.url) as sample, refused:
        sample.search_tenders(country="ZA", all=True).to_pandas()


def test_an_empty_id_fails_before_anything_is_sent(client: Client) -> None:
    nothing: Any = None
    for value in (nothing, ""):
        with pytest.raises(ValueError, match="service_id: expected text"):
            client.get_entity(value)


def test_a_series_is_complete_and_ascending_by_date(client: Client, server: LiveServer, paid_key: str):
    frame = client.series("FX.EUR.ZAR", as_of="2024-07-01")
    assert frame.index.name == "date"
    assert frame.index.is_monotonic_increasing
    assert frame.index[-1] == pandas.Timestamp("2024-07-01")
    assert frame["value"].dtype == "float64"
    assert len(frame) == client.get_macro(series="FX.EUR.ZAR", as_of="2024-07-01", limit=10_000).count > 100
    assert not frame.attrs["truncated"]

    async def awaited() -> Any:
        async with AsyncClient(paid_key, server.url) as other:
            return await other.series("FX.EUR.ZAR", as_of="2024-07-01")

    pandas.testing.assert_frame_equal(asyncio.run(awaited()), frame)


def test_a_statement_is_a_frame_of_line_items_by_period(client: Client, server: LiveServer, paid_key: str):
    frame = client.statement(RIFTLINE, as_of="2024-12-31", kind="income")
    assert frame.index.name == "line_item"
    assert frame.index[0] == "revenue"
    assert frame.columns.is_monotonic_decreasing
    assert all(dtype == "float64" for dtype in frame.dtypes)
    newest = frame.columns[0]
    rows: Any = client.get_fundamentals(
        RIFTLINE, as_of="2024-12-31", period_type="FY", line_items="revenue"
    ).rows
    (row_,) = [row for row in rows if row["period_end"] == f"{newest:%Y-%m-%d}"]
    assert frame.loc["revenue", newest] == float(row_["value_reported"])
    cell = frame.attrs["cells"]["revenue"][f"{newest:%Y-%m-%d}"]
    assert (cell["vintage"], cell["source_ref"]) == (row_["vintage"], row_["source_ref"])
    assert frame.attrs["as_of"] == "2024-12-31"

    async def awaited() -> Any:
        async with AsyncClient(paid_key, server.url) as other:
            return await other.statement(RIFTLINE, as_of="2024-12-31", kind="income")

    pandas.testing.assert_frame_equal(asyncio.run(awaited()), frame)


def test_the_universe_is_the_one_of_the_day(client: Client) -> None:
    early, late = (client.universe(as_of=day) for day in ("2019-01-01", "2025-01-01"))
    assert early.index.name == "service_id"
    assert set(early.index) < set(late.index)
    assert (late["first_available"] <= pandas.Timestamp("2025-01-01")).all()
    kenyan = client.universe("KE", as_of="2025-01-01")
    assert set(kenyan["country"]) == {"KE"}
    assert RIFTLINE in kenyan.index


def test_a_notebook_shows_an_escaped_table_with_its_provenance(client: Client) -> None:
    from sankofa.client.answers import html_table

    html = client.get_fundamentals(RIFTLINE)._repr_html_()
    assert "<summary>Provenance</summary>" in html
    assert "line_item" in html
    hostile = html_table("<b>", "<i>", [{"name": "<script>alert(1)</script>", "source_ref": "<x>"}])
    assert "<script>" not in hostile
    assert "<x>" not in hostile


def test_an_unknown_series_is_an_error_that_names_similar_ones(
    server: LiveServer, paid_key: str, client: Client
) -> None:
    with pytest.raises(UnknownSeries, match=r"FX\.EUR\.ZAX: no such series; nearest: FX\.EUR\.ZAR") as caught:
        client.series("FX.EUR.ZAX")
    assert caught.value.nearest[0] == "FX.EUR.ZAR"
    with pytest.raises(UnknownSeries, match="annual indicator: pass it as `indicator`"):
        client.series("FP.CPI.TOTL.ZG")
    with pytest.raises(ValueError, match="series: expected text, not None"):
        client.series(None)  # type: ignore[arg-type]
    assert client.series("CPI.ZA", as_of="1990-01-01").empty  # the series exists, but no value was known

    async def awaited() -> None:
        async with AsyncClient(paid_key, server.url) as other:
            await other.series("FX.EUR.ZAX")

    with pytest.raises(UnknownSeries):
        asyncio.run(awaited())


def test_an_empty_answer_suggests_similar_names(client: Client) -> None:
    assert repr(client.get_macro(series="FX.EUR.ZAX")).endswith(
        ", nearest: FX.EUR.ZAR, FX.EUR.USD, FX.EUR.GBP>"
    )
    assert "pass it as `indicator`" in repr(client.columns.get_macro(series="FP.CPI.TOTL.ZG"))
    assert "nearest: revenue" in repr(client.get_fundamentals(RIFTLINE, line_items=["revenues"]))


def test_common_frames_put_values_before_provenance(client: Client) -> None:
    provenance = ["source_ref", "license_class", "observed_at"]
    for frame in (client.series("CPI.ZA"), client.universe("KE")):
        assert list(frame.columns)[-3:] == provenance
    assert client.series("CPI.ZA").columns[0] == "value"
    assert client.universe("KE").columns[0] == "legal_name"


@pytest.mark.rule("PAN-1")
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_features_join_the_values_known_on_the_day_of_each_row(client: Client, library: str) -> None:
    ids = ["JSE:SMPKG", RIFTLINE, "Kgalagadi Sample Retail Holdings Limited", "JSE:SMPKG", LEI]
    days = ["2022-01-31", "2023-06-30", "2025-01-31", "2019-01-01", "2024-09-02"]
    frame = pandas.DataFrame({"who": ids, "day": pandas.to_datetime(days), "own": [1, 2, 3, 4, 5]})
    keys: Any = polars.from_pandas(frame) if library == "polars" else frame
    features = ["net_margin", "revenue", "CPI.ZA"]
    joined = client.join_as_of(keys, on=("who", "day"), features=features)
    assert list(joined.columns) == ["who", "day", "own", *features]
    rows = joined.to_dicts() if library == "polars" else joined.to_dict("records")
    for row, issuer, day in zip(rows, ids, days, strict=True):
        metrics = client.get_metrics(issuer, metric="net_margin", as_of=day, basis="as_known").rows
        expected = float(metrics[0]["value"]) if metrics else None
        assert (None if row["net_margin"] != row["net_margin"] else row["net_margin"]) == expected
        years: Any = client.get_statement(issuer, as_of=day, period_type="FY", kind="income").rows
        revenue = next(
            (float(one["value_reported"] or 0) for one in years if one["line_item"] == "revenue"), None
        )
        assert (None if row["revenue"] != row["revenue"] else row["revenue"]) == revenue
        series = client.get_macro(series="CPI.ZA", as_of=day, limit=1).rows
        value = float(series[0]["value"] or 0) if series else None
        assert (None if row["CPI.ZA"] != row["CPI.ZA"] else row["CPI.ZA"]) == value
    with pytest.raises(ValueError, match="has no column"):
        client.join_as_of(keys, on=("who", "when"), features=features)
