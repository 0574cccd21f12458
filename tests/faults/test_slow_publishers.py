"""Slow or silent publishers time out, delay no other source, and a stop signal still works."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import publisher as faults
from tests.depth import deep_after
from tests.live import COMMAND
from tests.patience import PATIENCE, until
from tests.publisher import Publisher
from tests.spec.test_collect import Home, table

SLOW = "/NY.GDP.MKTP.CD.csv"
QUICK = "/FP.CPI.TOTL.ZG.csv"
FOR_EVER = table(*range(2000))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Publisher() as server:
        server.put(SLOW, FOR_EVER)
        server.put(QUICK, table(5))
        yield Home(tmp_path, server)


@contextmanager
def collecting(home: Home, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A `sankofa collect` that is killed after the test."""
    environment = {**os.environ, "SANKOFA_HOME": str(home.path)}
    with subprocess.Popen(
        [COMMAND, "collect", *arguments], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def stop(process: "subprocess.Popen[str]", number: signal.Signals = signal.SIGTERM) -> str:
    """Stop it and return its output. It must end by itself: the promise is five seconds on an idle
    machine.
    """
    process.send_signal(number)
    printed, _ = process.communicate(timeout=15)
    return printed


@pytest.mark.ci
@pytest.mark.rule("COL-4")
@pytest.mark.parametrize(
    "fault",
    deep_after(1, [faults.drips(), faults.drips(head=True), faults.drips(chunked=True)]),
    ids=["body", "header fields", "chunks"],
)
@pytest.mark.limit("time for a document (deadline)")
def test_a_document_sent_byte_by_byte_fails_at_its_deadline(home: Home, fault: faults.Fault) -> None:
    home.source("slow", SLOW, deadline="2s")
    home.publisher.fail(SLOW, fault)
    began = time.monotonic()
    done = home.collect("slow")
    assert done.returncode == 1
    assert f"Error: slow: {home.publisher.url}{SLOW}: incomplete after 2s (deadline)" in done.stderr
    assert time.monotonic() - began < PATIENCE
    assert home.collect("slow").returncode == 0, "once it answers as it should"
    assert [capture["source"] for capture in home.captures()] == ["slow"]


@pytest.mark.ci
@pytest.mark.rule("COL-4", "CLI-11")
@pytest.mark.parametrize("number", deep_after(1, [signal.SIGTERM, signal.SIGINT]))
def test_slow_publishers_delay_no_other_and_a_stop_still_works(home: Home, number: signal.Signals) -> None:
    for at in range(12):
        home.publisher.put(f"/{at}{SLOW}", FOR_EVER)
        home.publisher.fail(f"/{at}{SLOW}", faults.drips(head=at % 2 == 0))
        home.source(f"a-slow-{at}", f"/{at}{SLOW}")
    home.source("quick", QUICK)
    with collecting(home) as process:
        until(lambda: [capture["source"] for capture in home.captures()] == ["quick"])
        until(lambda: all(home.publisher.requests(f"/{at}{SLOW}") for at in range(12)))
        assert process.poll() is None
        printed = stop(process, number)
    assert process.returncode == 1
    assert "quick: fetched" in printed
    assert printed.count(": stopped: ") == 12
    assert home.collect("quick", "a-slow-0").returncode == 0, "no lock is left"
    assert [capture["source"] for capture in home.captures()] == ["quick", "a-slow-0"]


@pytest.mark.deep
@pytest.mark.rule("COL-4")
def test_a_second_collect_fetches_other_sources_than_the_first(home: Home) -> None:
    home.publisher.fail(SLOW, faults.drips())
    home.source("a-slow", SLOW)
    home.source("quick", QUICK, every="1s")
    with collecting(home, "a-slow") as process:
        until(lambda: home.publisher.received)
        done = home.collect()
        assert done.returncode == 1
        assert "Error: a-slow: another `sankofa collect` is fetching it" in done.stderr
        assert "quick: fetched" in done.stdout
        stop(process)
