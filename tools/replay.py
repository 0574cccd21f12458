"""Records what the service answers and compares two recordings, to prove that a change changed no answer.

    python -m tools.replay record before.sqlite      # with the code as it was
    python -m tools.replay record after.sqlite       # with today's code
    python -m tools.replay compare before.sqlite after.sqlite

A recording takes the sample world and, where there are any, real files through the command line, on files and
on PostgreSQL, and asks a real server thousands of generated questions: every operation of the OpenAPI
description in every format and tier, every MCP tool, every dialect, Parquet files whole and in parts, errors.
Only the command line and HTTP are used, so that it works whatever the code inside is called. The clock stands
still and the secrets are fixed. Edition ids, entity tags, cursors and request ids may differ, nothing else.
"""

import hashlib
import json
import os
import pkgutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from importlib import import_module
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from typing import Any

import click
import httpx

from tools.replay_questions import EDITION, TIERS, Answer, Asker, normal

ROOT = Path(__file__).resolve().parent.parent
START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
SETTINGS = {
    "BASE_URL": "http://replay.invalid",
    "CURSOR_SECRET": "a fixed secret of the recordings",
    "GATE_SECRET": "another fixed secret of the recordings",
    "LOG_LEVEL": "warning",
}
OCDS = (
    "armenia=AM australia=AU awkward-cove=GB fictional-1.0-1.1=GB mexico-cdmx=MX moldova=MD nigeria=NG "
    "ocdskit-realdata=BR paraguay=PY south-africa=ZA taiwan=TW uganda=UG"
)
REAL = (
    ("gleif-lei", "identifiers/gleif-api/lei_records"),
    ("openfigi", "identifiers/openfigi"),
    ("sec-companyfacts", "fundamentals/companyfacts"),
    ("sec-companyfacts", "fundamentals/companyfacts-2021"),
    ("sec-financial-statements", "fundamentals/sec-fsds"),
    ("worldbank", "macro/wdi/2018-08-01"),
    ("worldbank", "macro/wdi/2026-07-01"),
    ("ecb-fx", "fx/ecb"),
)
CORRECTION = (
    "entity,line_item,value,currency,period_start,period_end,period_type,available_at,document,location,"
    "confidence\nlei:999900SAMPLEZA000189,revenue,1001,ZAR,2019-07-01,2020-06-30,FY,2024-01-05,corr,p. 1,1\n"
)
"""Makes the second edition of the sample world differ from the first."""


# A fixed clock. Run as `replay.py at INSTANT COMMAND...`: the command line, at that instant.


