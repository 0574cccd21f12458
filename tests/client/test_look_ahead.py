"""The check for look-ahead refuses a frame with later knowledge."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pandas
import pytest

from sankofa.client import Client, LookAhead, look_ahead_check

RIFTLINE = "DC8342E4A6CD9A7F25CAC383F4"
DAY = date(2023, 12, 31)


@pytest.mark.parametrize("kind", ["rows", "answer", "pandas", "polars"])
def test_known_rows_pass_and_later_rows_fail(client: Client, kind: str) -> None:
    def frame(as_of: date | None) -> Any:
        answer = client.columns.get_fundamentals(RIFTLINE, as_of=as_of, vintages="all")
        forms = {"rows": lambda: answer.rows, "answer": lambda: answer}
        return forms[kind]() if kind in forms else getattr(answer, f"to_{kind}")()

    look_ahead_check(frame(DAY), DAY)
    look_ahead_check(frame(DAY), "2023-12-31")
    with pytest.raises(LookAhead, match="were not known yet") as raised:
        look_ahead_check(frame(None), DAY)
    late, unknown = raised.value.late, raised.value.unknown
    assert len(late) > 0
    assert len(unknown) == 0
    rows = late.to_dict("records") if kind == "pandas" else late.to_dicts() if kind == "polars" else late
    for row in rows:
        days = [str(row[name])[:10] for name in ("available_at", "superseded_at")]
        assert any(day > "2023-12-31" for day in days if day[:1].isdigit())


@pytest.mark.parametrize(
    "day",
    [
        pandas.Timestamp("2023-12-31"),
        datetime(2023, 12, 31, 12, tzinfo=UTC),
        datetime(2023, 12, 31, 3, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_an_instant_counts_as_its_day(client: Client, day: datetime) -> None:
    answer = client.get_fundamentals(RIFTLINE, as_of=day)
    assert answer.as_of == DAY
    look_ahead_check(answer.to_pandas(), day)
    with pytest.raises(LookAhead, match="as of 2023-12-31"):
        look_ahead_check(client.get_fundamentals(RIFTLINE).to_pandas(), day)


@pytest.mark.parametrize(
    ("day", "why"),
    [
        (
            datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))),
            "2024-01-01 there and on 2023-12-31 in",
        ),
        (
            datetime(2023, 12, 31, 20, tzinfo=timezone(timedelta(hours=-5))),
            "2023-12-31 there and on 2024-01-01",
        ),
        (datetime(2023, 12, 31, 12), "no time zone"),  # noqa: DTZ001
        (pandas.Timestamp("2023-12-31 23:59"), "no time zone"),
        (pandas.NaT, "expected a day, not NaT"),
    ],
)
def test_an_instant_with_an_ambiguous_day_is_refused(client: Client, day: datetime, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        client.get_fundamentals(RIFTLINE, as_of=day)
    with pytest.raises(ValueError, match=why):
        look_ahead_check([], day)


def test_a_row_that_reveals_a_later_revision_fails(client: Client) -> None:
    """The figure was known then; its later replacement was not."""
    answer = client.get_fundamentals(RIFTLINE, vintages="all", period_type="FY")
    revealing = [row for row in answer if row["available_at"] <= "2023-12-31" < (row["superseded_at"] or "")]
    assert revealing
    with pytest.raises(LookAhead) as raised:
        look_ahead_check(revealing, DAY)
    assert raised.value.late == revealing


@pytest.mark.parametrize("kind", ["rows", "pandas", "polars"])
def test_an_unknown_day_does_not_pass(client: Client, kind: str) -> None:
    answer = client.get_macro(country="ZA", indicator="NY.GDP.MKTP.CD", limit=5)
    frame: Any = answer.rows if kind == "rows" else getattr(answer, f"to_{kind}")()
    with pytest.raises(LookAhead, match="do not say when") as raised:
        look_ahead_check(frame, DAY)
    assert (len(raised.value.late), len(raised.value.unknown)) == (0, answer.count)
    look_ahead_check(frame, DAY, allow_unknown=True)


def test_panels_and_tenders_are_checked_by_their_own_days(client: Client) -> None:
    demand = client.get_procurement_demand(as_of=DAY)
    look_ahead_check(demand.to_polars(), DAY)
    with pytest.raises(LookAhead):
        look_ahead_check(client.get_procurement_demand(), DAY)
    with pytest.raises(LookAhead):
        look_ahead_check(client.search_tenders(), DAY)


def test_every_open_panel_says_when_its_rows_became_known(client: Client) -> None:
    for row in client.get_export():
        if row["access"] == "open":
            panel = client.scan_panel(row["name"]).collect()
            look_ahead_check(panel, "2026-12-31")
            with pytest.raises(LookAhead) as raised:
                look_ahead_check(panel, DAY)
            assert 0 < raised.value.late.height < panel.height
            assert raised.value.unknown.height == 0


def test_a_frame_without_days_is_refused(client: Client) -> None:
    with pytest.raises(LookAhead, match="no column gives the day"):
        look_ahead_check(client.get_entity(RIFTLINE).to_pandas(), DAY)


def test_an_empty_frame_passes(client: Client) -> None:
    look_ahead_check([], DAY)
    look_ahead_check(client.get_fundamentals(RIFTLINE, as_of="1990-01-01").to_polars(), DAY)


def test_every_kind_of_missing_day_is_unknown() -> None:
    frame = pandas.DataFrame(
        {"available_at": pandas.Series([pandas.NA, None, pandas.NaT, "2023-01-01"], dtype="object")}
    )
    with pytest.raises(LookAhead) as raised:
        look_ahead_check(frame, DAY)
    assert (len(raised.value.late), len(raised.value.unknown)) == (0, 3)


def test_a_statement_is_checked_cell_by_cell(client: Client) -> None:
    frame = client.statement("DC8342E4A6CD9A7F25CAC383F4", as_of="2024-12-31")
    look_ahead_check(frame, "2024-12-31")
    with pytest.raises(LookAhead) as raised:
        look_ahead_check(frame, "2022-12-31")
    assert raised.value.late
    assert {"line_item", "period_end", "available_at"} <= set(raised.value.late[0])
    older = frame[[column for column in frame.columns if column.year < 2021]]
    look_ahead_check(older, "2024-12-31")
    answer = client.get_statement("DC8342E4A6CD9A7F25CAC383F4", as_of="2024-12-31", shape="wide")
    look_ahead_check(answer, "2024-12-31")


def test_a_screen_that_depends_on_later_restatements_is_refused(client: Client) -> None:
    day = "2024-01-01"  # Riftline's FY2023 was restated in June 2024
    current = client.get_screen("net_margin", as_of=day, all=True)
    look_ahead_check(current, day)
    with pytest.raises(LookAhead, match="because of later events") as raised:
        look_ahead_check(current.to_pandas(), day, client=client)
    assert RIFTLINE in {row["service_id"] for row in raised.value.missing}
    look_ahead_check(
        client.get_screen("net_margin", as_of=day, basis="as_known", all=True), day, client=client
    )
    with pytest.raises(ValueError, match="metric and service_id"):
        look_ahead_check(client.get_fundamentals(RIFTLINE, as_of=DAY), DAY, client=client)
