"""Deriving again gives what deriving afresh would give, byte for byte, and derives only what changed."""

import random
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sankofa.edition.read.edition_manager import open_edition
from sankofa.edition.write import reuse
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import datasets
from sankofa.edition.write.derived_parts import Issuers
from sankofa.edition.write.publish import publish
from sankofa.engines.record_file import PackedRecord, RecordFile
from sankofa.ledger.store import Ledger
from sankofa.model.days import FOREVER
from sankofa.model.records import EntityRecord, Fact, IdentifierLink, Profile
from tests.depth import deep_after
from tests.engines.datastores import Engine, run

SUBJECTS = tuple(f"ticker:JSE:T{n}" for n in range(8))
ITEMS = ("revenue", "profit", "assets", "cash", "current_liabilities")
FIRST = Fact(SUBJECTS[0], "revenue", "ZAR", "2019-01-01", "2019-12-31", "2020-03-01", "d", "7", "p. 1")


def a_fact(chance: random.Random, subject: str) -> Fact:
    year = chance.randrange(2015, 2021)
    item = chance.choice(ITEMS)
    start = f"{year}-01-01" if item in ("revenue", "profit") else ""
    known = chance.choice(("", f"{year + 1}-0{chance.randrange(1, 9)}-01"))
    value = str(chance.randrange(1, 50))
    return Fact(subject, item, "ZAR", start, f"{year}-12-31", known, chance.choice("de"), value, "p. 1")


class Book:
    """A ledger that is written to day after day."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.now = datetime(2024, 1, 1, tzinfo=UTC)
        self.folder = engine.home / "derived"

    def open(self) -> Ledger:
        return Ledger(self.engine.store, b"k" * 32, lambda: self.now)

    def take(self, *records: Fact | EntityRecord | IdentifierLink) -> None:
        self.now += timedelta(days=1)
        file = ("filings", "synthetic", "file", str(self.now))
        with closing(self.open()) as ledger, ledger.capture(*file) as capture:
            for record in records:
                match record:
                    case Fact():
                        capture.fact(record)
                    case EntityRecord():
                        capture.entity(record)
                    case _:
                        capture.link(record)

    def published(self, kept: Path | None) -> str:
        with closing(self.open()) as ledger:
            return str(publish(self.engine.store, ledger, keep=2, issuer_cache=kept)["content_sha256"])

    def made(self, path: Path | None = None) -> tuple[int, int]:
        """How many issuers there are, and how many of them were taken as they were made before."""
        with closing(self.open()) as ledger:
            issuers = issuers_of(ledger, path or self.folder / "issuers")
        return issuers.count, issuers.carried


def issuers_of(ledger: Ledger, path: Path | None) -> Issuers:
    datasets()  # each declares the part it has in an issuer
    world = BuildContext(ledger)
    return Issuers(ledger, world.captures, world.entities, path)


@pytest.fixture
def book(engine: Engine) -> Book:
    return Book(engine)


@pytest.mark.deep
def test_every_edition_is_the_one_that_deriving_afresh_gives(book: Book) -> None:
    chance = random.Random(8)
    told: list[Fact] = []
    for _ in range(6):
        subjects = chance.sample(SUBJECTS, 3)
        new = [a_fact(chance, chance.choice(subjects)) for _ in range(40)]
        records: list[Fact | EntityRecord | IdentifierLink] = [*new, *chance.sample(told, min(20, len(told)))]
        told += new
        if chance.random() < 0.5:  # another name, or two of them turn out to be one
            one, other = chance.sample(SUBJECTS, 2)
            isin = "isin:ZAE000015228"
            records.append(
                EntityRecord(one, "", Profile(f"Named {len(told)}", country=chance.choice(("ZA", "NG"))))
            )
            records += [IdentifierLink(isin, subject, "row") for subject in (one, other)]
        book.take(*records)
        assert book.published(book.folder) == book.published(None)
    assert book.made()[1] > 0


@pytest.mark.deep
def test_merged_organisations_are_found_by_their_older_ids_whatever_part_they_are_in(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reuse, "_BYTES_IN_A_PARTITION", 1)  # every one begins a part
    monkeypatch.setattr(reuse, "_PARTITIONS", 1 << 40)
    book.take(*[FIRST._replace(subject=subject) for subject in SUBJECTS])
    book.take(*[IdentifierLink("isin:ZAE000015228", subject, "row") for subject in SUBJECTS[:4]])
    with closing(book.open()) as ledger:
        manifest = publish(book.engine.store, ledger, keep=2)
        merged = next(one for one in BuildContext(ledger).entities if one.aliases)
    assert sum("entity" in part["kinds"] for part in manifest["parts"]) == len(SUBJECTS) - 3

    async def read() -> None:
        edition = open_edition(book.engine.store, manifest["edition"])
        for kind in ("entity", "fundamentals", "metrics"):
            own = await edition.select(kind, merged.service_id, day=FOREVER - 1)
            for alias in merged.aliases:
                same = await edition.select(kind, alias, day=FOREVER - 1)
                assert (same and same.rows) == (own and own.rows)
        edition.close()

    assert len(merged.aliases) == 3
    run(read)


def rows(book: Book, path: Path | None) -> list[tuple[str, str, bytes]]:
    with closing(book.open()) as ledger:
        issuers = issuers_of(ledger, path)
        return [
            (entity.service_id, kind, issuers.part(kind, entity.service_id))
            for entity in BuildContext(ledger).entities
            for kind in ("fundamentals", "metrics", "signal-fundamentals-revisions")
        ]


@pytest.mark.parametrize("lost", deep_after(1, [1, 0, 5000]))
def test_a_build_that_was_killed_is_gone_on_with_from_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """Without the bytes that had not reached the disk."""
    book = Book(Engine("sqlite", "sqlite:", tmp_path))
    chance = random.Random(3)
    book.take(*[a_fact(chance, subject) for subject in SUBJECTS for _ in range(12)])
    fresh = rows(book, None)
    path = book.folder / "issuers"
    put = RecordFile.put
    seen: list[str] = []

    def killed(self: RecordFile, name: str, key: bytes, record: PackedRecord) -> None:
        if self._path == path:
            if len(seen) == 5:
                raise KeyboardInterrupt
            seen.append(name)
        put(self, name, key, record)

    with monkeypatch.context() as patch, closing(book.open()) as ledger:
        patch.setattr(RecordFile, "put", killed)
        patch.setattr(RecordFile, "close", lambda self: self._file.close())  # nothing is removed
        with pytest.raises(KeyboardInterrupt):
            issuers_of(ledger, path)
    (left,) = book.folder.glob(".issuers-*")
    with left.open("r+b") as file:
        file.truncate(left.stat().st_size - lost)
    with closing(book.open()) as ledger:
        again = issuers_of(ledger, path)
    assert (again.count, again.carried) == (8, 5 if not lost else 4 if lost == 1 else again.carried)
    assert rows(book, path) == fresh
    assert [one.name for one in book.folder.iterdir()] == ["issuers"]
