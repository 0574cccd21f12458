"""On any day organisations equal those of a ledger with only the files up to that day (contract: ENTY-9)."""

import gzip
import json
import random
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from sankofa.model.identifiers import service_id
from tests.live import LiveServer, create_key, succeed
from tests.real_inputs import Digits, statements_of
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


class RealFiles:
    """Files of the SEC and of GLEIF as they were on each day.

    Data sets of the SEC are cut at the day of filing, companyfacts come with their last filing. Golden copies
    are made of real records: the changes that GLEIF publishes for six of them are undone up to the day.
    """

    def __init__(self, folder: Path, data: Path) -> None:
        self._folder, self._data = folder, data
        api = data / "identifiers" / "gleif-api"
        self._records = {one["id"]: one for one in _members(api / "lei_records")}
        self._relations = [one["attributes"] for one in _members(api / "relationships")]
        changes = [one["attributes"] for one in _members(api / "field_modifications")]
        self._changes = sorted(changes, key=lambda one: str(one["date"]), reverse=True)
        self._facts: dict[Path, tuple[str, str]] = {}
        for path in sorted((data / "fundamentals" / "companyfacts-2021").glob("*.gz"))[::4]:
            self._last_filing(json.loads(gzip.decompress(path.read_bytes()), parse_float=Digits), path.stem)
        for path in map(data.joinpath, BOTH):
            self._last_filing(json.loads(gzip.decompress(path.read_bytes()), parse_float=Digits), path.stem)
        days = {str(one["date"])[:10] for one in self._changes if _undone(one)}
        self.copies = sorted(
            {"2019-12-31", *days, *(filed for filed, _ in self._facts.values() if filed > "2020")}
        )
        """The days of golden copies: the first one, and each day on which anything changed."""

    def _last_filing(self, document: dict[str, Any], name: str) -> None:
        """The part of a document from its last filing; earlier filings are in no file of their own day."""
        rows = [
            (taxonomy, concept, unit, row)
            for taxonomy, concepts in document["facts"].items()
            for concept, fact in concepts.items()
            for unit, of_unit in fact["units"].items()
            for row in of_unit
        ]
        last = max(row["filed"] for *_, row in rows)
        facts: dict[str, Any] = {}
        for taxonomy, concept, unit, row in rows:
            if row["filed"] == last and concept in ("Assets", "Revenues"):
                own = facts.setdefault(taxonomy, {}).setdefault(concept, {"units": {}})["units"]
                own.setdefault(unit, []).append(row)
        path = self._folder / name
        path.write_text(json.dumps({**document, "facts": facts}))
        if facts:
            self._facts[path] = str(last), document["entityName"]

    def _copy(self, day: str) -> Path:
        """The records of a day: those registered by then, without the changes that came later."""
        records = []
        for lei_, record in self._records.items():
            fields = json.loads(json.dumps(record))
            for change in self._changes:
                if change["lei"] == lei_ and str(change["date"])[:10] > day and (at := _undone(change)):
                    *outer, last = at
                    inner = fields["attributes"]
                    for name in outer:
                        inner = inner[name]
                    inner[last] = change["valueOld"]
            if fields["attributes"]["registration"]["initialRegistrationDate"][:10] <= day:
                records.append(fields)
        path = self._folder / f"{day.replace('-', '')}-0000-lei-records.json"
        path.write_text(json.dumps({"data": records}))
        return path

    def _parents(self, day: str) -> Path:
        rows = [
            relationship(
                one["relationship"]["startNode"]["id"],
                one["relationship"]["type"],
                one["relationship"]["endNode"]["id"],
                one["registration"]["lastUpdateDate"][:10],
                one["relationship"]["status"],
                one["registration"]["initialRegistrationDate"][:10],
            )
            for one in self._relations
            if one["registration"]["initialRegistrationDate"][:10] <= day
        ]
        return relationships(self._folder, day, *rows)

    def publish(self, home: Path, day: str) -> None:
        sets = self._folder / f"sets-{day}"
        statements_of(
            self._data / "fundamentals" / "sec-fsds", sets, in_part, ("Assets", "Revenues").__contains__, day
        )
        if copies := [one for one in self.copies if one <= day]:
            succeed(home, "ingest", "gleif-lei", *map(self._copy, copies))
            succeed(home, "ingest", "gleif-rr", *map(self._parents, copies))
        quarter = f"{day[:4]}q{(int(day[5:7]) + 2) // 3}.zip"
        quarters = [path for path in sorted(sets.iterdir()) if path.name <= quarter]
        succeed(home, "ingest", "sec-financial-statements", *quarters)
        documents = [path for path, (filed, _) in self._facts.items() if filed <= day]
        if documents:
            succeed(home, "ingest", "sec-companyfacts", *documents)
        succeed(home, "publish", "--despite-floors")

    def questions(self, chance: random.Random) -> list[str]:
        ids = [service_id(f"registry:US-SEC-CIK:{one:010}") for one in RENAMED]
        ids += [service_id(f"registry:US-SEC-CIK:{path.name[3:13]}") for path in [*self._facts][:8]]
        ids += [
            service_id(f"lei:{one}")
            for one in (*chance.sample(sorted(self._records), 6), *{c["lei"] for c in self._changes})
        ]
        paths = [f"/v1/entities/{one}{path}" for one in ids for path in ("", "/history")]
        paths += [f"/v1/crosswalk/{one}" for one in ids]
        paths += [f"/v1/crosswalk?id_type=registry&id_value={one:010}" for one in RENAMED]
        paths += [f"/v1/crosswalk?id_type=lei&id_value={one}" for one in sorted(self._records)[::6]]
        words = (
            "merck schering tyco ensco cooper burlington shell royal dutch best buy bed cameron corp inc plc"
        )
        paths += [f"/v1/search?q={word}" for word in words.split()]
        paths += [f"/v1/search?q={word}&country=US" for word in ("merck", "cooper", "best")]
        paths += ["/v1/issuers", *(f"/v1/issuers?country={one}" for one in ("US", "IE", "CH", "GB"))]
        return [*paths, "/v1/restatements", "/v1/sources", "/v1/coverage"]


