"""GET /v1/changes: a copy that applies every page equals the edition, on each engine."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.live import LiveServer
from tests.spec.market import CITY, ENTITIES, Desk, release
from tests.spec.register import COLUMNS
from tests.torture import rounds

Copy = dict[tuple[str, ...], Any]
FILINGS = "entity,line_item,value,currency,period_start,period_end,available_at,document,location,confidence"
SERIES = "series,series_type,frequency,country,date,value,unit,release_date"
TICKERS = "entity,id_type,id_value,registry"


class PublishedEditions(NamedTuple):
    """Some editions with added, changed and removed rows, on their own server."""

    desk: Desk
    server: LiveServer
    key: str
    sample: str
    editions: list[str]

    def get(self, path: str, key: str = "", **query: Any) -> httpx.Response:
        return self.server.http.get(path, params=query, headers={"x-api-key": key or self.key})

    def page(self, **query: Any) -> dict[str, Any]:
        return next(self.server.pages("/v1/changes", self.key, **query))

    def all_rows(self, **query: Any) -> list[dict[str, Any]]:
        return [row for page in self.server.pages("/v1/changes", self.key, **query) for row in page["data"]]

    def copy(self, edition: str, **query: Any) -> Copy:
        """Everything in an edition."""
        return applied({}, self.all_rows(edition=edition, limit=10_000, **query))


def applied(copy: Copy, changes: list[dict[str, Any]]) -> Copy:
    """Apply the changes as a consumer does."""
    copy = dict(copy)
    for change in changes:
        name = (change["dataset"], *change["key"])
        if change["change"] == "removed":
            assert change["row"] is None
            del copy[name]
        else:
            assert (change["change"] == "changed") is (name in copy)
            copy[name] = change["row"]
    return copy


def filings(*rows: str) -> str:
    return "\n".join((FILINGS, *rows)) + "\n"


def figure(issuer: str, year: int, value: int, filed: str, document: str) -> str:
    return f"{issuer},revenue,{value},ZAR,{year}-01-01,{year}-12-31,{filed},{document},p1,"


def stages() -> Iterator[list[tuple[str, str, Any]]]:
    """The files ingested before each edition."""
    thorn, new = "registry:ZA-TEST:1", "registry:ZA-TEST:2"
    yield [
        ("gleif-lei", "lei.csv", "\n".join([COLUMNS, *ENTITIES]) + "\n"),
        (
            "filings",
            "f1.csv",
            filings(*(figure(thorn, y, y, f"{y + 1}-03-01", f"afs{y}") for y in range(2000, 2020))),
        ),
        ("series", "s1.csv", f"{SERIES}\nCPI.XA,cpi,monthly,ZA,2024-01-31,100.0,index,2024-02-20\n"),
        (
            "portal-za",
            "t1.json",
            [
                release(f"A{n}", f"2025-06-{1 + n % 9:02d}T10:00:00Z", tender={"title": f"Pipe {n}"})
                for n in range(40)
            ],
        ),
        ("portal-ke", "k1.json", [release("K1")]),
        (
            "identifiers",
            "i1.csv",
            f"{TICKERS}\n{thorn},ticker,JSE:THN,\n{thorn},aggregator,za/1,opencorporates\n",
        ),
    ]
    yield [  # a restatement, a correction, new rows
        (
            "filings",
            "f2.csv",
            filings(figure(thorn, 2019, 7, "2021-03-01", "afs2020"), figure(new, 2019, 1, "2020-03-01", "n")),
        ),
        (
            "series",
            "s2.csv",
            f"{SERIES}\nCPI.XA,cpi,monthly,ZA,2024-01-31,101.5,index,2024-03-20\nCPI.XB,cpi,monthly,KE,2024-01-31,1,index,2024-03-20\n",
        ),
        (
            "portal-za",
            "t2.json",
            [
                release("A3", "2025-06-04T10:00:00Z", tender={"title": "Pipe, corrected"}),
                release("B1", "2025-07-01T10:00:00Z"),
            ],
        ),
    ]
    yield [  # two organisations turn out to be one; an identifier is new
        ("identifiers", "i2.csv", f"{TICKERS}\n{new},registry,1,ZA-TEST\n{new},registry,77,ZA-OTHER\n"),
        ("portal-za", "t3.json", [release("C1", "2024-01-01T10:00:00Z", buyer=CITY)]),
    ]
    yield []


@pytest.fixture(scope="module")
def published(
    engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PublishedEditions]:
    desk = Desk(tmp_path_factory.mktemp("changes"), **engine)
    editions = []
    for stage in stages():
        for source, name, content in stage:
            desk.ingest(source, name, content)
        editions.append(desk.publish())
    assert editions.pop() == editions[-1], "nothing new is the same edition"
    with desk.serve() as caller:
        yield PublishedEditions(desk, caller.server, caller.key, desk.key("sample"), editions)


def test_without_since_everything_is_added(published: PublishedEditions) -> None:
    rows = published.all_rows(limit=10_000)
    assert {row["change"] for row in rows} == {"added"}
    assert {row["dataset"] for row in rows} == set(
        "crosswalk entities fundamentals macro-series tenders".split()
    )
    names = [(row["dataset"], *row["key"]) for row in rows]
    assert len(names) == len(set(names))
    for row in rows:
        assert row["row"]["source_ref"] == row["source_ref"]


def test_rows_are_those_their_endpoints_serve(published: PublishedEditions) -> None:
    copy = published.copy(published.editions[-1])
    facts = {name: row for name, row in copy.items() if name[0] == "fundamentals"}
    for service_id in {name[1] for name in facts}:
        served = published.get(f"/v1/fundamentals/{service_id}", vintages="all").json()["data"]
        assert {row["record_ref"]: row for row in served} == {
            name[2]: row for name, row in facts.items() if name[1] == service_id
        }
    tenders = published.get("/v1/tenders", limit=1000).json()["data"]
    ours = [row for name, row in copy.items() if name[:2] == ("tenders", "ZA")]
    assert ours == tenders
    for name, row in copy.items():
        if name[0] == "entities":
            assert published.get(f"/v1/entities/{name[1]}").json()["data"] == [row]


@pytest.mark.rule("CHG-1")
@pytest.mark.both_engines
def test_applying_changes_updates_a_copy(published: PublishedEditions) -> None:
    for old in range(len(published.editions)):
        for new in range(len(published.editions)):  # backwards too, as after a rollback
            changes = published.all_rows(
                since=published.editions[old], edition=published.editions[new], limit=10_000
            )
            assert applied(published.copy(published.editions[old]), changes) == published.copy(
                published.editions[new]
            )


@settings(
    max_examples=rounds(3, 6, 12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_pages_of_any_size_give_the_same_changes_in_the_same_order(
    published: PublishedEditions, data: st.DataObject
) -> None:
    pairs = st.tuples(st.sampled_from([None, *published.editions]), st.sampled_from(published.editions))
    since, edition = data.draw(pairs)
    query = {"edition": edition} | ({"since": since} if since else {})
    whole = published.all_rows(**query, limit=10_000)
    limit = data.draw(st.sampled_from([1, 2, 3, 7, 30, 1000])) if len(whole) < 30 else 7
    assert published.all_rows(**query, limit=limit) == whole


def test_unchanged_rows_are_not_listed(published: PublishedEditions) -> None:
    changes = published.all_rows(since=published.editions[0], edition=published.editions[1])
    kinds = {(row["dataset"], row["change"]) for row in changes}
    assert kinds == {
        ("crosswalk", "added"),
        ("entities", "added"),
        ("fundamentals", "added"),  # the restatement and the new issuer
        ("fundamentals", "changed"),  # the superseded row
        ("macro-series", "added"),
        ("macro-series", "changed"),
        ("tenders", "added"),
        ("tenders", "changed"),
    }
    (restated,) = [r for r in changes if r["dataset"] == "fundamentals" and r["change"] == "changed"]
    assert restated["row"]["superseded_at"] == "2021-03-01"
    (corrected,) = [r for r in changes if r["dataset"] == "tenders" and r["change"] == "changed"]
    assert corrected["row"]["title"] == "Pipe, corrected"


def test_a_merged_organisation_is_removed_under_its_own_id(published: PublishedEditions) -> None:
    changes = published.all_rows(since=published.editions[1], edition=published.editions[2])
    removed = [row for row in changes if (row["dataset"], row["change"]) == ("entities", "removed")]
    assert len(removed) == 1, changes
    assert removed[0]["row"] is None
    (alias,) = removed[0]["key"]
    assert published.get(f"/v1/entities/{alias}").json()["data"][0]["service_id"] != alias


def test_one_dataset_can_be_asked_for(published: PublishedEditions) -> None:
    query = {"since": published.editions[0], "edition": published.editions[2]}
    parts = [
        row
        for name in ("crosswalk", "entities", "fundamentals", "macro-annual", "macro-series", "tenders")
        for row in published.all_rows(**query, dataset=name)
    ]
    assert parts == published.all_rows(**query)


def test_an_unknown_since_is_a_404(published: PublishedEditions) -> None:
    for query in ({"since": "20200101T000000Z-1-a"}, {"edition": "20200101T000000Z-1-a"}):
        assert published.get("/v1/changes", **query).status_code == 404
    for query in ({"since": "a/b"}, {"since": ""}, {"dataset": "signals"}, {"cursor": "abc"}):
        answer = published.get("/v1/changes", **query)
        assert (answer.status_code, answer.json()["parameter"]) == (400, *query)


@pytest.mark.rule("CHG-1")
def test_the_sample_tier_always_gets_a_402(published: PublishedEditions) -> None:
    cursor = published.page(limit=1)["next_cursor"]
    queries: list[dict[str, Any]] = [
        {},
        {"limit": 1},
        {"dataset": "fundamentals"},
        {"since": published.editions[0]},
        {"edition": published.editions[0]},
        {"cursor": cursor},
    ]
    for key in (published.sample, "sankofa-sandbox"):
        for query in queries:
            answer = published.get("/v1/changes", key, **query)
            assert answer.status_code == 402, query
            assert answer.headers["X-Upgrade-URL"] == answer.json()["upgrade"]["checkout_url"]
        for accept in ("text/csv", "application/vnd.apache.arrow.stream"):
            fields = {"x-api-key": key, "accept": accept}
            assert published.server.http.get("/v1/changes", headers=fields).status_code == 402
            assert published.server.http.head("/v1/changes", headers=fields).status_code == 402
        assert published.get("/v1/changes", key, dataset="signals").status_code == 400, "400 comes before 402"
