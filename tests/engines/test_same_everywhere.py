"""A ledger gives the same editions, byte for byte, and the same answers on files and on PostgreSQL.

tests/spec specifies the answers, on files.
"""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sankofa.edition.write.publish import publish
from tests.engines.datastores import Engine, ingest_sample
from tests.live import LiveServer
from tests.torture import ALL_ROUNDS

FIRST = ("lei", "identifiers", "isin", "filings" if ALL_ROUNDS else "filings/za-kgalagadi.csv", "tenders-za")
SECOND = ("series", "tenders-ke", *(("companyfacts", "worldbank", "openfigi") if ALL_ROUNDS else ()))
SETTINGS: dict[str, Any] = {
    "base_url": "http://service.example",
    "cursor_secret": "a secret",
    "gate_secret": "another",
}
ISSUER = "DC46AF1B1AAA424B58D1368176"
PATHS = (
    *(f"/v1/fundamentals/{ISSUER}?limit=5", f"/v1/fundamentals/{ISSUER}?as_of=2021-12-31&edition={{first}}"),
    *(f"/v1/metrics/{ISSUER}", f"/v1/statements/{ISSUER}?format=csv", "/v1/screen?metric=net_margin"),
    *("/v1/macro?series=CPI.ZA&limit=5", "/v1/tenders?country=ZA&limit=5", "/v1/search?q=sample"),
    *("/v1/changes?since={first}&limit=5", "/v1/export", "/v1/quality-metrics/AF-FUND", "/v1/nothing"),
)


def publish_twice(engine: Engine) -> list[str]:
    """On PostgreSQL the second edition reuses parts of the first; on files it is built from scratch."""
    cache = engine.home / "derived" if engine.name == "postgres" else None
    editions = []
    with closing(engine.store):
        for folders in (FIRST, SECOND):
            sources = [(f"sample-{name.partition('/')[0]}", name) for name in folders]
            with closing(ingest_sample(engine, sources)) as ledger:
                editions.append(str(publish(engine.store, ledger, keep=3, issuer_cache=cache)["edition"]))
    return editions


def content(engine: Engine, edition: str) -> dict[Path, bytes]:
    folder = engine.editions / edition
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.rule("PUB-4", "SET-3")
def test_editions_and_answers_are_the_same_on_both_engines(tmp_path: Path, postgres_url: str) -> None:
    published, answers = [], []
    for name, url in (("sqlite", "sqlite:"), ("postgres", postgres_url)):
        home = tmp_path / name / "a home #1? 100%"
        home.mkdir(parents=True)
        engine = Engine(name, url, home)
        editions = publish_twice(engine)
        published.append({edition: content(engine, edition) for edition in editions})
        with LiveServer(home, datastore=url, **SETTINGS) as server:
            key = server.key("professional")
            own = [server.get(path.format(first=editions[0]), key) for path in PATHS]
        assert [answer.status_code for answer in own] == [200] * (len(PATHS) - 1) + [404]
        answers.append(
            [answer.content.replace(answer.headers["x-request-id"].encode(), b"") for answer in own]
        )
    assert published[0].keys() == published[1].keys()
    assert published[0] == published[1]
    assert all(len(files) > 20 for files in published[0].values())
    assert answers[0] == answers[1]
