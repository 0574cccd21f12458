"""Matching by name: how often a name leads to the right organisation, to a wrong one, or to none.

    python -m bench.matching [--shared FOLDER]

The labelled sets come from real files that are not part of this project. No name is printed.

- `held`: each LEI record is looked up by its own name. A name that several of a country have leads to nobody.
- `absent`: each LEI record is removed, and its name looked up: any match is wrong. This is the worst case for
  a register without the party; LEI records of one company that occur twice count as wrong.
- `tenders`: parties of OCDS releases that have an identifier. The first name with an identifier is stored;
  every other document with the identifier is looked up by its name alone, and then only those that write the
  name differently.
- `filers`: SEC registrants with an LEI record, looked up by the name in their filings among all LEI records.
  These pairs were originally chosen because their names agree, so this recall is flattering.
"""

import argparse
import csv
import gzip
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.history import report
from bench.world import ROOT
from sankofa.ledger.entities import Claim, Entity, Statement
from sankofa.ledger.matching import PartyMatcher, normalised
from sankofa.model.records import Profile
from sankofa.settings import Settings

SHARED = ROOT.parent / "shared"
THRESHOLD = Settings().match_threshold / 100
Records = dict[str, tuple[str, str]]
"""The country and the name of each LEI."""


class Score(NamedTuple):
    """Right, wrong and unresolved names."""

    right: int
    wrong: int
    unresolved: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.matching")
    parser.add_argument("--shared", type=Path, default=SHARED)
    shared = parser.parse_args().shared
    older = lei_records(shared / "data" / "identifiers" / "gleif_names.csv")
    newer = lei_records(shared / "starter" / "identifiers" / "lei-africa.csv.gz")
    abroad = lei_records(shared / "starter" / "identifiers" / "lei-issuers-abroad.csv")
    records = {**older, **newer, **abroad}
    print(f"{len(records)} LEI records")
    _report("LEI records by their own names", score_of_own_names(records))
    share = sum(absent(records)) / len(records)
    report("names that are not held and lead to somebody else", share * 100, unit="%")
    every, respelled = tenders(shared / "data" / "ocds")
    _report("parties of real tenders by name alone", every)
    _report("parties whose name is written differently", respelled)
    _report("SEC registrants by the name in their filings", filers(shared / "starter", records))


def _report(what: str, reached: Score) -> None:
    matched, total = reached.right + reached.wrong, sum(reached)
    if matched:
        report(f"{what}, precision", reached.right / matched, least=0.99)
    if total:
        report(f"{what}, recall", reached.right / total)


def lei_records(path: Path) -> Records:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    rows = csv.DictReader(io.StringIO(text))
    return {row["LEI"]: (row["Entity.LegalAddress.Country"], row["Entity.LegalName"]) for row in rows}


def score_of_own_names(records: Records) -> Score:
    """Every record looked up by its own name."""
    matcher = matcher_of(records)
    return score(
        (matcher.match(name, country, ()).service_id, lei) for lei, (country, name) in records.items()
    )


def matcher_of(records: Records) -> PartyMatcher:
    entities = [entity(lei, country, name, lei) for lei, (country, name) in records.items()]
    return PartyMatcher(entities, threshold=THRESHOLD)


def absent(records: Records) -> Iterator[bool]:
    """Whether the name of each record would lead to another one without it."""
    holders: defaultdict[tuple[str, str], int] = defaultdict(int)
    keys = [(country, normalised(name)) for country, name in records.values()]
    for key in keys:
        holders[key] += 1
    for key in keys:
        yield holders[key] == 2  # without it one holder is left; of several none is chosen


def tenders(folder: Path) -> tuple[Score, Score]:
    """Scores of all further documents with an identifier, and of those that write the name differently."""
    first: dict[tuple[str, ...], str] = {}
    further: list[tuple[tuple[str, ...], str]] = []
    for path in sorted(folder.rglob("*.json")):
        country = path.relative_to(folder).parts[0]
        for scheme, number, name in dict.fromkeys(identified_parties(read_json(path))):
            key = (country, scheme, number)
            if key in first:
                further.append((key, name))
            first.setdefault(key, name)
    entities = [entity("|".join(key), key[0], name) for key, name in first.items()]
    matcher = PartyMatcher(entities, threshold=THRESHOLD)
    answers = [
        (name == first[key], matcher.match(name, key[0], ()).service_id, "|".join(key))
        for key, name in further
    ]
    every = score((matched, expected) for _, matched, expected in answers)
    return every, score((matched, expected) for same, matched, expected in answers if not same)


def identified_parties(content: Any) -> Iterator[tuple[str, str, str]]:
    """(scheme, number, name) of every organisation with an identifier, in any field."""
    if isinstance(content, list):
        for one in content:
            yield from identified_parties(one)
    elif isinstance(content, dict):
        identifier, name = content.get("identifier"), content.get("name")
        if isinstance(identifier, dict) and isinstance(name, str) and name.strip():
            number = str(identifier.get("id") or "").strip()
            if number:
                yield str(identifier.get("scheme") or ""), number, name
        for one in content.values():
            yield from identified_parties(one)


def filers(folder: Path, records: Records) -> Score:
    matcher = matcher_of(records)
    answers = []
    with (folder / "identifiers" / "cik-lei.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            number = row["entity"].rpartition(":")[2]
            path = folder / "filings" / "companyfacts" / f"CIK{number}.json.gz"
            country, _ = records.get(row["id_value"], ("", ""))
            if path.exists() and country:
                name = json.loads(gzip.decompress(path.read_bytes()))["entityName"]
                answers.append((matcher.match(name, country, ()).service_id, row["id_value"]))
    return score(answers)


def entity(service_id: str, country: str, name: str, lei: str = "") -> Entity:
    profile = Profile(legal_name=name, country=country)
    claims = [Claim(f"lei:{lei}", "", 1)] if lei else []
    return Entity(service_id, (), (), 1, [Statement(service_id, "bench", profile, 1)], claims)


def score(answers: Iterable[tuple[str | None, str]]) -> Score:
    right = wrong = unresolved = 0
    for matched, expected in answers:
        right += matched == expected
        wrong += matched not in (None, expected)
        unresolved += matched is None
    return Score(right, wrong, unresolved)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None


if __name__ == "__main__":
    main()
