"""Publishing after a small change reuses unchanged parts and gives the same edition, byte for byte, as
publishing everything.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from sankofa.edition.write import context, derived_parts, reuse
from sankofa.edition.write.datasets import entities
from sankofa.edition.write.publish import publish
from sankofa.ledger.ingest import files_under, ingest
from sankofa.ledger.rereading import withdraw
from sankofa.ledger.store import Ledger
from sankofa.sources.registry import load_sources
from tests.engines.datastores import SAMPLE, Engine
from tests.tampering import parts_of

LEI = "999900SAMPLEZA000189"
FACTORS = "signal-fundamentals-factors"
MOMENTUM = "macro-momentum"
EVERYTHING = (
    ("sample-lei", "lei"),
    ("sample-filings", "filings/za-kgalagadi.csv"),
    ("sample-filings", "filings/ke-riftline.csv"),
    ("sample-series", "series"),
    ("sample-tenders-ke", "tenders-ke/ke-releases-2025-2026.jsonl"),
)


class World:
    """A ledger with some of every kind; files are added to it one by one."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.cache = engine.home / "derived"
        self._now = datetime(2026, 11, 1, 9, 30, tzinfo=UTC)

    def take(self, source_id: str, path: Path) -> None:
        self._now += timedelta(hours=1)
        with closing(self._ledger()) as ledger:
            summary = ingest(
                ledger,
                load_sources(self.engine.home)[source_id],
                files_under([path]),
                rejects_folder=self.engine.home / "rejects",
                clock=lambda: self._now,
            )
        assert not summary.failures

    def take_text(self, source_id: str, name: str, text: str) -> None:
        path = self.engine.home / name
        path.write_text(text)
        self.take(source_id, path)

    def withdraw(self, source_id: str, file_name: str) -> None:
        self._now += timedelta(hours=1)
        with closing(self._ledger()) as ledger:
            withdraw(ledger, source_id, file_name=file_name, reason="wrong", now=self._now)

    def published(self, cache: Path | None = None) -> dict[str, Any]:
        with closing(self._ledger()) as ledger:
            sources = load_sources(self.engine.home)
            return publish(self.engine.store, ledger, keep=9, sources=sources, issuer_cache=cache)

    def folder(self, manifest: dict[str, Any]) -> Path:
        return self.engine.editions / str(manifest["edition"])

    def _ledger(self) -> Ledger:
        return Ledger(self.engine.store, b"k" * 32, lambda: self._now)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(reuse, "_BYTES_IN_A_PARTITION", 1 << 15)
    monkeypatch.setattr(reuse, "_PARTITIONS", 1 << 40)
    monkeypatch.setattr(reuse, "_BYTES_IN_A_PART", 1 << 12)
    engine = Engine("sqlite", "sqlite:", tmp_path)  # test_same_everywhere.py tests reuse on PostgreSQL
    with closing(engine.store):
        world = World(engine)
        for source_id, path in EVERYTHING:
            world.take(source_id, SAMPLE / path)
        yield world


def a_figure(world: World) -> None:
    header = (SAMPLE / "filings/za-kgalagadi.csv").read_text().split("\n")[0]
    row = f"lei:{LEI},revenue,41000000000,ZAR,2020-06-29,2021-06-27,FY,2022-08-30,afs-2022,p. 9,0.99"
    world.take_text("sample-filings", "restated.csv", f"{header}\n{row}\n")


def the_first_figure(world: World) -> None:
    header = (SAMPLE / "filings/za-kgalagadi.csv").read_text().split("\n")[0]
    row = f"lei:{LEI},revenue,41000000,ZAR,1985-07-01,1986-06-30,FY,1986-08-30,afs-1986,p. 9,0.99"
    world.take_text("sample-filings", "oldest.csv", f"{header}\n{row}\n")


def an_observation(world: World) -> None:
    header = (SAMPLE / "series/series.csv").read_text().split("\n")[0]
    row = 'CPI.ZA,cpi,monthly,ZA,2022-01-31,104.01,"index, 2021=100",2026-03-17'
    world.take_text("sample-series", "revised.csv", f"{header}\n{row}\n")


def a_release(world: World) -> None:
    lines = (SAMPLE / "tenders-ke/ke-releases-2025-2026.jsonl").read_text().split("\n")
    release = json.loads(lines[0]) | {"ocid": "ocds-999ske-99999", "id": "ocds-999ske-99999-01"}
    world.take_text("sample-tenders-ke", "one.jsonl", json.dumps(release))


