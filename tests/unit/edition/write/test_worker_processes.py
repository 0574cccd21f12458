"""Worker processes of a publication, with work in the background."""

import time
from collections import deque
from concurrent.futures import Future
from contextlib import nullcontext
from functools import partial

import psutil
import pytest

from sankofa.edition.write.worker_processes import Job, WorkerProcesses
from sankofa.engines.ledger_store import LedgerRows
from sankofa.model.errors import OperatorError
from tests.patience import until

SQUARES = [number * number for number in range(9)]


def square(number: int) -> int:
    return number * number


def never(number: int) -> int:
    time.sleep(600)
    return number


def no_ledger() -> LedgerRows:
    raise AssertionError("these tasks read no ledger")


def job(make: object) -> Job:
    return partial(nullcontext, make)  # type: ignore[return-value]


def deriving() -> list[psutil.Process]:
    children = psutil.Process().children()
    return [one for one in children if any("spawn_main" in word for word in one.cmdline())]


def test_background_work_uses_the_processes_while_this_one_continues() -> None:
    results: list[int] = []
    with WorkerProcesses(2, 1, no_ledger) as processes:
        done = processes.in_background(
            lambda: results.extend(processes.derive(job(square), square, range(9), lambda _: 1))
        )
        done.result()
        assert len(deriving()) == 2
    assert sorted(results) == SQUARES
    assert deriving() == []


def test_processes_start_before_their_work_if_there_will_be_enough() -> None:
    with WorkerProcesses(2, 100, no_ledger) as processes:
        processes.expect(99)
        assert deriving() == []
        processes.expect(100)
        started = deriving()
        assert len(started) == 2
        assert sorted(processes.derive(job(square), square, range(9), lambda _: 1)) == SQUARES
        assert deriving() == started
    assert deriving() == []


def test_work_in_the_background_ends_at_once_when_the_publication_fails() -> None:
    started: list[Future[None]] = []

    def fail() -> None:
        with WorkerProcesses(2, 1, no_ledger) as processes:
            derive = partial(processes.derive, job(never), never, range(9), lambda _: 1)
            started.append(processes.in_background(lambda: deque(derive(), 0).clear()))
            until(lambda: len(deriving()) == 2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert isinstance(started[0].exception(), OperatorError)
    until(lambda: deriving() == [])
