"""Observations of ALFRED with their real-time periods."""

import json
from typing import Any

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.observations import SeriesColumn
from sankofa.model.records import Rejected
from tests.every import every
from tests.unit.sources.conftest import Read, Written

FOREVER = "9999-12-31"


def document(*rows: tuple[str, str, str, str], **members: Any) -> str:
    names = ("realtime_start", "realtime_end", "date", "value")
    whole = {
        "realtime_start": "1776-07-04", "realtime_end": FOREVER, "observation_start": "1600-01-01",
        "observation_end": FOREVER, "units": "lin", "output_type": 1, "file_type": "json", "count": len(rows),
        "observations": [dict(zip(names, row, strict=True)) for row in rows],
    }  # fmt: skip
    return json.dumps(whole | members)


def told(record: object) -> list[tuple[str, str, str]]:
    assert isinstance(record, SeriesColumn)
    return [entry[:3] for entry in record.values]


@pytest.mark.rule("ADP-8")
def test_a_value_is_public_from_realtime_start_and_a_point_is_no_value(read: Read, written: Written) -> None:
    text = document(
        ("2024-02-13", "2025-02-11", "2024-01-01", "308.417"),
        ("2025-02-12", FOREVER, "2024-01-01", "309.6850"),
        ("2024-03-12", FOREVER, "2024-02-01", "."),
    )
    (column,) = read("alfred", written("cpiaucsl.json", text))
    assert isinstance(column, SeriesColumn)
    assert column[:5] == ("CPIAUCSL", "cpi", "monthly", "", "cpiaucsl.json")
    assert told(column) == [
        ("2024-01-01", "2024-02-13", "308.417"),
        ("2024-01-01", "2025-02-12", "309.685"),
        ("2024-02-01", "2024-03-12", ""),
    ]


def test_a_value_that_ended_with_none_after_it_was_withdrawn(read: Read, written: Written) -> None:
    rows = (("2024-02-13", "2024-06-30", "2024-01-01", "1"), ("2024-03-13", FOREVER, "2024-02-01", "2"))
    (column,) = read("alfred", written("X.json", document(*rows)))
    assert told(column)[2:] == [("2024-01-01", "2024-07-01", "")]
    # An end that is only the end of what was asked for says nothing; nor do first releases alone.
    for members in ({"realtime_end": "2024-06-30"}, {"output_type": 4}):
        (column,) = read("alfred", written("X.json", document(*rows, **members)))
        assert len(told(column)) == 2


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
def test_the_frequency_is_told_from_the_dates(
    read: Read, written: Written, days: tuple[str, ...], frequency: str
) -> None:
    (column,) = read("alfred", written("X.json", document(*((d, FOREVER, d, "1") for d in days))))
    assert isinstance(column, SeriesColumn)
    assert column.frequency == frequency


def test_a_bad_observation_costs_itself(read: Read, written: Written) -> None:
    good = [("2024-02-13", FOREVER, day, "1") for day in ("2024-01-01", "2024-02-01")]
    bad = [
        ("2024-02-13", "2024-01-01", "2024-03-01", "1"),
        ("x", FOREVER, "2024-03-01", "1"),
        ("2024-02-13", FOREVER, "2024-03-01", "nan"),
    ]
    *faults, column = read("alfred", written("X.json", document(*good, *bad)))
    assert [type(fault) for fault in faults] == [Rejected] * 3
    assert len(told(column)) == 2


@every(
    ("text", "said"),
    [
        ("{}", "not such a document"),
        ("[]", "not such a document"),
        (document(("2024-01-01", FOREVER, "2024-01-01", "1")), "frequency cannot be told"),
        (document(units="pch"), "units is 'pch'"),
        (document(output_type=2), "output_type"),
        ('{"error_code":400,"error_message":"Bad Request."}', "not such a document"),
    ],
)
def test_another_format_is_an_error_that_says_what_was_expected(
    read: Read, written: Written, text: str, said: str
) -> None:
    with pytest.raises(FormatError, match=r"X\.json: expected observations of FRED or ALFRED") as refusal:
        read("alfred", written("X.json", text))
    assert said in str(refusal.value)
