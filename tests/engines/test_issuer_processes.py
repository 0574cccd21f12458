"""Editions of which the issuers are derived by several processes: the same, whatever happens meanwhile."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import datasets
from sankofa.edition.write.derived_parts import Issuers, declared_parts
from sankofa.edition.write.publish import publish
from sankofa.edition.write.worker_processes import WorkerProcesses
from sankofa.ledger.entities import Entity
from sankofa.ledger.rereading import withdraw
from tests.engines.datastores import Engine
from tests.engines.test_made_again import FIRST, SUBJECTS, Book, a_fact


@pytest.fixture
def book(engine: Engine) -> Book:
    datasets()  # each declares the part it has in an issuer
    book = Book(engine)
    chance = random.Random(5)
    for _ in range(2):
        book.take(*[a_fact(chance, subject) for subject in SUBJECTS for _ in range(8)])
    return book


@pytest.fixture
def two(book: Book) -> Iterator[WorkerProcesses]:
    with closing(WorkerProcesses(2, 1, book.engine.store.ledgers.opener())) as processes:
        yield processes


def parts(issuers: Issuers, entities: Sequence[Entity]) -> list[bytes]:
    return [issuers.part(kind, one.service_id) for one in entities for kind in declared_parts()]


@pytest.mark.deep
@pytest.mark.parametrize("withdrawn", [False, True])
def test_two_processes_read_what_the_build_reads_though_more_is_ingested(
    book: Book, two: WorkerProcesses, withdrawn: bool
) -> None:
    if withdrawn:  # its rows are passed over, those that came again have another number
        with closing(book.open()) as ledger:
            withdraw(
                ledger, "filings", capture=2, file_name="", everywhere=False, reason="wrong", now=book.now
            )
    with closing(book.open()) as ledger, ledger.verified_snapshot():
        context = BuildContext(ledger)
        reader, captures, entities = context.ledger, context.captures, context.entities
        alone = Issuers(reader, captures, entities)
        book.take(FIRST._replace(document="later", value="70"))
        together = Issuers(reader, captures, entities, processes=two)
        assert together.count == alone.count == len(SUBJECTS)
        assert parts(together, entities) == parts(alone, entities)
    assert any(parts(alone, entities))


@pytest.mark.deep
def test_the_edition_is_the_one_that_a_single_process_gives(book: Book, two: WorkerProcesses) -> None:
    with closing(book.open()) as ledger:
        manifests = [publish(book.engine.store, ledger, keep=2, processes=how) for how in (None, two)]
    assert manifests[0] == manifests[1]
    assert book.engine.leftovers() == []
