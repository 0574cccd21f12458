"""On any day organisations equal those of a ledger with only the files up to that day (contract: ENTY-9)."""

import json
import random
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from sankofa.model.identifiers import service_id
from tests.live import LiveServer, create_key, succeed
from tests.spec.filed_names import FACTS, SETS, company_facts, data_set
from tests.spec.register import lei
from tests.spec.test_entities_in_time import HEAD, SOURCES
from tests.spec.test_parents import DIRECT, ULTIMATE, relationship, relationships
from tests.torture import rounds

LEIS = [lei(f"RANDOM{n}") for n in range(6)]
IDS = [service_id(f"lei:{one}") for one in LEIS]
TICKERS = ["JSE:AAA", "JSE:BBB", "NGX:AAA", "EGX:CCC"]
WORDS = ["Amber", "Basalt", "Cobalt", "Dolerite", "Emerald", "Feldspar", "Granite"]
CIK = "0009999777"
FILED = "0009999778"
"""A registrant that only filings name."""
FILER = service_id(f"registry:US-SEC-CIK:{CIK}")
Served = tuple[LiveServer, str]


class World:
    """Random histories of organisations, and the files of each day with an event."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self.folder = folder
        self.files: list[tuple[date, str, Path]] = []
        self.days = [date(2016, 3, 1) + timedelta(days=chance.randrange(20, 200) * n) for n in range(1, 8)]
        self.days = sorted(set(self.days))
        self._records: dict[int, dict[str, str]] = {}
        first_day = str(self.days[0])
        self._relations = {(0, ULTIMATE, 1): {"first": first_day, "updated": first_day, "status": "ACTIVE"}}
        self._listings: list[dict[str, Any]] = []
        self._names = [("Filer One Inc", "2010-01-01"), ("Filer Two Inc", "2012-05-05")]
        for number, day in enumerate(self.days):
            for one in range(len(LEIS)):
                if one not in self._records and (number == 0 or chance.random() < 0.5) and one != 5 + number:
                    name = f"{chance.choice(WORDS)} {one} Limited"
                    self._records[one] = {
                        "name": name,
                        "first": str(day),
                        "country": chance.choice("ZA NG".split()),
                    }
                    self._records[one] |= {"updated": str(day), "status": "ISSUED", "successor": ""}
                elif one in self._records and chance.random() < 0.6:
                    self._change(chance, self._records[one], day)
            self._relate(chance, day)
            self._list(chance, day)
            if chance.random() < 0.4:
                self._names.append((f"Filer {len(self._names) + 1} Inc", str(day)))
            self._write(day)
            self._file(chance, number, day)

    def _change(self, chance: random.Random, record: dict[str, str], day: date) -> None:
        match chance.randrange(4):
            case 0:
                record["name"] = f"{chance.choice(WORDS)} {chance.choice(WORDS)} Plc"
            case 1:
                record["status"] = chance.choice(["ISSUED", "LAPSED", "MERGED"])
            case 2:
                record["country"] = chance.choice(["ZA", "NG", "EG"])
            case 3:
                record["successor"] = "" if record["successor"] else LEIS[0]
        record["updated"] = str(day)

    def _relate(self, chance: random.Random, day: date) -> None:
        for child in [one for one in self._records if chance.random() < 0.5]:
            kind, parent = chance.choice([DIRECT, ULTIMATE]), chance.randrange(len(LEIS))
            if parent == child:
                continue
            for (own, of, other), old in self._relations.items():
                if (own, of) == (child, kind) and old["status"] == "ACTIVE" and other != parent:
                    old |= {"status": "INACTIVE", "updated": str(day)}
            new = self._relations.setdefault((child, kind, parent), {"first": str(day)})
            if new.get("status") != "ACTIVE":
                new |= {"status": "ACTIVE", "updated": str(day)}

    def _list(self, chance: random.Random, day: date) -> None:
        for ticker in TICKERS:
            open_listing = next(
                (one for one in self._listings if one["ticker"] == ticker and not one["to"]), None
            )
            if open_listing and chance.random() < 0.5:
                open_listing["to"] = str(day - timedelta(days=1))
                open_listing = None
            if not open_listing and chance.random() < 0.6:
                of = chance.choice(list(self._records))
                self._listings.append({"of": of, "ticker": ticker, "from": str(day), "to": ""})

    def _write(self, day: date) -> None:
        folder = self.folder / str(day)
        folder.mkdir()
        copy = folder / f"{day:%Y%m%d}-0000-gleif-goldencopy-lei2.csv"
        rows = [
            f'{LEIS[n]},"{r["name"]}",{r["country"]},{r["country"]},GENERAL,{r["successor"]},{r["status"]},'
            f"{r['first']}T00:00:00Z,{r['updated']}T00:00:00Z"
            for n, r in self._records.items()
        ]
        copy.write_text("\n".join([HEAD, *rows]) + "\n")
        related = [
            relationship(LEIS[child], kind, LEIS[parent], one["updated"], one["status"], one["first"])
            for (child, kind, parent), one in self._relations.items()
        ]
        listings = folder / "listings.csv"
        lines = [f"lei:{LEIS[o['of']]},ticker,{o['ticker']},{o['from']},{o['to']}" for o in self._listings]
        listings.write_text("\n".join(["entity,id_type,id_value,from,to", *lines]) + "\n")
        figures = folder / "figures.csv"
        head = "entity,line_item,value,currency,period_start,period_end,period_type,"
        head += "available_at,document,location"
        filers = [(number, f"lei:{LEIS[number]}", one["first"]) for number, one in self._records.items()]
        filers.append((len(LEIS), f"registry:US-SEC-CIK:{CIK}", str(self.days[0])))
        reported = [
            f"{of},{item},{value + n},ZAR,2014-01-01,2014-12-31,FY,{first},report {n},p1"
            for n, of, first in filers
            for item, value in (("revenue", 100), ("profit", 10))
        ]
        if day >= self.days[1]:
            reported += [
                f"{of},revenue,{200 + n},ZAR,2014-01-01,2014-12-31,FY,{max(first, str(self.days[1]))},"
                f"restated {n},p1"
                for n, of, first in filers
            ]
        figures.write_text("\n".join([head, *reported]) + "\n")
        submissions = folder / f"CIK{CIK}.json"
        formers = [
            {"name": name, "from": first, "to": str(date.fromisoformat(then) - timedelta(days=1))}
            for (name, first), (_, then) in zip(self._names, self._names[1:], strict=False)
        ]
        current = {"cik": CIK, "name": self._names[-1][0], "formerNames": formers[::-1]}
        submissions.write_text(json.dumps(current))
        self.files += [
            (day, "gleif-lei", copy),
            (day, "gleif-rr", relationships(folder, str(day), *related)),
            (day, "identifiers", listings),
            (day, "filings", figures),
            (day, "names", submissions),
        ]

    def _file(self, chance: random.Random, number: int, day: date) -> None:
        """Filings that name registrants, each under a name of its own."""
        for cik in (CIK, FILED):
            name = f"{chance.choice(WORDS)} {cik[-1]}{number}"
            for source, write, kind in ((SETS, data_set, "zip"), (FACTS, company_facts, "json")):
                if chance.random() < 0.4:
                    path = self.folder / str(day) / f"{cik}.{kind}"
                    accession = f"{cik}-{number:02}-{len(kind):06}"
                    own = (chance.choice(["US", "IE"]),) if source == SETS else ()
                    write(path, cik, f"{name} {kind} Inc", str(day), accession, *own)
                    self.files.append((day, source, path))

    def publish(self, home: Path, day: date) -> None:
        """The files up to a day. If several days give all files so far, the last is enough."""
        home.mkdir()
        (home / "sources.toml").write_text(SOURCES)
        latest: dict[str, list[Path]] = defaultdict(list)
        for written, source, path in self.files:
            if written <= day:
                latest[source].append(path)
        for source, paths in latest.items():
            dated = source.startswith(("gleif", "sec-"))
            succeed(home, "ingest", source, *(paths if dated else paths[-1:]))
        succeed(home, "publish", "--despite-floors")


def questions() -> list[str]:
    paths = []
    for one in (*IDS, FILER, service_id(f"registry:US-SEC-CIK:{FILED}")):
        paths += [f"/v1/entities/{one}", f"/v1/entities/{one}/history", f"/v1/crosswalk/{one}"]
        paths.append(f"/v1/shared/facts?entity_id={one}")
    for ticker in TICKERS:
        paths += [f"/v1/crosswalk?id_type=ticker&id_value={ticker}", f"/v1/search?q={ticker}"]
        paths.append(f"/v1/search?q={ticker.partition(':')[2]}")
    paths += [f"/v1/search?q={word}" for word in (*WORDS, "filer", "limited", "plc", "inc")]
    for country in ("ZA", "NG", "EG", "US", "IE"):
        paths += [f"/v1/search?q={word}&country={country}" for word in (*WORDS, "gran", "limited")]
        paths += [f"/v1/search?q=JSE:AAA&country={country}", f"/v1/restatements?country={country}"]
    paths += ["/v1/issuers", *(f"/v1/issuers?country={one}" for one in ("ZA", "NG", "EG", "US", "IE"))]
    paths += [f"/v1/issuers?exchange={one}" for one in ("JSE", "NGX")]
    paths += ["/v1/screen?metric=net_margin", "/v1/screen?metric=net_margin&country=NG"]
    paths += ["/v1/panel?metrics=net_margin&every=year&from=2016-01-01&country=ZA"]
    paths += ["/v1/signals/fundamentals-factors", "/v1/search?q=granitte&country=NG"]
    return [*paths, "/v1/panel?metrics=net_margin&from=2016-01-01&every=year"]


def ids_and_cursors(server: LiveServer, key: str, path: str) -> list[str]:
    """The ids and cursors of a list, page by page."""
    return [
        text
        for page in server.pages(path, key, limit=2)
        for text in (*(row["service_id"] for row in page["data"]), str(page["next_cursor"]))
    ]


@contextmanager
def served(home: Path) -> Iterator[Served]:
    with LiveServer(home) as server:
        yield server, create_key(home, "starter", "--per-minute", "100000")


def compare(whole: Served, until: Served, day: date, questions: Iterable[str]) -> None:
    """A ledger that has later files, too, against one that ends before them."""
    (after, key), (then, own) = whole, until
    for question in questions:
        path = f"/at/{day}{question}"
        expected, answer = then.get(path, own), after.get(path, key)
        assert answer.status_code == expected.status_code, path
        if answer.status_code == 200:
            assert answer.text.replace(after.url, "") == expected.text.replace(then.url, ""), path
        open_path = f"{question}{'&' if '?' in question else '?'}as_of={day}"
        of_values = any(
            name in question
            for name in ("panel", "screen", "facts", "signals", "restatements", "sources", "coverage")
        )
        if not of_values and answer.status_code == 200:
            same(after.get(open_path, key).json(), answer.json(), open_path)
    assert ids_and_cursors(after, key, f"/at/{day}/v1/issuers") == ids_and_cursors(
        then, own, f"/at/{day}/v1/issuers"
    )
    listed = after.get(f"/v1/issuers?as_of={day}", key).json()["data"]
    keys = [(row["country"] or "~", row["service_id"]) for row in listed]
    assert keys == sorted(keys)


def same(one: dict[str, Any], other: dict[str, Any], path: str) -> None:
    """The same rows apart from their origin."""
    own, locked = (
        [{k: v for k, v in row.items() if k not in ("observed_at", "source_ref")} for row in body["data"]]
        for body in (one, other)
    )
    assert own == locked, path


@pytest.mark.rule("ENTY-9", "LOCK-5", "ISS-2")
@pytest.mark.parametrize("seed", range(rounds(1, 3, 10)))
def test_organisations_depend_only_on_the_files_up_to_the_day(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    world = World(chance, tmp_path)
    whole = tmp_path / "whole"
    world.publish(whole, world.days[-1])
    with served(whole) as after:
        between = world.days[1:-1]
        for day in chance.sample(between, min(rounds(2, 3, 5), len(between))):
            home = tmp_path / f"until-{day}"
            world.publish(home, day)
            for secret in whole.glob("*-secret"):
                shutil.copy(secret, home)
            following = world.days[world.days.index(day) + 1]
            as_of = chance.choice([day, following - timedelta(days=1)])
            with served(home) as then:
                compare(after, then, as_of, questions())