RENAMED: Final = (833444, 934612, 310158, 1141982, 314808, 64978)
"""Registrants that data sets of 2009 and 2010 have under several names or in several countries."""
BOTH: Final = [
    f"fundamentals/companyfacts-2021/CIK{one:010}.json.gz" for one in (764478, 886158, 941548, 1053112)
]
"""Registrants in data sets and in companyfacts."""


def in_part(cik: int, _: str) -> bool:
    return cik % 3 == 0 or cik in RENAMED or any(f"{cik:010}" in one for one in BOTH)


_FIELDS: Final = {
    "Entity/lei:LegalName": ("entity", "legalName", "name"),
    "Entity/lei:LegalForm/lei:EntityLegalFormCode": ("entity", "legalForm", "id"),
    "Entity/lei:LegalJurisdiction": ("entity", "jurisdiction"),
    "Entity/lei:EntityCategory": ("entity", "category"),
    "Registration/lei:RegistrationStatus": ("registration", "status"),
    "Registration/lei:LastUpdateDate": ("registration", "lastUpdateDate"),
}


def _undone(change: dict[str, Any]) -> tuple[str, ...] | None:
    """The column of a changed field; None for a first value and for fields that no adapter reads."""
    name = str(change["field"]).partition("lei:LEIRecord/lei:")[2]
    return _FIELDS.get(name) if change["valueOld"] is not None else None


def _members(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text())["data"]
        yield from data if isinstance(data, list) else [data]


@pytest.mark.ci
@pytest.mark.rule("ENTY-9", "ENTY-11", "LOCK-5", "ISS-2")
def test_organisations_of_real_files_depend_only_on_the_files_up_to_the_day(
    tmp_path: Path, shared_data: Path
) -> None:
    chance = random.Random(36)
    folder = tmp_path / "files"
    folder.mkdir()
    files = RealFiles(folder, shared_data)
    whole = tmp_path / "whole"
    files.publish(whole, "2026-01-01")
    first, last = date(2009, 7, 31), date(2010, 6, 30)
    days = [str(first + timedelta(chance.randrange((last - first).days))) for _ in range(rounds(1, 3, 10))]
    days += chance.sample(files.copies, rounds(2, 4, len(files.copies)))
    with served(whole) as after:
        server, key = after
        rows = server.rows(f"/v1/entities/{service_id('lei:549300U8Y52MRCVNHF78')}/history", key)
        assert [(row["value"], row["from"], row["until"]) for row in rows if row["kind"] == "name"] == [
            ("BG 456 LIMITED", "2022-06-01", "2024-07-10"),  # the event was recorded on the day after
            ("SHELL QGC HOLDINGS LIMITED", "2024-07-11", None),
        ]
        for day in days:
            home = tmp_path / f"until-{day}"
            files.publish(home, day)
            for secret in whole.glob("*-secret"):
                shutil.copy(secret, home)
            with served(home) as then:
                compare(after, then, date.fromisoformat(day), files.questions(chance))
