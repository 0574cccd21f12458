"""After any order of ingests and withdrawals, the edition equals that of a HOME that never had the file."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.cli import ledger as ledger_commands
from sankofa.cli import publishing
from sankofa.engines.ledger_store import Row
from sankofa.ledger import generations
from sankofa.ledger.generations import Generations
from sankofa.model.errors import CheckFailed, OperatorError
from sankofa.replication.stores import open_store
from sankofa.settings import Settings, load
from sankofa.sources.base import adapters
from tests.depth import deep_after
from tests.spec import inline_report
from tests.spec.register import COLUMNS, record
from tests.torture import rounds
from tests.world.overlapping_files import ITEMS, LEIS, MAKERS, Variants, content, names

SOURCE = "source"
START = datetime(2026, 6, 1, 12, tzinfo=UTC)
FACTS = ("filings-csv", "edgar-companyfacts", "sec-fsds", "ixbrl")
SKU = {"ocds": "AF-TENDER"} | dict.fromkeys(FACTS, "AF-FUND")
SKU |= dict.fromkeys(("series-csv", "ecb-fx", "alfred", "worldbank"), "AF-MACRO")
Step = tuple[Any, ...]


class Desk:
    """A HOME with its own organisations, and files of one more source."""

    def __init__(self, folder: Path, adapter: str) -> None:
        self.inbox = folder
        self._adapter = adapter
        home = folder / "home"
        home.mkdir(parents=True)
        self.settings: Settings = load({"SANKOFA_HOME": str(home), "SANKOFA_GATE_SECRET": "g" * 32})
        entry = 'license_class = "cc-by"\ncommercial_redistribution = true\n'
        sku = f'sku = "{SKU[adapter]}"\n' if adapter in SKU else ""
        country = 'country = "ZA"\n' if adapter == "ocds" else ""
        (home / "sources.toml").write_text(
            f'[sources.register]\nadapter = "gleif-lei"\n{entry}'
            f'[sources.tickers]\nadapter = "identifiers-csv"\n{entry}'
            f'[sources.{SOURCE}]\nadapter = "{adapter}"\n{sku}{country}{entry}'
        )
        if adapter == "ixbrl":
            (home / "taxonomies").mkdir()
            (home / "taxonomies" / "ifrs.zip").write_bytes(inline_report.taxonomy())
        self.now = START
        numbers = LEIS if adapter != "gleif-lei" else LEIS[:1]
        rows = [record(number, f"{number} Limited", "ZA") for number in numbers]
        self.ingest("register", "register.csv", "\n".join([COLUMNS, *rows, ""]).encode())
        # The tickers are subjects too: an issued id leads to its organisation for ever.
        tickers = "".join(
            f"lei:{number},ticker,JSE:IT{at},\nticker:JSE:IT{at},aggregator,za/{at},OPENCORPORATES\n"
            for at, number in enumerate(numbers)
        )
        self.ingest("tickers", "tickers.csv", f"entity,id_type,id_value,registry\n{tickers}".encode())

    def ingest(self, source: str, name: str, content: bytes) -> list[str]:
        path = self.inbox / name
        path.write_bytes(content)
        with self._clock():
            summary = ledger_commands.ingest_files(self.settings, source, [path], clock_is_right=True)
        assert not summary.failures, summary.failures
        return summary.notes

    def withdraw(self, **chosen: Any) -> int:
        with self._clock():
            arguments: dict[str, Any] = {"capture": 0, "file_name": "", "everywhere": False} | chosen
            return len(
                ledger_commands.withdraw_files(self.settings, SOURCE, reason="wrong", **arguments).files
            )

    def publish(self) -> dict[str, Any]:
        with self._clock():
            return publishing.publish_edition(self.settings)

    def replay_differences(self) -> list[str]:
        with self._clock():
            return ledger_commands.replay_vault(self.settings, None).differences

    def files(self) -> dict[int, tuple[str, str, str]]:
        """The valid files by number: instant, name and digest."""
        with ledger_commands.open_ledger(self.settings) as ledger:
            valid = ledger.without(())
            every = sorted((valid.captures() | valid.unchanged_files()).items())
        return {n: (f.observed_at, f.file_name, f.content_sha256) for n, f in every if f.source_id == SOURCE}

    @contextmanager
    def _clock(self) -> Iterator[None]:
        home = {"SANKOFA_HOME": str(self.settings.home)}  # where inline reports look for taxonomies
        with (
            mock.patch.object(ledger_commands, "now", return_value=self.now),
            mock.patch.dict(os.environ, home),
        ):
            yield


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    variants = st.dictionaries(st.sampled_from(ITEMS), st.integers(0, 1), min_size=1)
    name = st.integers(0, 2)
    ingest = st.tuples(st.just("ingest"), name, variants)
    steps = st.one_of(
        ingest,
        ingest,
        st.tuples(st.just("again"), st.integers(0, 5)),
        st.tuples(st.just("copy"), st.integers(0, 5), name),
        st.tuples(st.just("source")),
        st.tuples(st.just("file"), name),
        st.tuples(st.just("capture"), st.integers(0, 5)),
        st.tuples(st.just("publish")),
    )
    return [*draw(st.lists(ingest, min_size=2, max_size=3)), *draw(st.lists(steps, min_size=2, max_size=7))]


def play(desk: Desk, adapter: str, history: list[Step]) -> list[tuple[datetime, str, bytes]]:
    """Run every step; returns the files that are valid in the end."""
    ingested: list[tuple[str, bytes]] = []
    valid: list[tuple[datetime, str, bytes]] = []
    withdrawn: set[bytes] = set()
    for kind, *arguments in history:
        desk.now += timedelta(days=1)
        if kind in ("ingest", "again", "copy"):
            name, what = _file(adapter, kind, arguments, ingested)
            ingested.append((name, what))
            is_unchanged = any(file[1:] == (name, what) for file in valid)
            notes = desk.ingest(SOURCE, name, what)
            assert bool(notes) == (what in withdrawn and not is_unchanged), notes
            if not is_unchanged:
                valid.append((desk.now, name, what))
        elif kind == "publish":
            desk.publish()
        else:
            remaining = _withdraw(desk, adapter, kind, arguments, valid)
            withdrawn |= {file[2] for file in valid if file not in remaining}
            valid = remaining
        files = [(at, name, digest) for at, name, digest in desk.files().values()]
        assert files == [
            (f"{at:%Y-%m-%dT%H:%M:%SZ}", name, hashlib.sha256(what).hexdigest()) for at, name, what in valid
        ]
    return valid


def _file(
    adapter: str, kind: str, arguments: list[Any], ingested: list[tuple[str, bytes]]
) -> tuple[str, bytes]:
    if kind == "ingest":
        return names(adapter)[arguments[0]], content(adapter, arguments[1])
    name, what = ingested[arguments[0] % len(ingested)]
    return (names(adapter)[arguments[1]] if kind == "copy" else name), what


def _withdraw(
    desk: Desk, adapter: str, kind: str, arguments: list[Any], valid: list[tuple[datetime, str, bytes]]
) -> list[tuple[datetime, str, bytes]]:
    """Withdraw a source, a file or a capture; returns the files that are still valid."""
    chosen: dict[str, Any] = {}
    remaining: list[tuple[datetime, str, bytes]] = []
    if kind == "file":
        chosen = {"file_name": names(adapter)[arguments[0]]}
        remaining = [file for file in valid if file[1] != chosen["file_name"]]
    elif kind == "capture" and valid:
        at = arguments[0] % len(valid)
        chosen = {"capture": list(desk.files())[at], "everywhere": True}
        remaining = [file for number, file in enumerate(valid) if number != at]
    if len(remaining) == len(valid):
        with pytest.raises(OperatorError, match=r"nothing of source|no file"):
            desk.withdraw(**chosen)
        return valid
    assert desk.withdraw(**chosen) == len(valid) - len(remaining)
    return remaining


def served_content(manifest: dict[str, Any]) -> dict[str, Any]:
    """Everything that an edition serves: equal if every byte of its parts and files is."""
    names = ("kinds", "first", "content")
    return {
        "rows": manifest["rows"],
        "parts": [[part[name] for name in names] for part in manifest["parts"]],
        "files": {file["name"]: (file["row_count"], file["sha256"]) for file in manifest["files"]},
        "sources": manifest["sources"],
    }


def check(adapter: str, history: list[Step]) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        desk, fresh = Desk(Path(one), adapter), Desk(Path(other), adapter)
        for at, name, what in play(desk, adapter, history):
            fresh.now = at
            fresh.ingest(SOURCE, name, what)
        assert served_content(desk.publish()) == served_content(fresh.publish())
        assert not desk.replay_differences()


@pytest.mark.rule("ING-9", "PUB-1")
@pytest.mark.parametrize("adapter", deep_after(1, [name for name in MAKERS if name != "ixbrl"]))
def test_publish_refuses_an_edition_that_holds_a_withdrawn_row(adapter: str, tmp_path: Path) -> None:
    """A ledger reader that hides nothing simulates any bug that lets a withdrawn row through."""
    desk = Desk(tmp_path, adapter)
    desk.now += timedelta(days=1)
    desk.ingest(SOURCE, names(adapter)[0], content(adapter, {0: 0, 1: 0}))
    before = desk.publish()["edition"]
    desk.now += timedelta(days=1)
    desk.withdraw()
    with (
        mock.patch.object(generations, "Generations", return_value=Generations(_NoRows())),
        pytest.raises(
            CheckFailed, match=rf"a row of {SOURCE} capture 3 \({names(adapter)[0]}\), which was withdr"
        ),
    ):
        desk.publish()
    assert open_store(desk.settings).list_editions().current == before
    after = desk.publish()
    assert SOURCE not in after["sources"]
    assert open_store(desk.settings).list_editions().current == after["edition"] != before


class _NoRows:
    """A ledger without withdrawals."""

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Row]:
        return iter(())

    columns = snapshot = close = mock.Mock()


def test_every_adapter_has_overlapping_files() -> None:
    assert MAKERS.keys() == adapters().keys()


@pytest.mark.rule("ING-9", "ING-10")
@pytest.mark.parametrize("adapter", deep_after(1, [name for name in MAKERS if name != "ixbrl"]))
def test_after_any_withdrawal_the_edition_equals_that_of_a_home_without_it(adapter: str) -> None:
    @hypothesis.settings(max_examples=rounds(4, 12, 60, here=2))
    @given(histories())
    def hold(history: list[Step]) -> None:
        check(adapter, history)

    hold()


BOTH: Variants = {0: 0, 1: 0}
HISTORIES: dict[str, list[Step]] = {
    "the source, of two files that say the same": [
        ("ingest", 0, BOTH), ("ingest", 1, BOTH), ("publish",), ("source",), ("publish",),
    ],
    "the first file, of two that overlap": [
        ("ingest", 0, BOTH), ("ingest", 1, {1: 0}), ("publish",), ("file", 0),
    ],
    "the second file, which was unchanged, then the first": [
        ("ingest", 0, BOTH), ("ingest", 1, {1: 0}), ("file", 1), ("publish",), ("file", 0),
    ],
    "a copy under another name stays": [("ingest", 0, BOTH), ("copy", 0, 1), ("publish",), ("file", 0)],
    "and comes again": [
        ("ingest", 0, BOTH), ("ingest", 1, {1: 1, 2: 0}), ("source",), ("publish",), ("again", 0),
    ],
}  # fmt: skip


@pytest.mark.deep
@pytest.mark.rule("ING-9")
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_inline_reports_are_withdrawn_like_any_file(history: list[Step]) -> None:
    pytest.importorskip("arelle", reason="inline XBRL is an extra, which is not installed here")
    check("ixbrl", history)