class _Still(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


def run_at(instant: str, arguments: list[str]) -> None:
    """Run one command of the service with this instant as the current time in every module."""
    now = datetime.fromisoformat(instant)
    time.time = now.timestamp

    class Still(datetime, metaclass=_Still):
        def __new__(cls, *parts: Any, **keywords: Any) -> datetime:  # type: ignore[misc]
            return datetime(*parts, **keywords)  # noqa: DTZ001 - the caller decides

        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return now.astimezone(tz)

    package = import_module("sankofa")
    for module in pkgutil.walk_packages(package.__path__, "sankofa."):
        loaded = import_module(module.name)
        if vars(loaded).get("datetime") is datetime:
            vars(loaded)["datetime"] = Still
    (command,) = entry_points(group="console_scripts", name="sankofa")
    sys.argv = ["sankofa", *arguments]
    command.load()()


# A world is a data folder that commands fill and HTTP requests read.


class World:
    """One data folder on one engine; the output of its commands is recorded too."""

    def __init__(self, name: str, folder: Path, recording: "Recording", datastore: str | None) -> None:
        self.name, self.folder, self.recording = name, folder, recording
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.now = START
        own = {f"SANKOFA_{key}": value for key, value in SETTINGS.items()}
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SANKOFA_")}
        compiled = {"PYTHONDONTWRITEBYTECODE": ""}  # or every command compiles the package again
        path = os.pathsep.join(filter(None, (str(ROOT), clean.get("PYTHONPATH"))))  # of this very package
        self.environment = {**clean, **own, **compiled, "PYTHONPATH": path, "SANKOFA_HOME": str(self.home)}
        if datastore:
            self.environment["SANKOFA_DATASTORE"] = datastore

    def _words(self, *arguments: str | Path) -> list[str]:
        self.now += timedelta(minutes=1)
        return [sys.executable, __file__, "at", self.now.isoformat(), *map(str, arguments)]

    def command(self, *arguments: str | Path) -> str:
        """Run one command, a minute after the last; its output is recorded, whether it succeeds or not."""
        command = self._words(*arguments)
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)  # noqa: S603
        if "Traceback" in done.stderr:
            raise SystemExit(f"{self.name}: {arguments} failed:\n{done.stderr}")
        if arguments[0] != "keys":
            answer = Answer(done.returncode, {}, (done.stdout + done.stderr).encode())
            words = " ".join(Path(word).name for word in arguments)
            self.record(f"{self.now:%H:%M} $ {words}", answer, str(self.folder))
        return done.stdout.strip()

    def editions(self) -> list[str]:
        return [line.split()[0] for line in self.command("editions").splitlines() if "T" in line]

    def record(self, name: str, answer: Answer, *passing: str) -> None:
        self.recording.add(f"{self.name} {name}", answer, *passing)

    @contextmanager
    def serve(self) -> Iterator[httpx.Client]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = self._words("serve", "--port", str(port))
        with (
            (self.folder / "serve.log").open("wb") as log,
            subprocess.Popen(command, env=self.environment, stdout=log, stderr=log) as process,  # noqa: S603
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http,
        ):
            try:
                _wait_for(http, process, self.folder / "serve.log")
                yield http
            finally:
                process.send_signal(signal.SIGTERM)


def _wait_for(http: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        try:
            if http.get("/health").status_code == 200:
                return
        except httpx.TransportError:
            pass
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit(f"the server did not start:\n{log.read_text()}")


def fill_sample(world: World) -> None:
    world.command("sample")
    correction = world.folder / "correction.csv"
    correction.write_text(CORRECTION)
    world.command("ingest", "sample-filings", correction)
    world.command("publish")


def fill_real(world: World, data: Path) -> None:
    """Ingest real files; refusals are recorded too."""
    tenders = [pair.split("=") for pair in OCDS.split()]
    sources = [
        f'[sources.real-{folder.replace(".", "-")}]\nadapter = "ocds"\nsku = "AF-TENDER"\n'
        f'country = "{country}"\nlicense_class = "open-government"\ncommercial_redistribution = true\n'
        for folder, country in tenders
    ]
    (world.home / "sources.toml").write_text("\n".join(sources))
    inputs = [*REAL, *((f"real-{folder.replace('.', '-')}", f"ocds/{folder}") for folder, _ in tenders)]
    there = [(source, data / path) for source, path in inputs if (data / path).exists()]
    for path in sorted({data / path for _, path in inputs} - {path for _, path in there}):
        click.echo(f"NOT RECORDED: no {path}", err=True)
    for half in (there[::2], there[1::2]):
        for source, path in half:
            world.command("ingest", source, path)
        world.command("publish", "--despite-floors")


# A recording is an SQLite file: one row per question, with the answer as it came.


class Recording:
    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS answer "
            "(name TEXT PRIMARY KEY, status INT, headers TEXT, sha256 TEXT, body BLOB)"
        )

    def add(self, name: str, answer: Answer, *passing: str) -> None:
        """Record an answer without the parts that differ between runs."""
        body = answer.body
        for text in passing:
            body = body.replace(text.encode(), b"<passing>")
        headers = EDITION.sub(b"<edition>", json.dumps(answer.headers, sort_keys=True).encode()).decode()
        row = (name, answer.status, headers, hashlib.sha256(normal(body)).hexdigest(), zlib.compress(body))
        self._database.execute("INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?, ?)", row)

    def rows(self) -> dict[str, tuple[int, str, str, bytes]]:
        return {
            name: (*rest,) for name, *rest in self._database.execute("SELECT * FROM answer ORDER BY name")
        }

    def commit(self) -> None:
        self._database.commit()

    def close(self) -> int:
        (number,) = self._database.execute("SELECT count(*) FROM answer").fetchone()
        self._database.close()
        return int(number)


