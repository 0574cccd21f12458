"""The indicators of red flags, by the inputs and outputs of Cardinal's own tests (`cardinal/README.md`)."""

import json
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from sankofa.edition.format.flag_steps import flag_record, party_record, thresholds
from sankofa.edition.write.flag_steps import FlagSweep
from sankofa.model.ocds.flag_facts import ProcessFacts, examine
from sankofa.model.ocds.red_flags import INDICATORS, ProcessReleases, ReleaseFacts, quantile
from tests.every import every
from tests.flag_population import Population

CARDINAL = Path(__file__).parent / "cardinal"
DAY = 739_000
GROUPS = {"process": "OCID", "buyer": "Buyer", "procuring_entity": "ProcuringEntity", "tenderer": "Tenderer"}


def _process(line: str) -> ProcessReleases:
    release = ReleaseFacts(
        DAY, "2024-04-24T00:00:00Z", "portal:f#1", "cc-by", "", msgspec.Raw(line.encode()), {}
    )
    return ProcessReleases(json.loads(line)["ocid"], [release])


@pytest.mark.rule("FLAG-1")
@every("indicator", INDICATORS)
def test_flags_are_those_of_cardinal(indicator: str) -> None:
    sweep = FlagSweep(fewest_processes=1)
    lines = (CARDINAL / f"{indicator}.jsonl").read_text().splitlines()
    admitted = [line for line in lines if '"NPC"' not in line and '"EXC"' not in line]
    for line in admitted:
        sweep.add(_process(line))
    stored = sweep.close()
    ((_, _, limits),) = stored.days
    results: defaultdict[str, dict[str, dict[str, float | None]]] = defaultdict(dict)
    for _, _, row in stored.flags:
        record = flag_record(row)
        party = dict(stored.parties).get(record.subject)
        steps = record.steps_on(DAY, thresholds(limits))
        flag = steps and record.flag(steps, DAY, thresholds(limits), party_record(party) if party else None)
        if flag and record.indicator == indicator:
            results[GROUPS[record.subject_type]][record.subject] = {indicator: flag.finding.value}
    assert results == json.loads((CARDINAL / f"{indicator}.expected").read_text())
    assert thresholds(limits).population == len(admitted)


@pytest.mark.rule("FLAG-2")
@every("indicator", INDICATORS)
def test_every_indicator_of_a_process_is_there_and_says_why_it_cannot_be_computed(indicator: str) -> None:
    lines = (CARDINAL / f"{indicator}.jsonl").read_text().splitlines()
    population = Population(map(_process, lines), DAY, fewest=1)
    flagged = {(one.indicator, one.subject_type, one.subject) for one in population.findings}
    for line in lines:
        facts = msgspec.json.decode(line, type=ProcessFacts)
        process = examine(json.loads(line)["ocid"], facts, every=True)
        findings = list(population.limits.of_process(process, population.parties.__getitem__))
        assert {finding.indicator for finding in findings} == set(INDICATORS)
        for one in findings:
            assert (one.flagged is None) == bool(one.reason), one
            assert not one.flagged or (one.indicator, one.subject_type, one.subject) in flagged


def test_quantiles_are_of_the_type_that_cardinal_uses() -> None:
    assert quantile([1.0], 0.25) == 1
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.25) == pytest.approx(17 / 12)
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.75) == pytest.approx(43 / 12)
