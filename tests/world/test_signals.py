"""Signals through the real ledger: each panel on a small world told by hand, and never ahead of its day."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sankofa.derive.signals.contract import panels
from sankofa.edition.build.context import BuildContext
from sankofa.model.rows import wire
from tests.spec.demand import released, releases
from tests.spec.register import COLUMNS as LEI_COLUMNS
from tests.spec.register import lei, record, sid
from tests.world.desk import Desk

TODAY = date(2024, 11, 15)
ALPHA, BETA = lei("ALPHA"), lei("BETA")
PERSON = "Quentin Zebulon Marchbanks"
SERIES = "series,series_type,frequency,country,date,value,unit,release_date\n"
Rows = list[dict[str, Any]]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", TODAY)


def observed(desk: Desk, key: str) -> Rows:
    ledger = desk.ledger()
    try:
        rows = [wire.encode(o.row) for o in panels()[key].observe(BuildContext(ledger))]
    finally:
        ledger.close()
    return [json.loads(row, parse_int=Decimal, parse_float=Decimal) for row in rows]


def told(rows: Rows, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def take(desk: Desk, source: str, name: str, content: str) -> None:
    path = desk.inbox / name
    path.write_text(content)
    summary = desk.take(source, path)
    assert summary.failures == []


def tenders(desk: Desk, *told: dict[str, Any], name: str = "releases.json") -> None:
    take(desk, "za-etenders", name, json.dumps({"releases": told}))


def release(
    ocid: str, day: str, *awards: tuple[Any, ...], buyer: str = "Ministry of Health"
) -> dict[str, Any]:
    """With awards as (id, winners, amount, currency, status)."""
    return {
        "ocid": ocid,
        "id": f"{ocid}-{day}",
        "date": day,
        "tag": ["award"],
        "buyer": {"name": buyer},
        "tender": {"category": "Works"},
        "awards": [
            {
                "id": award_id,
                "status": status,
                "suppliers": [{"name": winner} for winner in winners],
                "value": {"amount": amount, "currency": currency},
            }
            for award_id, winners, amount, currency, status in awards
        ],
    }


def won(
    award_id: str, *winners: str, amount: Any = None, currency: str = "ZAR", status: str = "active"
) -> Any:
    return award_id, winners, amount, currency, status


# Tenders


AWARDS = (
    release("o1", "2024-01-10", won("a1", "Alpha Roads Limited", amount=100)),
    release("o1", "2024-02-10", won("a1", "Beta Works Limited"), won("a2", "Beta Works Limited", amount=50)),
    release("o2", "2024-03-31T23:59:59Z", won("a1", "ALPHA ROADS LTD", "Gamma (Pty) Ltd", amount=70)),
    release("o3", "2024-02-01", won("a1", PERSON)),
    release("o4", "2024-02-01", won("a1", "Alpha Roads Limited", status="cancelled")),
    release("o5", "2024-04-01", won("a1", "Alpha Roads Limited", amount=Decimal(0)), buyer=PERSON),
    release("o6", "2024-06-30", won("a1", "Delta Works Limited")),
    release("o7", "2024-08-01", won("a1", PERSON)),
    release("o8", "2024-10-01", won("a1", "Alpha Roads Limited")),
)


def as_json(told: dict[str, Any]) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(json.dumps(told, default=float))
    return decoded


def test_awards_are_counted_once_where_they_were_first_released(desk: Desk) -> None:
    tenders(desk, *map(as_json, AWARDS))
    rows = observed(desk, "tender-award-concentration")
    assert told(
        rows,
        *("quarter", "closed_at", "award_count", "attributed_share", "supplier_count"),
        *("supplier_hhi", "top_supplier_share", "effective_suppliers", "repeat_winner_share"),
    ) == [
        ("2024-Q3", "2024-09-30", 1, 0, 0, None, None, None, None),
        ("2024-Q2", "2024-06-30", 2, 1, 2, Decimal("0.5"), Decimal("0.5"), 2, Decimal("0.5")),
        # Alpha 1 and a half, Beta 1, Gamma a half of three attributed awards: 3.5 / 9
        (
            *("2024-Q1", "2024-03-31", 4, Decimal("0.75"), 3),
            *(Decimal("0.3888888889"), Decimal("0.5"), Decimal("2.571428571"), None),
        ),
    ]
    assert {row["source_ref"].partition("@")[0] for row in rows} == {"za-etenders:releases.json"}
    assert len({row["source_ref"] for row in rows}) == 3, "each the first release of its quarter"


def test_a_quarter_is_there_once_releases_were_captured_at_its_end(desk: Desk) -> None:
    tenders(desk, *map(as_json, AWARDS))
    assert observed(desk, "public-buyer-concentration")[0]["quarter"] == "2024-Q3"
    for day, newest in ((date(2024, 12, 30), "2024-Q3"), (date(2024, 12, 31), "2024-Q4")):
        desk.set_day(day)
        tenders(desk, release("o9", str(day)), name=f"{day}.json")
        for key in ("public-buyer-concentration", "tender-award-concentration"):
            assert observed(desk, key)[0]["quarter"] == newest, (day, key)
        months = told(observed(desk, "procurement-demand"), "month")
        assert (("2024-12",) in months) is (newest == "2024-Q4"), "a month likewise"
        assert ("2024-10",) in months


def test_buyers_that_are_not_named_are_left_out_and_told(desk: Desk) -> None:
    tenders(
        desk,
        release("o1", "2024-01-01", buyer="Ministry of Health"),
        release("o1", "2024-01-02", buyer="Karoo Water Board"),
        release("o2", "2024-02-01", buyer="MINISTRY OF HEALTH"),
        release("o3", "2024-03-01", buyer="Karoo Water Board"),
        release("o4", "2024-03-31", buyer=PERSON),
        release("o5", "2024-04-01", buyer=PERSON),
    )
    assert told(
        observed(desk, "public-buyer-concentration"),
        *("quarter", "tender_count", "attributed_share", "buyer_count"),
        *("buyer_hhi", "top_buyer_share", "effective_buyers"),
    ) == [
        ("2024-Q2", 1, 0, 0, None, None, None),
        (
            *("2024-Q1", 4, Decimal("0.75"), 2),
            *(Decimal("0.5555555556"), Decimal("0.6666666667"), Decimal("1.8")),
        ),
    ]


def test_issuers_are_told_what_they_won(desk: Desk) -> None:
    register = [record(ALPHA, "Alpha Roads Limited", "ZA"), record(BETA, "Beta Works Limited", "ZA")]
    take(desk, "gleif-lei", "lei.csv", "\n".join((LEI_COLUMNS, *register)) + "\n")
    desk.filings("alpha.csv", [figure(ALPHA, "revenue", 1, 2023)])
    extra = (
        release("o10", "2024-01-20", won("a1", "Alpha Roads Limited", amount=5, currency="USD")),
        release("o11", "2024-01-21", won("a1", "Alpha Roads Limited", amount=11), buyer="Karoo Water Board"),
    )
    tenders(desk, *map(as_json, AWARDS), *extra)
    columns = ("service_id", "tender_country", "quarter", "award_count", "buyer_count", "value_coverage")
    rows = observed(desk, "supplier-issuer-demand")
    alpha = sid(f"lei:{ALPHA}")
    assert told(rows, *columns, "currency", "award_value") == [
        (alpha, "ZA", "2024-Q2", 1, None, 0, None, None),
        (alpha, "ZA", "2024-Q1", 4, 2, Decimal("0.75"), "USD", 5),
        (alpha, "ZA", "2024-Q1", 4, 2, Decimal("0.75"), "ZAR", 111),
    ]
    take(desk, "identifiers", "i.csv", f"entity,id_type,id_value,registry\nlei:{BETA},ticker,JSE:BTA,\n")
    rows = observed(desk, "supplier-issuer-demand")
    assert {row["service_id"] for row in rows} == {alpha, sid(f"lei:{BETA}")}, (
        "a listed share makes an issuer"
    )


@pytest.mark.parametrize("day", [date(2024, 6, 29), date(2024, 6, 30), date(2024, 7, 1), date(2025, 3, 31)])
def test_what_is_said_of_a_closed_period_comes_from_releases_dated_by_then(tmp_path: Path, day: date) -> None:
    """The world cut off at a day gives the rows closed by then, and the whole world the same ones."""
    every = releases("ZA", 5, months=16)
    cut = [r for r in every if released(r).date() <= day]
    assert 0 < len(cut) < len(every)
    worlds = {}
    for name, given in (("whole", every), ("cut", cut)):
        desk = Desk(tmp_path / name, date(2026, 11, 1))
        tenders(desk, *given)
        worlds[name] = desk
    for key, panel in panels().items():
        if panel.sku == "AF-TENDER":
            whole, known = (observed(worlds[name], key) for name in ("whole", "cut"))
            for row in whole + known:  # the two files are not the same
                assert row.pop("source_ref").startswith("za-etenders:releases.json@")
            closed = [row for row in whole if row["closed_at"] <= str(day)]
            assert closed == [row for row in known if row["closed_at"] <= str(day)]
            assert (closed == []) == (key == "supplier-issuer-demand")


# Series


def test_momentum_compares_with_what_was_known_on_the_day(desk: Desk) -> None:
    rows = [
        ("2024-01-31", "100", "i", "2024-02-15"),
        ("2024-01-31", "110", "i", "2024-03-10"),  # revised before February is known: this is compared with
        ("2024-01-31", "50", "i", "2024-04-20"),  # revised later: changes nothing
        ("2024-02-29", "121", "i", "2024-03-15"),
        ("2024-03-31", "0", "i", "2024-04-15"),
        ("2024-04-30", "10", "i", "2024-05-15"),  # a month after zero; three after January, then 50
        ("2024-05-31", "12", "other", "2024-06-15"),
        ("2024-06-30", "13", "i", "2024-07-15"),
        ("2024-06-30", "", "i", "2024-08-01"),  # withdrawn
        ("2024-07-31", "14", "i", "2024-08-15"),
        ("2024-09-15", "15", "i", "2024-10-15"),
        ("2024-09-30", "16", "i", "2024-10-20"),  # a second one in September
    ]
    take(desk, "series", "s.csv", SERIES + "".join(f"CPI.ZA,cpi,monthly,ZA,{','.join(r)}\n" for r in rows))
    found = told(observed(desk, "macro-momentum"), "date", "known_at", "value", "momentum_1p", "momentum_3p")
    assert found == [
        ("2024-09-30", "2024-10-20", 16, None, None),
        ("2024-09-15", "2024-10-15", 15, None, None),  # three before is withdrawn
        ("2024-07-31", "2024-08-15", 14, None, Decimal("0.4")),
        ("2024-06-30", "2024-07-15", 13, None, None),
        ("2024-05-31", "2024-06-15", 12, None, None),
        ("2024-04-30", "2024-05-15", 10, None, Decimal("-0.8")),
        ("2024-03-31", "2024-04-15", 0, Decimal("-1"), None),
        ("2024-02-29", "2024-03-15", 121, Decimal("0.1"), None),
        ("2024-01-31", "2024-02-15", 100, None, None),
    ]


def test_quarters_and_years_are_periods_and_days_and_weeks_are_not(desk: Desk) -> None:
    rows = [
        "GDP.ZA,gdp,quarterly,ZA,2023-03-31,100,m,2023-05-01",
        "GDP.ZA,gdp,quarterly,ZA,2023-06-30,101,m,2023-08-01",
        "GDP.ZA,gdp,quarterly,ZA,2023-12-31,104,m,2024-02-01",
        "POP.ZA,pop,annual,,2022-12-31,60,m,2023-05-01",
        "POP.ZA,pop,annual,,2023-01-01,61,m,2024-05-01",
        "FX.USD.ZAR,fx,daily,,2023-01-02,18,ZAR,2023-01-02",
        "FX.USD.ZAR,fx,weekly,,2023-01-09,18,ZAR,2023-01-09",
    ]
    take(desk, "series", "s.csv", SERIES + "\n".join(rows) + "\n")
    columns = ("series", "frequency", "country", "date", "momentum_1p", "momentum_3p")
    assert told(observed(desk, "macro-momentum"), *columns) == [
        ("GDP.ZA", "quarterly", "ZA", "2023-12-31", None, Decimal("0.04")),
        ("GDP.ZA", "quarterly", "ZA", "2023-06-30", Decimal("0.01"), None),
        ("GDP.ZA", "quarterly", "ZA", "2023-03-31", None, None),
        ("POP.ZA", "annual", None, "2023-01-01", Decimal("0.01666666667"), None),
        ("POP.ZA", "annual", None, "2022-12-31", None, None),
    ]


# Fundamentals


def figure(
    number: str, item: str, value: object, year: int, public: str = "", money: str = "ZAR"
) -> list[str]:
    """A row of the filings template: an instant for what is held, else the calendar year."""
    start = "" if item in ("assets",) else f"{year}-01-01"
    public = public or f"{year + 1}-03-31"
    name = f"afs-{public}"
    return [f"lei:{number}", item, str(value), money, start, f"{year}-12-31", public, name, "p. 1", ""]


def test_factors_are_the_metrics_of_every_year_as_its_figures_stand(desk: Desk) -> None:
    desk.filings(
        "alpha.csv",
        [
            figure(ALPHA, "revenue", 200, 2021),
            figure(ALPHA, "profit", 20, 2021),
            figure(ALPHA, "profit", 30, 2021, "2023-03-31"),  # restated a year later
            figure(ALPHA, "revenue", 300, 2022),
            figure(ALPHA, "revenue", 0, 2023),
            figure(ALPHA, "profit", 5, 2023),
        ],
    )
    columns = ("service_id", "period_end", "metric", "value", "available_at")
    alpha = sid(f"lei:{ALPHA}")
    assert told(observed(desk, "fundamentals-factors"), *columns) == [
        (alpha, "2023-12-31", "revenue_growth", -1, "2024-03-31"),
        (alpha, "2022-12-31", "revenue_growth", Decimal("0.5"), "2023-03-31"),
        (alpha, "2021-12-31", "net_margin", Decimal("0.15"), "2023-03-31"),
    ]


def test_quality_needs_its_inputs_and_three_margins(desk: Desk) -> None:
    rows = []
    for year, profit in ((2018, 10), (2019, 20), (2020, 30), (2022, 40), (2023, 50)):
        rows += [figure(ALPHA, "revenue", 100, year), figure(ALPHA, "profit", profit, year)]
    rows += [
        figure(ALPHA, "operating_cash_flow", 60, 2023),
        figure(ALPHA, "operating_profit", 70, 2023),
        figure(ALPHA, "depreciation_amortisation", 10, 2023),
        figure(ALPHA, "assets", 90, 2022),
        figure(ALPHA, "assets", 110, 2023),
    ]
    desk.filings("alpha.csv", rows)
    columns = ("period_end", "accruals_ratio", "cash_conversion", "margin_volatility", "margin_years")
    assert told(observed(desk, "fundamentals-quality"), *columns) == [
        (
            "2023-12-31",
            Decimal("-0.1"),
            Decimal("0.75"),
            None,
            2,
        ),  # no year 2021: what is before does not count
        ("2020-12-31", None, None, Decimal("0.08164965809"), 3),  # sqrt(2/300)
    ]


def test_volatility_is_of_five_years_at_most(desk: Desk) -> None:
    margins = (1, 2, 3, 4, 5, 60)
    rows = []
    for year, profit in enumerate(reversed(margins), 2018):
        rows += [figure(ALPHA, "revenue", 100, year), figure(ALPHA, "profit", profit, year)]
    desk.filings("alpha.csv", rows)
    found = told(observed(desk, "fundamentals-quality"), "period_end", "margin_volatility", "margin_years")
    assert found[0] == ("2023-12-31", Decimal("0.01414213562"), 5)  # sqrt(2) / 100
    assert [row[0][:4] for row in found] == ["2023", "2022", "2021", "2020"]


def test_revisions_compare_the_latest_figure_with_the_first(desk: Desk) -> None:
    later, last = "2023-06-30", "2024-06-30"
    desk.filings(
        "alpha.csv",
        [
            figure(ALPHA, "revenue", -100, 2022),
            figure(ALPHA, "revenue", -150, 2022, later),
            figure(ALPHA, "profit", 10, 2022),
            figure(ALPHA, "profit", 20, 2022, later),
            figure(ALPHA, "profit", 10, 2022, last),
            figure(ALPHA, "income_tax", 0, 2022),
            figure(ALPHA, "income_tax", 5, 2022, later),
            figure(ALPHA, "capex", 7, 2022),
            figure(ALPHA, "capex", "", 2022, later),
            figure(ALPHA, "finance_costs", 3, 2022),
            figure(ALPHA, "finance_costs", 3, 2022, later),  # said again: no revision
            figure(ALPHA, "odd_item", 1, 2022),
            figure(ALPHA, "odd_item", 2, 2022, later),  # none of ours
            [*figure(ALPHA, "revenue", 1, 2022)[:4], "2022-01-01", "2022-06-30", "2022-09-01", "h1", "", ""],
            [*figure(ALPHA, "revenue", 2, 2022)[:4], "2022-01-01", "2022-06-30", later, "h2", "", ""],
        ],
    )
    rows = observed(desk, "fundamentals-revisions")
    columns = ("line_item", "vintages", "first_value", "latest_value", "revision_size", "direction")
    assert told(rows, *columns, "first_available_at", "available_at") == [
        ("capex", 2, 7, None, None, None, "2023-03-31", later),
        ("income_tax", 2, 0, 5, None, "up", "2023-03-31", later),
        ("profit", 3, 10, 10, 0, "none", "2023-03-31", last),
        ("revenue", 2, -100, -150, Decimal("-0.5"), "down", "2023-03-31", later),
    ]
    assert {(row["period_start"], row["period_end"]) for row in rows} == {("2022-01-01", "2022-12-31")}


def test_persistence_counts_years_in_a_row(desk: Desk) -> None:
    years = {
        2017: (1, 100),
        2018: (-1, 110),
        2019: (2, 120),
        2020: (3, 120),
        2021: (None, 130),
        2022: (4, 140),
        2023: (5, None),
    }
    rows = []
    for year, (profit, revenue) in years.items():
        rows += [figure(ALPHA, "profit", profit, year)] if profit is not None else []
        rows += [figure(ALPHA, "revenue", revenue, year)] if revenue is not None else []
    rows += [figure(BETA, "revenue", 1, 2021), figure(BETA, "revenue", 2, 2022, money="USD")]
    desk.filings("alpha.csv", rows)
    columns = ("period_end", "years_held", "profit_years", "revenue_growth_years")
    alpha = [row for row in observed(desk, "issuer-persistence") if row["service_id"] == sid(f"lei:{ALPHA}")]
    assert told(alpha, *columns) == [
        ("2023-12-31", 7, 2, None),
        ("2022-12-31", 6, 1, 2),
        ("2021-12-31", 5, None, 1),
        ("2020-12-31", 4, 2, 0),
        ("2019-12-31", 3, 1, 2),
        ("2018-12-31", 2, 0, 1),
        ("2017-12-31", 1, 1, None),
    ]
    assert len(observed(desk, "issuer-persistence")) == 7, "revenue in two currencies tells nothing"


@pytest.mark.rule("PROV-3", "PROV-10")
def test_a_row_is_held_under_the_strictest_class_and_captured_with_the_last_of_its_inputs(desk: Desk) -> None:
    desk.filings("alpha.csv", [figure(ALPHA, "revenue", 100, 2022)])
    desk.set_day(date(2024, 11, 20))
    licensed = (
        '[sources.licensed]\nadapter = "filings-csv"\nsku = "AF-FUND"\n'
        'license_class = "licensed-redistribution"\ncommercial_redistribution = true\n'
    )
    (desk.home / "sources.toml").write_text(licensed)
    header = (
        "entity,line_item,value,currency,period_start,period_end,available_at,document,location,confidence"
    )
    take(desk, "licensed", "more.csv", f"{header}\n{','.join(figure(ALPHA, 'profit', 5, 2022))}\n")
    (row,) = observed(desk, "fundamentals-factors")
    assert (row["metric"], row["license_class"]) == ("net_margin", "licensed-redistribution")
    assert row["observed_at"] == "2024-11-20T12:00:00Z"
    assert row["source_ref"].startswith("licensed:"), "of the first of its inputs"
