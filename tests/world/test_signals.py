"""Signals through the real ledger: each panel on a small world written by hand, never ahead of its day."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sankofa.derive.signals.contract import panels
from tests.depth import deep_after
from tests.live import columns_of
from tests.spec.demand import released, releases
from tests.spec.register import COLUMNS as LEI_COLUMNS
from tests.spec.register import record, sid
from tests.world.desk import Desk
from tests.world.signals_desk import (
    ALPHA,
    BETA,
    PERSON,
    SERIES,
    figure,
    observed,
    release,
    take,
    tenders,
    won,
)
from tests.world.signals_desk import desk as desk

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


def as_json(own_release: dict[str, Any]) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(json.dumps(own_release, default=float))
    return decoded


def test_awards_are_counted_once_where_they_were_first_released(desk: Desk) -> None:
    tenders(desk, *map(as_json, AWARDS))
    rows = observed(desk, "tender-award-concentration")
    assert columns_of(
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


def test_a_quarter_appears_once_releases_were_captured_at_its_end(desk: Desk) -> None:
    tenders(desk, *map(as_json, AWARDS))
    assert observed(desk, "public-buyer-concentration")[0]["quarter"] == "2024-Q3"
    for day, newest in ((date(2024, 12, 30), "2024-Q3"), (date(2024, 12, 31), "2024-Q4")):
        desk.set_day(day)
        tenders(desk, release("o9", str(day)), name=f"{day}.json")
        for key in ("public-buyer-concentration", "tender-award-concentration"):
            assert observed(desk, key)[0]["quarter"] == newest, (day, key)
        months = columns_of(observed(desk, "procurement-demand"), "month")
        assert (("2024-12",) in months) is (newest == "2024-Q4"), "a month likewise"
        assert ("2024-10",) in months


def test_unnamed_buyers_are_left_out_and_counted(desk: Desk) -> None:
    tenders(
        desk,
        release("o1", "2024-01-01", buyer="Ministry of Health"),
        release("o1", "2024-01-02", buyer="Karoo Water Board"),
        release("o2", "2024-02-01", buyer="MINISTRY OF HEALTH"),
        release("o3", "2024-03-01", buyer="Karoo Water Board"),
        release("o4", "2024-03-31", buyer=PERSON),
        release("o5", "2024-04-01", buyer=PERSON),
    )
    assert columns_of(
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


def test_issuers_have_a_row_for_the_awards_they_won(desk: Desk) -> None:
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
    assert columns_of(rows, *columns, "currency", "award_value") == [
        (alpha, "ZA", "2024-Q2", 1, None, 0, None, None),
        (alpha, "ZA", "2024-Q1", 4, 2, Decimal("0.75"), "USD", 5),
        (alpha, "ZA", "2024-Q1", 4, 2, Decimal("0.75"), "ZAR", 111),
    ]
    take(desk, "identifiers", "i.csv", f"entity,id_type,id_value,registry\nlei:{BETA},ticker,JSE:BTA,\n")
    rows = observed(desk, "supplier-issuer-demand")
    assert {row["service_id"] for row in rows} == {alpha, sid(f"lei:{BETA}")}, (
        "a listed share makes an issuer"
    )


@pytest.mark.parametrize(
    "day", deep_after(2, [date(2024, 6, 29), date(2024, 6, 30), date(2024, 7, 1), date(2025, 3, 31)])
)
def test_a_closed_period_uses_only_releases_dated_by_then(tmp_path: Path, day: date) -> None:
    """The world cut off at a day gives the rows closed by then, and the whole world gives the same ones."""
    every = releases("ZA", 5, months=16)
    cut = [r for r in every if released(r).date() <= day]
    assert 0 < len(cut) < len(every)
    worlds = {}
    for name, own in (("whole", every), ("cut", cut)):
        desk = Desk(tmp_path / name, date(2026, 11, 1))
        tenders(desk, *own)
        worlds[name] = desk
    for key, panel in panels().items():
        if panel.sku == "AF-TENDER":
            whole, truncated = (observed(worlds[name], key) for name in ("whole", "cut"))
            for row in whole + truncated:  # otherwise the two files are equal
                assert row.pop("source_ref").startswith("za-etenders:releases.json@")
            closed = [row for row in whole if row["closed_at"] <= str(day)]
            assert closed == [row for row in truncated if row["closed_at"] <= str(day)]
            assert (closed == []) == (key == "supplier-issuer-demand")


# Series


def test_momentum_compares_with_values_known_on_the_day(desk: Desk) -> None:
    rows = [
        ("2024-01-31", "100", "i", "2024-02-15"),
        ("2024-01-31", "110", "i", "2024-03-10"),  # revised before February: used to compare
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
    momentum = columns_of(
        observed(desk, "macro-momentum"), "date", "known_at", "value", "momentum_1p", "momentum_3p"
    )
    assert momentum == [
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
    assert columns_of(observed(desk, "macro-momentum"), *columns) == [
        ("GDP.ZA", "quarterly", "ZA", "2023-12-31", None, Decimal("0.04")),
        ("GDP.ZA", "quarterly", "ZA", "2023-06-30", Decimal("0.01"), None),
        ("GDP.ZA", "quarterly", "ZA", "2023-03-31", None, None),
        ("POP.ZA", "annual", None, "2023-01-01", Decimal("0.01666666667"), None),
        ("POP.ZA", "annual", None, "2022-12-31", None, None),
    ]
