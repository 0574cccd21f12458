"""Proves that a change of the code changed no answer: records what the service says, and compares two recordings.

    python tools/replay.py record before.sqlite      # with the code as it was
    python tools/replay.py record after.sqlite       # with the code as it is
    python tools/replay.py compare before.sqlite after.sqlite

A recording takes the sample world and, where there are any, the real files of `--data` through the command line,
on files and on PostgreSQL, and asks a real server thousands of generated questions: every operation of the
OpenAPI description in every format and tier, every MCP tool, the Parquet files and parts of them, and errors of
all kinds. Only the command line and HTTP are used, so that it works whatever the code inside is called. Clock and
secrets are fixed. Edition ids, entity tags, cursors and request ids may differ; nothing else may.
"""

import argparse
import hashlib
import json
import os
import pkgutil
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import httpx

ROOT = Path(__file__).resolve().parent.parent
START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
SETTINGS = {
    "BASE_URL": "http://replay.invalid",
    "CURSOR_SECRET": "a fixed secret of the recordings",
    "GATE_SECRET": "another fixed secret of the recordings",
    "LOG_LEVEL": "warning",
}
FORMATS = ("application/json", "text/csv", "application/vnd.apache.arrow.stream", "text/html", "*/*")
HEADERS = (
    *("content-type", "cache-control", "vary", "link", "allow", "www-authenticate", "retry-after"),
    *("content-range", "accept-ranges", "content-disposition", "content-encoding", "ratelimit-policy"),
    *("deprecation", "sunset", "x-service-api-version", "location", "access-control-allow-origin"),
)
EDITION = re.compile(rb"\b[0-9]{8}T[0-9]{6}Z-[0-9A-Za-z-]+")
CURSOR = re.compile(rb'(cursor\\*"?[:=] ?\\*"?)[A-Za-z0-9_-]{20,600}')
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
    "confidence\nlei:999900SAMPLEZA000189,revenue,1001,ZAR,2019-07-01,2020-06-30,FY,2024-01-05,corr-1,p. 1,1.0\n"
)
"""Makes the second edition of the sample world differ from the first."""


# A clock that stands still. Run as `replay.py at INSTANT COMMAND...`: the command line, at that instant.


