"""The bundled sample world, as served: everything its README plants is found, or never found."""

from datetime import date
from pathlib import Path

import pytest

from tests.depth import deep_after
from tests.live import LiveServer
from tests.spec.sample_reference import (
    DAYS,
    ISSUERS,
    NEVER_SERVED,
    PERSON,
    TENDER_COUNTRIES,
    Reader,
    issuer,
    told,
)
from tests.spec.sample_reference import reader as reader
from tests.world.reference import MODES, knowable, seen, told_in


@pytest.mark.rule("VINT-1")
@pytest.mark.parametrize("name", deep_after(4, [*ISSUERS]))
def test_every_issuer_is_served_as_a_replay_of_its_files_has_it(reader: Reader, name: str) -> None:
    for day in DAYS:
        for mode in MODES:
            rows = reader.rows(name, as_of=day, vintages=mode)
            expected = told_in(mode, knowable(told(name), date.fromisoformat(day), mode))
            assert seen(rows) == expected, (day, mode)
            assert all(row["license_class"] == "synthetic" for row in rows)


def test_nothing_of_a_natural_person_is_in_any_answer(server: LiveServer, reader: Reader, paid_key: str):
    for name in (*ISSUERS, "ZA0002"):
        bodies = [
            reader.body(f"/v1/{kind}/{issuer(name)}") for kind in ("entities", "crosswalk", "fundamentals")
        ]
        bodies += [reader.body(f"/v1/fundamentals/{issuer(name)}?vintages={mode}") for mode in MODES]
        for body in bodies:
            assert not [text for text in NEVER_SERVED if text in body], name
    for country in TENDER_COUNTRIES:
        for kind in ("tenders", "tender-parties"):
            body = reader.body(f"/v1/{kind}?country={country}&limit=10000").lower()
            assert not [text for text in NEVER_SERVED if text.lower() in body], (country, kind)
    for kind in ("entities", "crosswalk", "fundamentals"):
        refused = server.get(f"/v1/{kind}/{PERSON}", paid_key)
        assert refused.status_code == 404
        assert "SAMPLEZA000383" not in refused.text
    assert not [text for text in NEVER_SERVED if text in server.log]


@pytest.mark.slow
def test_nothing_of_a_natural_person_is_in_any_file_of_the_data_folder(sample_home: Path) -> None:
    holding = [
        (path.name, text)
        for path in sample_home.rglob("*")
        if path.is_file()
        for content in [path.read_bytes().lower().replace(b"\0", b"")]  # so that UTF-16 is found as well
        for text in NEVER_SERVED
        if text.lower().encode() in content
    ]
    assert holding == []


@pytest.mark.rule("VINT-2", "VINT-3")
@pytest.mark.parametrize(
    ("name", "line_item", "period_end", "figures"),
    [
        ("KE0001", "revenue", "2023-03-31", [144229717000, 147348157000, 144229717000]),
        ("GH0001", "capex", "2023-06-30", [65422000, 63622000]),
        ("MA0001", "depreciation_amortisation", "2021-12-31", [697199000, None]),
        ("ZM0001", "capex", "2023-12-31", [105717000]),
        ("CI0001", "payables", "2022-09-30", []),
        ("EG0001", "receivables", "2023-12-31", [1822170876]),
        ("9999900003", "us-gaap:Revenues", "2022-12-31", [302985000, 296573000]),
    ],
)
def test_the_planted_vintages_are_served(
    reader: Reader, name: str, line_item: str, period_end: str, figures: list[int | None]
) -> None:
    assert reader.figures(name, line_item, period_end, period_type="FY") == figures


def test_a_withdrawn_figure_is_null_from_the_day_it_was_withdrawn(reader: Reader) -> None:
    asked = ("MA0001", "depreciation_amortisation", "2021-12-31")
    assert reader.figures(*asked, as_of="2024-03-24", vintages="latest") == [697199000]
    assert reader.figures(*asked, as_of="2024-03-25", vintages="latest") == [None]


@pytest.mark.rule("PIT-3")
def test_an_undated_schedule_is_known_from_its_capture_and_not_before(reader: Reader) -> None:
    (row,) = [r for r in reader.rows("ZM0001", vintages="all") if r["value_reported"] == 105717000]
    assert row["available_at"] == row["observed_at"][:10]
    assert not [r for r in reader.rows("ZM0001", as_of="2024-12-31") if r["value_reported"] == 105717000]


@pytest.mark.rule("FIG-1")
def test_figures_beyond_two_to_the_53_keep_every_digit(reader: Reader) -> None:
    body = reader.body(f"/v1/fundamentals/{issuer('NG0001')}?vintages=all")
    for digits in ("9007199254740992", "9007199254740993", "11258999068426241", "8123456789012345.67"):
        assert f'"value_reported":{digits},' in body
