"""The indicators of red flags, by the inputs and outputs of Cardinal's own tests (`cardinal/README.md`)."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from sankofa.edition.format.flag_steps import flag_record, group_fences, party_record, thresholds
from sankofa.edition.write.flag_steps import FlagSteps, FlagSweep
from sankofa.model.ocds.flag_facts import examine
from sankofa.model.ocds.process_facts import ProcessFacts, Reading
from sankofa.model.ocds.red_flags import INDICATORS, ProcessReleases, ReleaseFacts, Thresholds, quantile
from tests.every import every

CARDINAL = Path(__file__).parent / "cardinal"
DAY = 739_000
CODES = sorted(path.stem for path in CARDINAL.glob("*.jsonl"))
GROUPS = {"process": "OCID", "buyer": "Buyer", "procuring_entity": "ProcuringEntity", "tenderer": "Tenderer"}


def _process(line: str) -> ProcessReleases:
    release = ReleaseFacts(
        DAY, "2024-04-24T00:00:00Z", "portal:f#1", "cc-by", "", msgspec.Raw(line.encode()), {}
    )
    return ProcessReleases(json.loads(line)["ocid"], [release])


def _sweep(lines: Iterable[str]) -> tuple[FlagSteps, Thresholds]:
    """The stored records of some processes, and the thresholds of their day."""
    sweep = FlagSweep(fewest_processes=1)
    for line in lines:
        sweep.add(_process(line))
    stored = sweep.close()
    ((_, _, encoded),) = stored.days
    limits = thresholds(encoded)
    limits.groups.update({group: group_fences(rows[-1][2]) for group, rows in stored.groups})
    return stored, limits


def _flags(stored: FlagSteps, limits: Thresholds) -> Iterator[Reading]:
    parties = dict(stored.parties)
    for _, _, row in stored.flags:
        record = flag_record(row)
        party, steps = parties.get(record.subject), record.steps_on(DAY, limits, record.all_steps())
        if steps and (flag := record.flag(steps, DAY, limits, party_record(party) if party else None)):
            yield flag.finding


@pytest.mark.rule("FLAG-1")
@every("indicator", CODES)
def test_flags_are_those_of_cardinal(indicator: str) -> None:
    lines = (CARDINAL / f"{indicator}.jsonl").read_text().splitlines()
    admitted = [line for line in lines if '"NPC"' not in line and '"EXC"' not in line]
    stored, limits = _sweep(admitted)
    results: defaultdict[str, dict[str, dict[str, float | None]]] = defaultdict(dict)
    for one in _flags(stored, limits):
        if one.indicator == indicator:
            results[GROUPS[one.subject_type]][one.subject] = {indicator: one.value}
    assert results == json.loads((CARDINAL / f"{indicator}.expected").read_text())
    assert limits.population == len(admitted)


@pytest.mark.rule("FLAG-2")
@every("indicator", CODES)
def test_every_indicator_of_a_process_is_there_and_says_why_it_cannot_be_computed(indicator: str) -> None:
    lines = (CARDINAL / f"{indicator}.jsonl").read_text().splitlines()
    stored, limits = _sweep(lines)
    parties = {key: party_record(record).inputs_on(DAY) for key, record in stored.parties}
    flagged = {(one.indicator, one.subject_type, one.subject) for one in _flags(stored, limits)}
    for line in lines:
        facts = msgspec.json.decode(line, type=ProcessFacts)
        process = examine(json.loads(line)["ocid"], facts, every=True)
        findings = list(limits.of_process(process, parties.__getitem__))
        assert {finding.indicator for finding in findings} == set(INDICATORS)
        for one in findings:
            assert (one.flagged is None) == bool(one.reason), one
            assert not one.flagged or (one.indicator, one.subject_type, one.subject) in flagged


def test_quantiles_are_of_the_type_that_cardinal_uses() -> None:
    assert quantile([1.0], 0.25) == 1
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.25) == pytest.approx(17 / 12)
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.75) == pytest.approx(43 / 12)
