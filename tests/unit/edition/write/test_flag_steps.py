"""Red flags as a build stores them are those of the oracle, which compares the processes of one day."""

from array import array
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec
import pytest

from sankofa.derive.tenders import Tender, Tenders
from sankofa.edition.format.flag_steps import Flag, flag_record, party_record, thresholds
from sankofa.edition.format.visibility import visible
from sankofa.edition.write.derived_parts import CountryFlags
from sankofa.edition.write.flag_steps import FlagSteps, FlagSweep, rounded
from sankofa.ledger.reader import CaptureInfo, ReleaseRow
from sankofa.model.ocds.red_flags import FlagFacts, PartyInputs, ProcessReleases, ReleaseFacts
from sankofa.model.ocds.release import ReleaseSummary
from sankofa.model.rows import wire
from tests.flag_population import Population
from tests.torture import rounds

FIRST = date(2025, 3, 20).toordinal()
DAYS = 20
FEWEST = 2


World = list[ProcessReleases]


def _party(number: int) -> dict[str, Any]:
    return {"id": f"p{number}", "name": f"Firm {number} Ltd"}


def _facts(chance: Random) -> dict[str, Any]:
    def some(count: int) -> dict[str, Any]:
        return _party(min(chance.randrange(count), chance.randrange(count)))

    def bid() -> dict[str, Any]:
        value = {
            "amount": chance.choice([100, 110, 112, 115, 120, 130, 400]),
            "currency": chance.choice(["ZAR"] * 9 + ["USD"]),
        }
        status = chance.choice(["valid"] * 8 + ["disqualified", "withdrawn"])
        dated = {"date": f"2025-0{chance.randint(1, 2)}-05T00:00:00Z"} if chance.random() < 0.3 else {}
        return {"status": status, "tenderers": [some(14)], "value": value, **dated}

    bids = [bid() for _ in range(chance.randrange(5))]
    winner = min(bids, key=lambda one: one["value"]["amount"])["tenderers"] if bids else [some(14)]
    item = {"classification": {"id": chance.choice("1111111222345")}}
    award = {"status": "active", "suppliers": winner, "items": [item]}
    end = chance.choice(["2025-01-10T00:00:00Z", "2025-02-01T00:00:00Z"])
    return {
        "tender": {
            "title": chance.choice(["Roads", "Beer"]),
            "status": chance.choice(["active"] * 9 + ["cancelled"]),
            "procurementMethod": "open",
            "numberOfTenderers": chance.randint(1, 3),
            "tenderPeriod": {"startDate": "2025-01-01T00:00:00Z", "endDate": end},
            "procuringEntity": some(5),
        },
        "buyer": some(5),
        "bids": {"details": bids},
        "awards": [award] if chance.random() < 0.8 else None,
    }


def _world(chance: Random) -> World:
    return [_process(chance, number) for number in range(chance.choice([10, 40, 80]))]


def _process(chance: Random, number: int) -> ProcessReleases:
    releases = []
    for day in sorted(chance.sample(range(DAYS), chance.randint(1, 3))):
        released = f"{date.fromordinal(FIRST + day)}T00:00:00Z"
        source = f"portal:f{day % 3}.json#/releases/{number}", "cc-by", f"2026-01-0{1 + day % 3}"
        service_ids: dict[str, str] = chance.choice([{}, {"p1": "DC1"}, {"p1": "DC2", "p2": "DC3"}])
        raw = msgspec.Raw(msgspec.json.encode(_facts(chance)))
        releases.append(ReleaseFacts(FIRST + day, released, *source, raw, service_ids))
    return ProcessReleases(f"ocds-{number:03}", releases)


def flags_on(stored: FlagSteps, day: int, field: str = "", text: str = "") -> list[Flag]:
    """The stored flags of a day: all, or those about one buyer or supplier."""
    parties = dict(stored.parties)
    numbers = set(range(len(stored.flags)))
    if field:
        triples = array("i", {(f, t): own for f, t, own in stored.filters}.get((field, text), b""))
        spans = zip(triples[::3], triples[1::3], triples[2::3], strict=True)
        numbers = {number for number, first, until in spans if visible(first, until, day)}
    flags = []
    for limits in [thresholds(one) for first, until, one in stored.days if visible(first, until, day)]:
        for number, (first, until, row) in enumerate(stored.flags):
            record = flag_record(row)
            if number in numbers and visible(first, until, day) and (steps := record.steps_on(day, limits)):
                party = parties.get(record.subject)
                flag = record.flag(steps, day, limits, party_record(party) if party else None)
                flags += [flag] if flag else []
    return flags


