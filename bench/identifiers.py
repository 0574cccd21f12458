"""Identifiers: lookups with three million loaded and with thirty thousand, search, and golden-copy ingest.

    python -m bench.identifiers [--rounds 5] [--seconds 3] [--fresh]

Each lookup asks for another identifier. Searches use MCP and lookups REST, as callers do.
"""

import argparse
import csv
import http.client
import json
import random
import shutil
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from bench.fundamentals import issue_key
from bench.history import report
from bench.ingest import cost
from bench.load import (
    CONNECTIONS,
    HOST,
    Contender,
    Question,
    Server,
    cpu_ratio,
    load_tool,
    measure,
    ratio,
    table,
)
from bench.peers import commands
from bench.world import CACHE, SANKOFA, environment_of

_SIZES = {"3 million": 750_000, "30 thousand": 7_500}
_SYLLABLES = "ba be bo da de du fa ga ke ko la ma mo na ngo nya pe ra sa se ta tho wa ya ze zi".split()
_KINDS = "Holdings Trading Mining Bank Foods Energy Insurance Logistics Cement Telecom Properties".split()
_FORMS = ("Limited", "Plc", "(Pty) Ltd", "S.A.", "SARL", "Inc")
_COUNTRIES = ("ZA", "NG", "KE", "EG", "GH", "MA", "CI", "SN")
_VALUES = {ord(c): str(int(c, 36)) for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def lei(number: int) -> str:
    body = f"9997BENCH{number:09d}"
    return f"{body}{98 - int((body + '00').translate(_VALUES)) % 97:02d}"


def isin(country: str, number: int) -> str:
    body = f"{country}{number:09d}"
    digits = [int(d) for d in body.translate(_VALUES)][::-1]
    total = sum(sum(divmod(2 * d, 10)) if n % 2 == 0 else d for n, d in enumerate(digits))
    return f"{body}{-total % 10}"


def organisation(number: int) -> tuple[str, str]:
    """(name, country) of an organisation; everything follows from its number."""
    chance = random.Random(number)
    word = "".join(chance.choices(_SYLLABLES, k=chance.randrange(2, 5))).capitalize()
    other = "".join(chance.choices(_SYLLABLES, k=3)).capitalize()
    return f"{word} {other} {chance.choice(_KINDS)} {chance.choice(_FORMS)}", _COUNTRIES[
        number % len(_COUNTRIES)
    ]


def write_files(folder: Path, count: int) -> tuple[Path, Path]:
    """A golden copy (LEI and registry number of each) and the ISIN file (two of each)."""
    folder.mkdir(parents=True, exist_ok=True)
    golden, isins = folder / "golden-copy.csv", folder / "lei-isin.csv"
    if not isins.exists():
        with golden.open("w", newline="") as stream:
            rows = csv.writer(stream, quoting=csv.QUOTE_ALL)
            rows.writerow(_COLUMNS)
            rows.writerows(_records(count))
        with isins.open("w") as stream:
            stream.write("LEI,ISIN\n")
            for n in range(count):
                country = _COUNTRIES[n % len(_COUNTRIES)]
                stream.write(f"{lei(n)},{isin(country, 2 * n)}\n{lei(n)},{isin(country, 2 * n + 1)}\n")
    return golden, isins


_COLUMNS = (
    "LEI", "Entity.LegalName", "Entity.LegalAddress.Country",
    "Entity.RegistrationAuthority.RegistrationAuthorityID",
    "Entity.RegistrationAuthority.RegistrationAuthorityEntityID", "Entity.LegalJurisdiction",
    "Entity.EntityCategory", "Entity.LegalForm.EntityLegalFormCode", "Entity.EntityStatus",
    "Registration.LastUpdateDate", "Registration.RegistrationStatus",
)  # fmt: skip


def _records(count: int) -> Iterator[tuple[str, ...]]:
    for n in range(count):
        name, country = organisation(n)
        yield (
            lei(n), name, country, f"RA99{n % 40:04d}", f"{country}{n:07d}", country, "GENERAL", "8888",
            "ACTIVE", "2026-01-05T00:00:00Z", "ISSUED",
        )  # fmt: skip


def published_home(size: str, *, fresh: bool) -> Path:
    """A home filled by the real command, which is measured while it runs; kept between runs."""
    count = _SIZES[size]
    home = CACHE / f"home-identifiers-{count}"
    if (home / "made").exists() and not fresh:
        return home
    shutil.rmtree(home, ignore_errors=True)
    golden, isins = write_files(CACHE / f"files-identifiers-{count}", count)
    environment = environment_of(home)
    print(f"{'':36}{'rows':>12}{'rows/s':>12}{'per cpu s':>12}{'peak MB':>10}")
    for source, path, rows in (("gleif-lei", golden, count), ("gleif-isin", isins, 2 * count)):
        print(
            cost([SANKOFA, "ingest", source, str(path)], environment).line(f"ingest {source}", rows),
            flush=True,
        )
    print(cost([SANKOFA, "publish"], environment).line("publish", 4 * count), flush=True)
    (home / "made").touch()
    return home


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.identifiers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    homes = {size: published_home(size, fresh=options.fresh) for size in _SIZES}
    print(f"load: {load_tool()}, {CONNECTIONS} connections; {options.rounds} rounds of {options.seconds:g} s")
    with ExitStack() as running:
        contenders = []
        for size, home in homes.items():
            server = running.enter_context(commands.sankofa(home))
            key = {"X-API-Key": issue_key(home, "professional")}
            contenders.append(Contender(f"lookup, {size}", server, list(_lookups(_SIZES[size])), key))
        body = len(contenders[0].server.body(contenders[0].questions[0], contenders[0].headers))
        with contenders[0].server.fetch(contenders[0].questions[0], contenders[0].headers) as answer:
            fields = {n: v for n, v in answer.getheaders() if n not in ("content-length", "date", "server")}
        ceiling = running.enter_context(commands.static(homes["3 million"], fields))
        contenders.append(Contender("static body", ceiling, [Question(f"/{body}")]))
        measure(contenders, options.rounds, options.seconds)
        _search(contenders[0].server, contenders[0].headers)
    large, small, static = contenders
    print(table(contenders, large))
    by_rate, by_cpu = ratio(large, static), cpu_ratio(large, static)
    report("lookup, rate to a static body", by_rate, least=0.35)
    report("lookup, processor time to a static body", by_cpu)
    report("lookup, rate to that with a hundredth of the identifiers", ratio(large, small), least=0.80)


def _lookups(count: int) -> Iterator[Question]:
    chance = random.Random(1)
    for _ in range(20_000):
        n = chance.randrange(count)
        kind = chance.randrange(3)
        identifier = (
            f"lei&id_value={lei(n)}",
            f"isin&id_value={isin(_COUNTRIES[n % len(_COUNTRIES)], 2 * n)}",
            f"registry&id_value={_COUNTRIES[n % len(_COUNTRIES)]}{n:07d}",
        )[kind]
        yield Question(f"/v1/crosswalk?id_type={identifier}")


def _search(server: Server, key: Mapping[str, str]) -> None:
    """A lookup over REST and a search over MCP in turn, one at a time: the wait of a caller."""
    took: dict[str, list[float]] = {"lookup": [], "search": [], "search with a slip": []}
    chance = random.Random(2)
    connection = http.client.HTTPConnection(HOST, server.port, timeout=60)

    def timed(what: str, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> None:
        began = time.perf_counter()
        connection.request(method, path, body, {**key, **headers})
        answer = connection.getresponse()
        answer.read()
        took[what].append(time.perf_counter() - began)
        if answer.status != 200:
            raise SystemExit(f"{what}: status {answer.status}")

    for _ in range(300):
        number = chance.randrange(_SIZES["3 million"])
        name, _ = organisation(number)
        timed("lookup", "GET", f"/v1/crosswalk?id_type=lei&id_value={lei(number)}", None, {})
        for what, query in (("search", name), ("search with a slip", name[:3] + name[4:])):
            arguments = {"query": query, "limit": 10}
            call = {"name": "search_entities", "arguments": arguments, "_meta": _MCP_META}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            timed(what, "POST", "/mcp", json.dumps(message), _MCP_HEADERS)
    middle = {what: statistics.median(times) * 1e3 for what, times in took.items()}
    for what, milliseconds in middle.items():
        report(
            f"{what}, median time to that of a lookup", milliseconds / middle["lookup"], unit="times", most=10
        )


_MCP_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
_MCP_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "search_entities",
}


if __name__ == "__main__":
    main()