class _Still(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


def run_at(instant: str, arguments: list[str]) -> None:
    """Run one command of the service; every module of it takes the instant for now."""
    now = datetime.fromisoformat(instant)
    time.time = now.timestamp

    class Still(datetime, metaclass=_Still):
        def __new__(cls, *parts: Any, **named: Any) -> datetime:  # type: ignore[misc]
            return datetime(*parts, **named)

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


# A world is a data folder, filled by commands and asked over HTTP.


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class World:
    """One data folder on one engine; what its commands say is recorded too."""

    def __init__(self, name: str, folder: Path, recording: "Recording", datastore: str | None) -> None:
        self.name, self.folder, self.recording = name, folder, recording
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.now = START
        own = {f"SANKOFA_{key}": value for key, value in SETTINGS.items()}
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SANKOFA_")}
        self.environment = {**clean, **own, "SANKOFA_HOME": str(self.home)}
        if datastore:
            self.environment["SANKOFA_DATASTORE"] = datastore

    def command(self, *arguments: str | Path) -> str:
        """Run one, a minute after the last; what it prints, well or not, is part of the recording."""
        self.now += timedelta(minutes=1)
        told = [sys.executable, __file__, "at", self.now.isoformat(), *map(str, arguments)]
        done = subprocess.run(told, env=self.environment, capture_output=True, text=True, check=False)
        if "Traceback" in done.stderr:
            raise SystemExit(f"{self.name}: {arguments} failed:\n{done.stderr}")
        if arguments[0] != "keys":
            text = (
                (done.stdout + done.stderr)
                .replace(str(self.home), "HOME")
                .replace(str(self.folder), "FOLDER")
            )
            place = " ".join(Path(word).name for word in arguments)
            answer = Answer(done.returncode, {}, text.encode())
            self.recording.add(f"{self.name} {self.now:%H:%M} $ {place}", answer, str(self.folder))
        return done.stdout.strip()

    @contextmanager
    def serve(self) -> Iterator[httpx.Client]:
        self.now += timedelta(minutes=1)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        told = [sys.executable, __file__, "at", self.now.isoformat(), "serve", "--port", str(port)]
        with (
            (self.folder / "serve.log").open("wb") as log,
            subprocess.Popen(told, env=self.environment, stdout=log, stderr=log) as process,
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
    """Real files; refusals are part of what is recorded."""
    tenders = [pair.split("=") for pair in OCDS.split()]
    sources = [
        f'[sources.real-{folder.replace(".", "-")}]\nadapter = "ocds"\nsku = "AF-TENDER"\ncountry = "{country}"\n'
        'license_class = "open-government"\ncommercial_redistribution = true\n'
        for folder, country in tenders
    ]
    (world.home / "sources.toml").write_text("\n".join(sources))
    given = [*REAL, *((f"real-{folder.replace('.', '-')}", f"ocds/{folder}") for folder, _ in tenders)]
    there = [(source, data / path) for source, path in given if (data / path).exists()]
    for path in sorted({data / path for _, path in given} - {path for _, path in there}):
        print(f"NOT RECORDED: no {path}", file=sys.stderr)
    for source, path in there[: len(there) // 2]:
        world.command("ingest", source, path)
    world.command("publish", "--despite-floors")
    for source, path in there[len(there) // 2 :]:
        world.command("ingest", source, path)
    world.command("publish", "--despite-floors")


# Questions: every parameter with every kind of value, alone and together, drawn by a fixed seed.


class Question(NamedTuple):
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes = b""

    @property
    def name(self) -> str:
        query = "&".join(f"{name}={value}" for name, value in self.query)
        headers = " ".join(f"{name}:{value}" for name, value in self.headers if name != "content-type")
        text = f"{self.method} {self.path}?{query} [{headers}] {self.content.decode()}"
        return EDITION.sub(b"<edition>", CURSOR.sub(rb"\1<cursor>", text.encode())).decode()


class Asker:
    """Asks one world, and draws the questions from what its description and first answers offer."""

    def __init__(self, world: World, http: httpx.Client, keys: dict[str, str], seed: int = 1) -> None:
        self.world, self.http, self.keys = world, http, keys
        self.chance = random.Random(seed)  # noqa: S311 - no secret
        self.editions = [line.split()[0] for line in world.command("editions").splitlines() if "T" in line]
        self.values = _VALUES | {"edition": [*self.editions, "none", "?"], "since": [*self.editions, "none"]}
        self.values |= {"service_id": self._ids()}
        self.values["entity_id"] = [*self.values["service_id"][:4], "ZAF", "KEN"]

    def ask(self, question: Question) -> Answer:
        """Ask, and record the answer; a key is named by its tier."""
        headers = [(n, self.keys.get(v, v) if n == "x-api-key" else v) for n, v in question.headers]
        sent = self.http.build_request(
            question.method,
            question.path,
            params=list(question.query),
            headers=headers,
            content=question.content,
        )
        received = self.http.send(sent)
        headers_kept = {name: received.headers[name] for name in HEADERS if name in received.headers}
        answer = Answer(received.status_code, headers_kept, received.content)
        self.world.recording.add(
            f"{self.world.name} {question.name}",
            answer,
            received.headers.get("x-request-id", "-"),
            str(self.http.base_url),
        )
        return answer

    def rest(self, each: int) -> None:
        description = self.http.get("/openapi.json").json()
        for path, methods in sorted(description["paths"].items()):
            for method in ("POST", "HEAD", "OPTIONS"):
                self.ask(Question(method, path.replace("{", "").replace("}", "")))
            parameters = [_resolved(description, p) for p in methods["get"].get("parameters", [])]
            for question in self._questions(path, parameters, each):
                self.ask(question)
        for path in ("/", "/nothing", "/v1/", "/docs", "/problems", "/problems/not-found", "/v1/screen/"):
            self.ask(Question("GET", path))

    def pages(self, most: int = 4) -> None:
        """Walks, cursor by cursor."""
        walks = [("/v1/tenders", {"country": country, "limit": "7"}) for country in ("ZA", "KE", "MD", "NG")]
        for dataset in ("tenders", "fundamentals", "entities", "macro-series"):
            walks.append(("/v1/changes", {"since": self.editions[-1], "dataset": dataset, "limit": "7"}))
            walks.append(("/v1/changes", {"since": self.editions[0], "dataset": dataset, "limit": "7"}))
        for path, query in walks:
            cursor: dict[str, str] = {}
            for page in range(most):
                headers = (("x-api-key", "professional"), ("x-page", str(page)))
                answer = self.ask(Question("GET", path, tuple({**query, **cursor}.items()), headers))
                found = json.loads(answer.body).get("next_cursor") if answer.status == 200 else None
                if found is None:
                    break
                cursor = {"cursor": found}

    def files(self) -> None:
        """Every Parquet file, whole and in parts."""
        headers = (("x-api-key", "professional"),)
        answer = self.ask(Question("GET", "/v1/export", headers=headers))
        for row in json.loads(answer.body)["data"]:
            path = httpx.URL(row["url"]).path
            self.ask(Question("HEAD", path, headers=headers))
            for part in ("", "bytes=0-3", "bytes=-8", "bytes=5-5,10-20", "bytes=999999999-", "bytes=x"):
                self.ask(Question("GET", path, headers=(*headers, ("range", part)) if part else headers))
            self.ask(Question("GET", path, headers=(("x-api-key", "sample"),)))

    def tools(self, each: int) -> None:
        """Every MCP tool, by messages that need no session."""
        listed = json.loads(self._message("tools/list", {}).body)["result"]["tools"]
        self._message("initialize", {})
        self._message("nothing", {})
        self._message("tools/call", {"name": "nothing", "arguments": {}})
        for tool in sorted(listed, key=lambda tool: str(tool["name"])):
            names = sorted(tool["inputSchema"].get("properties", {}))
            needed = tool["inputSchema"].get("required", [])
            for _ in range(each):
                chosen = [n for n in names if n in needed or self.chance.random() < 0.35]
                arguments: dict[str, Any] = {
                    n: self._value(n, tool["inputSchema"]["properties"][n]) for n in chosen
                }
                if "limit" in arguments and str(arguments["limit"]).isdigit():
                    arguments["limit"] = int(arguments["limit"])
                self._message("tools/call", {"name": tool["name"], "arguments": arguments})

    def _message(self, method: str, params: dict[str, Any]) -> Answer:
        content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers = (
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2025-11-25"),
            ("x-api-key", self.chance.choice(("sample", "starter", "professional", "professional"))),
        )
        return self.ask(Question("POST", "/mcp", headers=headers, content=content))

    def _questions(self, path: str, parameters: list[dict[str, Any]], each: int) -> Iterator[Question]:
        inside = [p for p in parameters if p["in"] == "path"]
        others = [p for p in parameters if p["in"] == "query"]
        needed = [p for p in others if p.get("required")]
        alone = [(p, value) for p in others for value in self._all(p["name"], p["schema"])]
        self.chance.shuffle(alone)
        for number in range(each):
            chosen = {p["name"]: self._value(p["name"], p["schema"]) for p in needed}
            if number % 2 and alone:
                parameter, value = alone[number // 2 % len(alone)]
                chosen[parameter["name"]] = value
            else:
                few = self.chance.sample(others, min(len(others), self.chance.randint(0, 3)))
                chosen |= {p["name"]: self._value(p["name"], p["schema"]) for p in few}
            target = path
            for p in inside:
                values = [p["example"]] if "example" in p and self.chance.random() < 0.3 else None
                chosen_value = self.chance.choice(values or self._all(p["name"], p["schema"]))
                target = target.replace(f"{{{p['name']}}}", str(chosen_value))
            tier = self.chance.choice(
                ("professional", "professional", "starter", "sample", "sample", "wrong", "")
            )
            accept = FORMATS[number % 3] if self.chance.random() < 0.9 else self.chance.choice(FORMATS)
            headers = (("accept", accept), *([("x-api-key", tier)] if tier else []))
            yield Question("GET", target, tuple(chosen.items()), headers)

    def _all(self, name: str, schema: dict[str, Any]) -> list[str]:
        known = [*map(str, schema.get("enum", [])), *self.values.get(name, [])]
        return [*known, "nonsense", ""] if known else ["nonsense", ""]

    def _value(self, name: str, schema: dict[str, Any]) -> str:
        values = self._all(name, schema)
        return self.chance.choice(values[:-2] if len(values) > 2 and self.chance.random() < 0.93 else values)

    def _ids(self) -> list[str]:
        """Organisations of this world, besides those that no world has."""
        found: dict[str, None] = {}
        for path in (
            "/v1/screen?metric=net_margin&limit=15",
            "/v1/tender-parties?limit=40",
            "/v1/screen?metric=cash_ratio&limit=5",
        ):
            body = self.http.get(path, headers={"x-api-key": self.keys["professional"]}).json()
            found |= {row["service_id"]: None for row in body.get("data", []) if row.get("service_id")}
        ids = list(found)[:24]
        return [*ids, *(one.lower() for one in ids[:1]), "DC000000000000000000000000"]


_DAYS = ["2024-06-30", "2010-02-28", "2018-08-01", "2021-03-31", "2026-01-01", "2026-11-02", "1999-12-31"]
_VALUES: dict[str, list[str]] = {
    "as_of": [*_DAYS, "2999-01-01", "2024-02-30", "0000-01-01"],
    "from": [*_DAYS, "2015", "2024-13-01"],
    "to": [*_DAYS, "2020", "1900-01-01"],
    "limit": ["1", "2", "25", "100", "10000", "10001", "0", "-1", "1.5"],
    "country": ["ZA", "KE", "NG", "za", "MD", "PY", "US", "ZAF", "KEN", "XX", "Z"],
    "indicator": ["NY.GDP.MKTP.CD", "SP.POP.TOTL", "FP.CPI.TOTL.ZG", "ny.gdp.mktp.cd"],
    "series": ["CPI.ZA", "FX.USD.ZAR", "FX.EUR.ZAR", "fx.eur.usd"],
    "series_type": ["cpi", "fx", "rate"],
    "id_value": ["999900SAMPLEZA000189", "JSE:SMP", "US67066G1040", "BBG000BBJQV0", "777", "A" * 65],
    "measure": ["revenue", "profit", "value", "NY.GDP.MKTP.CD"],
    "category": ["Services: Civil", "goods", "works"],
    "role": ["supplier", "buyer", "tenderer", "Buyer"],
    "sku": ["AF-FUND", "AF-TENDER", "AF-MACRO", "af-fund"],
    "signal_key": ["macro-momentum", "fundamentals-factors", "procurement-demand", "issuer-persistence"],
    "query": ["sample", "bank", "nvidia", "ministry", "x"],
    "name": ["sample", "bank", "nvidia"],
    "file": ["procurement-demand.parquet", "af-fund-fundamentals.parquet", "none.parquet"],
    "cursor": ["A" * 40],
}


def _resolved(description: dict[str, Any], parameter: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in parameter:
        return parameter
    found: Any = description
    for word in parameter["$ref"].removeprefix("#/").split("/"):
        found = found[word]
    return dict(found)


# A recording is an SQLite file: one row per question, with the answer as it came.


class Recording:
    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS answer (name TEXT PRIMARY KEY, status INT, headers TEXT, sha256 TEXT, body BLOB)"
        )

    def add(self, name: str, answer: Answer, *passing: str) -> None:
        """Keep an answer, without what differs from one run to the next."""
        body = answer.body
        for text in passing:
            body = body.replace(text.encode(), b"<passing>")
        headers = EDITION.sub(b"<edition>", json.dumps(answer.headers, sort_keys=True).encode()).decode()
        row = (name, answer.status, headers, hashlib.sha256(_normal(body)).hexdigest(), zlib.compress(body))
        self._database.execute("INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?, ?)", row)

    def rows(self) -> dict[str, tuple[int, str, str, bytes]]:
        return {
            name: (*rest,) for name, *rest in self._database.execute("SELECT * FROM answer ORDER BY name")
        }

    def close(self) -> int:
        self._database.commit()
        (number,) = self._database.execute("SELECT count(*) FROM answer").fetchone()
        self._database.close()
        return int(number)


def _normal(body: bytes) -> bytes:
    """Without edition ids and cursors; of the same length in what is not text, where lengths are told."""
    if b"\0" in body[:200]:
        return EDITION.sub(lambda found: b"e" * len(found[0]), body)
    return CURSOR.sub(rb"\1<cursor>", EDITION.sub(b"<edition>", body))


def record(out: Path, data: Path, engines: Iterable[str], each: int) -> None:
    out.unlink(missing_ok=True)
    recording = Recording(out)
    with ExitStack() as stack:
        for engine in engines:
            for name in ("sample", "real") if data.is_dir() else ("sample",):
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sankofa-replay-")))
                url = stack.enter_context(_database()) if engine == "postgresql" else None
                world = World(f"{engine}/{name}", folder, recording, url)
                fill_sample(world) if name == "sample" else fill_real(world, data)
                high = ("--per-minute", "1000000", "--per-month", "100000000")
                tiers = ("sample", "starter", "professional")
                keys = {tier: world.command("keys", "create", "--tier", tier, *high) for tier in tiers}
                with world.serve() as http:
                    asker = Asker(world, http, keys)
                    asker.rest(each)
                    asker.pages()
                    asker.files()
                    asker.tools(each // 3)
                print(f"{world.name}: recorded", file=sys.stderr)
    if not data.is_dir():
        print(f"NOT RECORDED: real files (no folder {data}; name one with --data)", file=sys.stderr)
    print(f"{recording.close()} answers in {out}")


@contextmanager
def _database() -> Iterator[str]:
    sys.path.insert(0, str(ROOT))
    from tests.services import PostgresServer, postgres_binaries

    binaries = postgres_binaries()
    if binaries is None:
        raise SystemExit("no PostgreSQL was found; --engines files records without it")
    server = PostgresServer(binaries)
    try:
        server.start()
        with server.database() as url:
            yield url
    finally:
        server.close()


def compare(before: Path, after: Path, shown: int) -> int:
    """Print what differs; the number of differences."""
    old, new = Recording(before).rows(), Recording(after).rows()
    different = [name for name in sorted(old.keys() | new.keys()) if _told(old, name) != _told(new, name)]
    for name in different[:shown]:
        print(f"\n=== {name}")
        if name not in old or name not in new:
            print(f"only in {after if name in new else before}")
            continue
        texts = [
            [str(row[0]), row[1], *_lines(_normal(zlib.decompress(row[3])))] for row in (old[name], new[name])
        ]
        for line in list(unified_diff(*texts, str(before), str(after), lineterm="", n=1))[:24]:
            print(line[:300])
    print(f"{len(old)} and {len(new)} answers, {len(different)} differ")
    return len(different)


def _told(rows: dict[str, tuple[int, str, str, bytes]], name: str) -> object:
    return rows[name][:3] if name in rows else None


def _lines(body: bytes) -> list[str]:
    try:
        return json.dumps(json.loads(body), indent=1, ensure_ascii=False).splitlines()
    except ValueError:
        return body.decode(errors="replace").splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recorded = commands.add_parser("record", help="make the worlds, ask, and write the answers")
    recorded.add_argument("out", type=Path)
    recorded.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", help="a folder of real files"
    )
    recorded.add_argument("--engines", nargs="+", default=["files", "postgresql"])
    recorded.add_argument("--each", type=int, default=36, help="questions per operation")
    compared = commands.add_parser("compare", help="print what differs; exit 1 if anything does")
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path)
    compared.add_argument("--shown", type=int, default=20)
    at = commands.add_parser("at", help="run a command at an instant")
    at.add_argument("instant")
    at.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.command == "at":
        run_at(given.instant, given.arguments)
    elif given.command == "record":
        record(given.out, given.data, given.engines, given.each)
    else:
        sys.exit(1 if compare(given.before, given.after, given.shown) else 0)


if __name__ == "__main__":
    main()