@click.group(help=__doc__)
def main() -> None: ...


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("instant")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def at(instant: str, arguments: tuple[str, ...]) -> None:
    """Run one command of the service at an instant."""
    run_at(instant, list(arguments))


@main.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), default=ROOT.parent / "shared" / "data")
@click.option("--engine", "engines", multiple=True, default=("files", "postgresql"))
@click.option("--each", default=36, show_default=True, help="Questions per operation.")
def record(out: Path, data: Path, engines: tuple[str, ...], each: int) -> None:
    """Make the worlds, ask, and write the answers."""
    out.unlink(missing_ok=True)
    recording = Recording(out)
    names = ("sample", "real") if data.is_dir() else ("sample",)
    if len(names) == 1:
        click.echo(f"NOT RECORDED: real files (no folder {data}; name one with --data)", err=True)
    for engine in engines:
        for name in names:
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sankofa-replay-")))
                url = stack.enter_context(_database()) if engine == "postgresql" else None
                _record(World(f"{engine}/{name}", folder, recording, url), data, each)
            recording.commit()
    click.echo(f"{recording.close()} answers in {out}")


def _record(world: World, data: Path, each: int) -> None:
    fill_sample(world) if world.name.endswith("sample") else fill_real(world, data)
    high = ("--per-minute", "1000000", "--per-month", "100000000")
    keys = {tier: world.command("keys", "create", "--tier", tier, *high) for tier in set(TIERS[:5])}
    with world.serve() as http:
        asker = Asker(http, keys, world.editions(), world.record)
        asker.rest(each)
        asker.pages()
        asker.files()
        asker.tools(each)
        asker.dialects(2 * each)
    click.echo(f"{world.name}: recorded", err=True)


@contextmanager
def _database() -> Iterator[str]:
    sys.path.insert(0, str(ROOT))
    services = import_module("tests.services")
    binaries = services.postgres_binaries()
    if binaries is None:
        raise SystemExit("no PostgreSQL was found; --engine files records without it")
    server = services.PostgresServer(binaries)
    try:
        server.start()
        with server.database() as url:
            yield url
    finally:
        server.close()


@main.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
@click.option("--shown", default=20, show_default=True, help="Differences to print in full.")
def compare(before: Path, after: Path, shown: int) -> None:
    """Print what differs; exit 1 if anything does."""
    old, new = Recording(before).rows(), Recording(after).rows()
    different = [n for n in sorted(old.keys() | new.keys()) if not _same(old.get(n), new.get(n))]
    for name in different[:shown]:
        click.echo(f"\n=== {name}")
        if name not in old or name not in new:
            click.echo(f"only in {after if name in new else before}")
            continue
        before_text, after_text = (
            [str(row[0]), normal(row[1].encode()).decode(), *_lines(zlib.decompress(row[3]))]
            for row in (old[name], new[name])
        )
        difference = unified_diff(before_text, after_text, str(before), str(after), lineterm="", n=1)
        for line in islice(difference, 24):
            click.echo(line[:300])
    click.echo(f"{len(old)} and {len(new)} answers, {len(different)} differ")
    sys.exit(1 if different else 0)


def _same(old: tuple[int, str, str, bytes] | None, new: tuple[int, str, str, bytes] | None) -> bool:
    if old is None or new is None or old[0] != new[0]:
        return False
    if normal(old[1].encode()) != normal(new[1].encode()):
        return False
    return old[2] == new[2] or normal(zlib.decompress(old[3])) == normal(zlib.decompress(new[3]))


def _lines(body: bytes) -> list[str]:
    text: bytes = normal(body)
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False).splitlines()
    except ValueError:
        return text.decode(errors="replace").splitlines()


if __name__ == "__main__":
    main()