def another_name(world: World) -> None:
    header, *rows = (SAMPLE / "lei/golden-copy.csv").read_text().split("\n")
    row = next(row for row in rows if LEI in row)
    renamed = row.replace("Kgalagadi Sample Retail", "Kgalagadi Renamed").replace("2025-07-20", "2026-07-20")
    world.take_text("sample-lei", "renamed.csv", f"{header}\n{renamed}\n")


def a_withdrawal(world: World) -> None:
    world.withdraw("sample-series", "revised.csv")


CHANGES: tuple[tuple[Callable[[World], None], set[str], set[str]], ...] = (
    (a_figure, {"tender", "macro-series", "word", "identifier"}, {"fundamentals", "screen"}),
    (the_first_figure, {"tender", "macro-series", "word", "identifier"}, {"fundamentals", "known-day"}),
    (an_observation, {"tender", "fundamentals", "word"}, {"macro-series"}),
    (a_release, {"macro-series", "fact_macro", "fundamentals", "word"}, {"tender", "fact"}),
    (another_name, {"macro-series", "fact_macro"}, {"word", "entity"}),
    (a_withdrawal, {"tender", "fundamentals", "word"}, {"macro-series", "fact_macro"}),
)
"""A change, some kinds of which every part stays, and some of which one does not."""


def contents(manifest: dict[str, Any], kind: str) -> set[str]:
    return {part["content"] for part in manifest["parts"] if kind in part["kinds"]}


def content_of(manifest: dict[str, Any]) -> object:
    return {**manifest, "parts": [[p["kinds"], p["first"], p["content"]] for p in manifest["parts"]]}


@pytest.mark.deep
def test_after_every_change_the_edition_equals_a_full_publication(world: World) -> None:
    before = world.published(world.cache)
    for kind in ("entity", "identifier", "word", "screen"):
        assert len(contents(before, kind)) > 2
    for change, stays, changes in CHANGES:
        change(world)
        after = world.published(world.cache)
        assert content_of(after) == content_of(world.published())
        for kind in stays:
            assert contents(after, kind) == contents(before, kind), (change.__name__, kind)
        for kind in changes:
            assert contents(after, kind) != contents(before, kind), (change.__name__, kind)
        for kind in ("entity", "identifier", "word", "tender_word", "screen", FACTORS):
            assert contents(after, kind) & contents(before, kind), "what is in the other parts stays"
        before = after


def test_a_macro_value_does_not_resolve_organisations_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.published(world.cache)
    an_observation(world)
    with monkeypatch.context() as patch:
        patch.delattr(context, "resolve")
        published = world.published(world.cache)
    assert content_of(published) == content_of(world.published())


def test_how_macro_values_are_grouped_changes_no_row(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coverage, for example, is counted group by group."""
    together = world.published()
    monkeypatch.setattr(derived_parts, "_VALUES_IN_A_GROUP", 16)
    apart = world.published()
    for table in ("af-macro-series", "af-macro-series-fact", MOMENTUM):
        one, other = (world.folder(edition) / f"files/{table}.parquet" for edition in (together, apart))
        assert parquet.read_metadata(other).num_row_groups > parquet.read_metadata(one).num_row_groups
        assert parquet.read_table(one).equals(parquet.read_table(other))
    for kind in {kind for part in together["parts"] for kind in part["kinds"]}:
        if kind != f"signal-{MOMENTUM}":  # its blocks end with each group
            assert contents(together, kind) == contents(apart, kind), kind


def test_a_later_figure_keeps_the_first_days_of_organisations(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.published(world.cache)
    a_figure(world)
    with monkeypatch.context() as patch:
        patch.delattr(entities, "_states")
        published = world.published(world.cache)
    assert content_of(published) == content_of(world.published())


def test_common_parts_of_two_editions_are_stored_once(world: World) -> None:
    first = world.published(world.cache)
    a_figure(world)
    second = world.published(world.cache)
    inodes = [{path.stat().st_ino for path in parts_of(world.folder(m))} for m in (first, second)]
    assert len(inodes[0] & inodes[1]) > len(inodes[1]) // 2
    for table in ("af-macro-series", "af-fund-entities", "shared-entity"):
        old, new = (world.folder(m) / "files" / f"{table}.parquet" for m in (first, second))
        assert old.samefile(new)
    world.engine.store.set_current_and_prune([second["edition"]], second["edition"])
    world.engine.store.open(second["edition"], check_all=True).close()
