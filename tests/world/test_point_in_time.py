"""Vintages and as_of through the real ledger, build and edition, against a replay of the rules."""

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sankofa.model.identifiers import service_id
from tests.spec.market import without_mark
from tests.torture import rounds
from tests.world.desk import Answer, Desk, around, as_row, ask
from tests.world.reference import FiledFigure, answered_rows, expected_in, knowable

ISSUER = "ticker:JSE:TST"
KEY = service_id(ISSUER)
# The first capture is before the end of the year, so a figure can be known too early, dated or not.
CAPTURES = (date(2020, 11, 15), date(2021, 2, 1), date(2021, 6, 1))
PERIODS = (
    (date(2020, 1, 1), date(2020, 12, 31)),
    (date(2020, 7, 1), date(2020, 9, 30)),
    (None, date(2020, 12, 31)),
)
DAYS = (
    date(2020, 9, 29), date(2020, 10, 1), date(2020, 11, 15), date(2020, 12, 30), date(2020, 12, 31),
    date(2021, 1, 1), date(2021, 1, 2), date(2021, 1, 31), date(2021, 2, 1), date(2021, 3, 3),
    date(2021, 6, 1),
)  # fmt: skip
# The issuer's year is known from the start, so the names of its periods are fixed.
YEAR = FiledFigure(
    "assets", "ZAR", date(2019, 1, 1), date(2019, 12, 31), "d0", Decimal(7), date(2020, 3, 1), CAPTURES[0]
)
CONCEPTS = st.sampled_from(("revenue", "profit"))
UNITS = st.sampled_from(("ZAR", "USD"))
CAPTURED = st.sampled_from(CAPTURES)
DOCUMENTS = st.sampled_from(("d1", "d2", "d3"))
VALUES = st.sampled_from((Decimal(1), Decimal(2), Decimal("9007199254740993.5"), None))
CONFIDENCES = st.sampled_from((None, None, None, Decimal("0.85"), Decimal("0.84")))
LOCATIONS = st.sampled_from(("", "p. 1", "p. 2"))
DEEP = settings(
    max_examples=rounds(2, 6, 15),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[FiledFigure, str]]:
    """Reports of one issuer, each with a location; few facts, days and documents, so that they overlap."""
    facts = draw(st.lists(st.tuples(CONCEPTS, UNITS, st.sampled_from(PERIODS)), min_size=1, max_size=2))
    days = draw(st.lists(st.none() | st.sampled_from(DAYS), min_size=2, max_size=4, unique=True))
    report = st.builds(
        _filed, st.sampled_from(facts), st.sampled_from(days), CAPTURED, DOCUMENTS, VALUES, CONFIDENCES
    )
    return draw(st.lists(st.tuples(report, LOCATIONS), min_size=3, max_size=16))


def _filed(
    fact: tuple[str, str, tuple[date | None, date]],
    available: date | None,
    captured: date,
    document: str,
    value: Decimal | None,
    confidence: Decimal | None,
) -> FiledFigure:
    concept, unit, (start, end) = fact
    public = available if available is None or available <= captured else captured
    return FiledFigure(concept, unit, start, end, document, value, public, captured, confidence)


@contextmanager
def desk() -> Iterator[Desk]:
    with tempfile.TemporaryDirectory() as folder:
        yield Desk(Path(folder) / "home")


def take(desk: Desk, history: Sequence[tuple[FiledFigure, str]], files: int = 1) -> None:
    """Ingest a history, each report on its day of capture, split over so many files a day."""
    for captured in CAPTURES:
        desk.set_day(captured)
        rows = [as_row(ISSUER, filed, location) for filed, location in history if filed.captured == captured]
        if captured == CAPTURES[0]:
            rows.append(as_row(ISSUER, YEAR))
        for part in range(files):
            if rows[part::files]:
                summary = desk.filings(f"{captured}-{part}.csv", rows[part::files])
                assert (summary.failures, summary.rejects) == ([], None)


@pytest.mark.rule("PIT-1")
@DEEP
@given(histories())
def test_every_day_matches_a_replay_of_the_rules(history: list[tuple[FiledFigure, str]]) -> None:
    filed = [YEAR, *(report for report, _ in history)]
    events = {day for r in filed for day in (r.end, r.captured, r.available or r.captured)}
    with desk() as desk_:
        take(desk_, history)
        for (day, mode), answer in ask(desk_.publish(), KEY, around(events)).items():
            assert answered_rows(answer) == expected_in(mode, knowable(filed, day, mode)), (day, mode)


@pytest.mark.rule("PIT-4")
@DEEP
@given(histories())
def test_no_row_reveals_the_future_and_the_order_is_as_documented(
    history: list[tuple[FiledFigure, str]],
) -> None:
    with desk() as desk_:
        take(desk_, history)
        for (day, _), answer in ask(desk_.publish(), KEY, around(DAYS)).items():
            for row in answer:
                assert max(row["period_end"], row["available_at"], row["superseded_at"] or "") <= str(day)
                assert (row["superseded_at"] is None) == (row["superseding_record_ref"] is None)
                assert row["restated"] == (row["vintage"] > 1)
            order = [
                (
                    -date.fromisoformat(r["period_end"]).toordinal(),
                    r["period_type"],
                    r["line_item"],
                    r["vintage"],
                )
                for r in answer
            ]
            assert order == sorted(order)


@pytest.mark.rule("PIT-8")
@DEEP
@given(histories(), st.randoms(use_true_random=False), st.integers(2, 4))
def test_the_facts_are_the_same_whatever_the_order_of_ingestion_and_the_split_over_files(
    history: list[tuple[FiledFigure, str]], chance: random.Random, files: int
) -> None:
    together = [(filed._replace(captured=CAPTURES[-1]), location) for filed, location in history]
    shuffled = chance.sample(together, len(together))
    with desk() as one, desk() as other:
        take(one, together)
        take(other, shuffled, files)
        days = around(DAYS)
        assert unmarked(ask(one.publish(), KEY, days)) == unmarked(ask(other.publish(), KEY, days))


def unmarked(answers: dict[tuple[date, str], Answer]) -> dict[tuple[date, str], Answer]:
    """Answers without the part of a `source_ref` that identifies the captured file."""
    return {
        question: tuple({**row, "source_ref": without_mark(row["source_ref"])} for row in rows)
        for question, rows in answers.items()
    }


@pytest.mark.rule("PIT-9")
@DEEP
@given(histories(), histories())
def test_later_filings_do_not_change_a_past_view(
    history: list[tuple[FiledFigure, str]], later: list[tuple[FiledFigure, str]]
) -> None:
    last_day = date(2021, 6, 2)
    arriving = date(2021, 9, 1)
    days = [day for day in around((*DAYS, last_day)) if day <= last_day]
    with desk() as desk_:
        take(desk_, history)
        before = desk_.publish()
        answers = ask(before, KEY, days)
        desk_.set_day(arriving)
        new = [
            filed._replace(available=filed.available and arriving, captured=arriving) for filed, _ in later
        ]
        earlier = {(filed[:6], filed.available) for filed, _ in history}
        # A document without a date that was captured before is not a later filing.
        desk_.filings("later.csv", [as_row(ISSUER, t) for t in new if (t[:6], t.available) not in earlier])
        after = desk_.publish()
        assert ask(after, KEY, days) == answers
