"""GET /v1/series and GET /v1/series/{series}/vintages: the series, and when each was released."""

from collections import Counter
from typing import Any

import pytest

from tests.live import LiveServer

FIELDS = set(
    "series name unit note frequency country first_date last_date vintages source_id source_ref "
    "license_class observed_at".split()
)
Rows = list[dict[str, Any]]


def catalogue(server: LiveServer, key: str, query: str = "") -> Rows:
    return server.rows(f"/v1/series?limit=1000&{query}", key)


@pytest.mark.rule("SER-1")
def test_the_list_matches_the_series_and_indicators_of_macro(server: LiveServer, paid_key: str) -> None:
    rows = catalogue(server, paid_key)
    assert all(set(row) == FIELDS for row in rows)
    order = [(row["series"], row["frequency"], row["country"] or "") for row in rows]
    assert order == sorted(order)
    assert len(set(order)) == len(order)
    annual = server.rows("/v1/macro?limit=10000", paid_key)
    listed = {(row["series"], row["country"]): row for row in rows if row["vintages"] == 0}
    assert listed.keys() == {(row["indicator"], row["country"]) for row in annual}
    for (indicator, country), row in listed.items():
        own = [one for one in annual if (one["indicator"], one["country"]) == (indicator, country)]
        years = [one["year"] for one in own]
        assert (row["first_date"], row["last_date"]) == (f"{min(years)}-12-31", f"{max(years)}-12-31")
        assert (row["name"], row["unit"]) == (own[0]["indicator_name"], own[0]["unit"])
        assert own[0]["source_ref"].startswith(row["source_id"] + ":")
    dated = [row for row in rows if row["vintages"]]
    assert len(dated) > 5
    for row in dated:
        own = server.rows(f"/v1/macro?series={row['series']}&limit=10000", paid_key)
        days = [one["date"] for one in own]
        assert (row["first_date"], row["last_date"]) == (min(days), max(days))
        assert (row["unit"], row["frequency"], row["country"]) == tuple(
            own[0][name] for name in ("unit", "frequency", "country")
        )


_ALSO = {"CPI": "inflation consumer prices", "FX": "exchange rate currency"}
"""Words that people search a family of series by, by the beginning of its keys."""


@pytest.mark.rule("SER-2")
def test_a_query_finds_series_with_every_word_or_its_beginning(server: LiveServer, paid_key: str) -> None:
    rows = catalogue(server, paid_key)

    def expected(*words: str) -> Rows:
        def has(row: dict[str, Any], word: str) -> bool:
            also = _ALSO.get(row["series"].partition(".")[0], "")
            text = f"{row['series'].replace('.', ' ')} {row['name']} {also}".lower()
            return any(part.strip("(),%$").startswith(word) for part in text.split())

        return [row for row in rows if all(has(row, word) for word in words)]

    for words in (
        ("cpi",),
        ("gdp",),
        ("gdp", "growth"),
        ("south", "africa"),
        ("infl",),
        ("exchange", "rand"),
    ):
        assert expected(*words)
        assert catalogue(server, paid_key, "q=" + "+".join(words)) == expected(*words), words
        assert catalogue(server, paid_key, "q=" + "+".join(reversed(words)).upper()) == expected(*words)
    assert catalogue(server, paid_key, "q=zzz") == catalogue(server, paid_key, "q=--") == []


@pytest.mark.rule("SER-2", "PAR-6")
def test_a_country_keeps_its_own_series_and_pages_give_each_once(server: LiveServer, paid_key: str) -> None:
    rows = catalogue(server, paid_key)
    for query, own in (
        ("country=ZA", [row for row in rows if row["country"] == "ZA"]),
        ("country=nga&q=gdp", [r for r in catalogue(server, paid_key, "q=gdp") if r["country"] == "NG"]),
        ("", rows),
    ):
        pages = server.pages(f"/v1/series?limit=3&{query}", paid_key)
        assert [row for page in pages for row in page["data"]] == own
        assert own
    assert catalogue(server, paid_key, "country=AQ") == []


@pytest.mark.rule("SER-3")
def test_releases_are_the_days_on_which_values_became_known(server: LiveServer, paid_key: str) -> None:
    for series in ("CPI.NG", "GDP.ZA", "cpi.ke"):
        releases = server.rows(f"/v1/series/{series}/vintages?limit=1000", paid_key)
        days = [row["release_date"] for row in releases]
        assert days == sorted(days, reverse=True)
        entry = next(row for row in catalogue(server, paid_key) if row["series"] == series.upper())
        assert entry["vintages"] == len(set(days)) == len(days)
        before: dict[str, Any] = {}
        for row in reversed(releases):
            path = f"/v1/macro?series={series}&limit=1000&as_of={row['release_date']}"
            current = {one["date"]: one["value"] for one in server.rows(path, paid_key)}
            kinds = Counter(day in before for day in current if current[day] != before.get(day))
            assert (row["added"], row["changed"]) == (kinds[False], kinds[True]), row
            before = current
    # A value released before its own date is known from that date on (contract: PIT-5).
    flash = server.rows("/v1/series/CPI.ZA/vintages?limit=1000", paid_key)
    assert flash[0]["release_date"] == "2025-07-30"
    values = server.rows("/v1/macro?series=CPI.ZA&limit=1000", paid_key)
    assert sum(row["added"] for row in flash) == len(values)
    assert sum(row["changed"] for row in flash) >= sum(row["vintage"] - 1 for row in values) > 0


@pytest.mark.rule("SER-3")
def test_an_indicator_has_no_releases_and_an_unknown_series_is_not_found(server: LiveServer, paid_key: str):
    assert server.rows("/v1/series/NY.GDP.MKTP.CD/vintages", paid_key) == []
    answer = server.get("/v1/series/CPI.ZZ/vintages", paid_key)
    assert answer.status_code == 404
    assert "CPI.ZA" in answer.json()["detail"]
    assert server.get("/v1/series/CPI ZA/vintages", paid_key).status_code == 404
    for path in ("CPI.ZA", "CPI.ZA/", "CPI.ZA/vintages/x", "CPI.ZA/vintages/", "/vintages"):
        assert server.get(f"/v1/series/{path}", paid_key).status_code == 404, path
