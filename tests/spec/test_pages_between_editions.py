"""A cursor continues after the same row in any edition, in any process.

Two worlds are drawn from the sample: rows of its files are left out or altered at random. Both are served
with the same cursor secret, so each gets cursors of an edition that it does not have.
"""

import csv
import io
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sankofa.cli.ledger import ingest_files
from sankofa.cli.publishing import SAMPLE, publish_edition
from sankofa.settings import load
from tests.depth import deep_after
from tests.live import LiveServer, create_key
from tests.spec.sample_reference import SAMPLE as SAMPLE_FILES
from tests.spec.test_paging import LISTS
from tests.torture import rounds

pytestmark = [pytest.mark.ci, pytest.mark.rule("PAR-5", "PAR-6", "PAR-12")]

_PROVENANCE = {"source_ref", "observed_at", "provenance_id", "rank", "score"}
_COUNTS = {"measured_at", "fact_count", "first_available", "last_available"}
_ALL_COUNTS = ("/v1/tender-parties", "/v1/quality-metrics")
"""Lists whose rows are mostly others in another world, as they count its rows."""
_CHANGED = 0.04


class Worlds(NamedTuple):
    one: LiveServer
    again: LiveServer
    """The same home as `one`, served by another process: it remembers no page of it."""
    other: LiveServer
    keys: dict[str, str]

    def page(self, server: LiveServer, path: str, query: dict[str, str]) -> dict[str, Any]:
        return server.body(path, self.keys[server.url], **query)

    def rest(
        self, server: LiveServer, path: str, query: dict[str, str], cursor: str | None
    ) -> list[dict[str, Any]]:
        """All rows after a cursor."""
        rows: list[dict[str, Any]] = []
        while cursor is not None:
            body = self.page(server, path, {**query, "cursor": cursor, "limit": "400"})
            rows += rows_of(body)
            cursor = body["next_cursor"]
        return rows


def rows_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = body["data"] if "data" in body else body["observations"]
    return rows


def content(value: Any) -> Any:
    """A value without the parts that depend on its capture, on rows before it, or on the number of rows."""
    if isinstance(value, dict):
        ignored = _PROVENANCE | _COUNTS
        return {name: content(one) for name, one in value.items() if name not in ignored}
    return [content(one) for one in value] if isinstance(value, list) else value


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(content(row), sort_keys=True) for row in rows)


def _thinned(path: Path, drawn: random.Random) -> str:
    """The text of a file of the sample, with some rows left out and others altered."""
    text = path.read_text()
    if path.suffix == ".jsonl":
        return "\n".join(line for line in text.splitlines() if drawn.random() > 0.2)
    if path.suffix == ".json":
        document = json.loads(text)
        if isinstance(document, dict) and "releases" in document:
            document["releases"] = [one for one in document["releases"] if drawn.random() > 0.2]
        return json.dumps(document)
    header, *rows = csv.reader(io.StringIO(text))
    if "value" not in header:
        return text
    thinned = []
    for row in rows:
        if drawn.random() > 0.1:
            at = header.index("value")
            if drawn.random() < _CHANGED and row[at].isdigit():
                row[at] += "7"
            thinned.append(row)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *thinned])
    return out.getvalue()


def _rates(drawn: random.Random) -> str:
    lines = ["Date,USD,ZAR,NGN"]
    for day in range(1, 29):
        if drawn.random() > 0.2:
            values = (f"{drawn.choice((1.1, 1.2, 1.3))}", f"{19 + day / 100}", f"{1500 + day}")
            lines.append(f"2026-03-{day:02}," + ",".join(values))
    return "\n".join(lines) + "\n"


def _make(folder: Path, seed: int) -> Path:
    """A home with one edition of its own world."""
    drawn = random.Random(seed)
    home = folder / "home"
    home.mkdir(parents=True)
    settings = load({"SANKOFA_HOME": str(home)})
    for source, name in SAMPLE.files:
        for path in sorted((SAMPLE_FILES / name).rglob("*")):
            if path.is_file():
                copy = folder / "files" / path.relative_to(SAMPLE_FILES)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(_thinned(path, drawn))
        ingest_files(settings, source, [folder / "files" / name])
    rates = folder / "eurofxref-hist.csv"
    rates.write_text(_rates(drawn))
    ingest_files(settings, "ecb-fx", [rates])
    publish_edition(settings)
    return home


@pytest.fixture(scope="module", params=deep_after(1, [11, 12]))
def worlds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    shared: dict[str, Any] = {"cursor_secret": "one for both", "per_minute_professional": "1000000"}
    one = _make(tmp_path_factory.mktemp("one"), request.param)
    other = _make(tmp_path_factory.mktemp("other"), request.param + 100)
    with (
        LiveServer(one, **shared) as server,
        LiveServer(one, **shared) as again,
        LiveServer(other, **shared) as elsewhere,
    ):
        own, others = create_key(one, "professional"), create_key(other, "professional")
        yield Worlds(server, again, elsewhere, {server.url: own, again.url: own, elsewhere.url: others})


@pytest.mark.parametrize(("path", "query"), LISTS, ids=str)
def test_a_cursor_continues_after_the_same_row_in_any_edition(
    worlds: Worlds, path: str, query: dict[str, str]
):
    whole = rows_of(worlds.page(worlds.one, path, {**query, "limit": "10000"}))
    there = rows_of(worlds.page(worlds.other, path, {**query, "limit": "10000"}))
    in_both = counted(whole) & counted(there)
    assert path.startswith(_ALL_COUNTS) or sum(in_both.values()) > min(len(whole) // 4, 2)
    drawn = random.Random(f"{path}{query}")
    served: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    most = max(2, min(len(whole) // 3, 60))
    for _ in range(rounds(3, 12)):
        limit = str(drawn.randint(1, most))
        body = worlds.page(worlds.one, path, {**query, **cursor, "limit": limit})
        served += rows_of(body)
        assert counted(served) == counted(whole[: len(served)])
        if body["next_cursor"] is None:
            break
        cursor = {"cursor": body["next_cursor"]}
        following = worlds.page(worlds.again, path, {**query, **cursor, "limit": "7"})
        assert rows_of(following) == whole[len(served) : len(served) + len(rows_of(following))] != []
        if path != "/v1/changes":
            both = counted(served) + counted(worlds.rest(worlds.other, path, query, cursor["cursor"]))
            wrong = {row: (both[row], times) for row, times in in_both.items() if both[row] != times}
            assert not wrong, (len(served), wrong)
    else:
        return
    assert served == whole