def _served(flags: list[Flag]) -> list[Any]:
    """Flags as rows show them."""
    return [
        (
            *(one.indicator, one.subject_type, one.subject, one.value, one.threshold, subject),
            msgspec.json.decode(
                wire.encode({n: rounded(v) if type(v) is float else v for n, v in one.inputs.items()})
            ),
        )
        for one, subject in flags
    ]


@pytest.mark.rule("FLAG-3")
def test_stored_flags_of_any_day_are_those_of_its_population() -> None:
    seen: set[tuple[str, str]] = set()
    for seed in range(rounds(40, 40, here=12)):
        chance = Random(seed)
        processes = _world(chance)
        sweep = FlagSweep(FEWEST)
        for process in processes:
            sweep.add(process)
        stored = sweep.close()
        for day in [FIRST + chance.randint(-1, DAYS + 3), *stored.quarters]:
            oracle = Population(processes, day, FEWEST)
            seen |= {(one.indicator, one.subject_type) for one in oracle.findings}
            _compare(stored, oracle, day, chance.randrange(5))
    by_process = {("R024", "R028", "R030", "R035", "R058"): ("process", "tenderer")}
    kinds = {(one, kind) for own, types in by_process.items() for one in own for kind in types}
    kinds |= {(one, "process") for one in ("R003", "R018", "R036")}
    kinds |= {(one, "tenderer") for one in ("R025", "R038", "R048")}
    assert seen == kinds | {("R038", "buyer"), ("R038", "procuring_entity")}


def _compare(stored: FlagSteps, oracle: Population, day: int, party: int) -> None:
    assert _served(flags_on(stored, day)) == _served(oracle.flags())
    for text in (f"p{party}", f"firm {party} ltd", "dc1"):
        assert _served(flags_on(stored, day, "buyer", text)) == _served(oracle.flags(buyer=text))
        assert _served(flags_on(stored, day, "supplier", text)) == _served(oracle.flags(supplier=text))
    for key, record in stored.parties:
        known = oracle.parties.get(key) or PartyInputs((0, 0), {}, (0, 0, []))
        own = party_record(record).inputs_on(day)
        bids = {kind: pair for kind, pair in own.bids.items() if any(pair)}
        assert own._replace(bids=bids) == known
    if counts := stored.quarters.get(day):
        assert counts.population == len(oracle.processes)
        assert +Counter(counts.computed) == +oracle.computed
        flagged = {(one, kind): n for one, own in counts.flagged.items() for kind, n in own.items()}
        assert flagged == Counter((one.indicator, one.subject_type) for one in oracle.findings)


class _Tenders:
    """A release in each of two countries."""

    countries = ("KE", "ZA")

    def __init__(self, **titles: str) -> None:
        self._titles = titles

    def of(self, country: str) -> Iterator[Tender]:
        row = ReleaseRow("ocds-1", "1", "2025-01-02T00:00:00Z", country, "#/1", "", "", "", 1)
        facts = msgspec.json.encode({"tender": {"title": self._titles[country]}})
        yield Tender(row, cast("ReleaseSummary", None), [], flag_facts=FlagFacts(facts, {}))


def test_a_country_without_a_new_release_is_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps: list[FlagSweep] = []

    class Counted(FlagSweep):
        def __init__(self) -> None:
            super().__init__()
            sweeps.append(self)

    monkeypatch.setattr("sankofa.edition.write.derived_parts.FlagSweep", Counted)
    capture = CaptureInfo("portal", "2026-01-01T00:00:00Z", "cc-by", "f.json", "0" * 64)
    for title, expected in (("Beer", 2), ("Beer", 2), ("Roads", 3)):
        tenders = cast("Tenders", _Tenders(KE="Beer", ZA=title))
        flags = CountryFlags(tenders, {1: capture}, tmp_path / "flags")
        assert len(sweeps) == expected
        assert flags.quarters("KE") == flags.quarters("ZA")
