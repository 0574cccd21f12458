"""The indicators of red flags, by the inputs and outputs of Cardinal's own tests (`cardinal/README.md`)."""

import asyncio
import json
from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import cast

import msgspec
import pytest

from sankofa.edition.read import flags
from sankofa.edition.read.edition import Edition
from sankofa.model.errors import InvalidParameter
from sankofa.model.ocds.flag_facts import ProcessFacts, examine
from sankofa.model.ocds.red_flags import INDICATORS, Population, quantile
from tests.every import every

CARDINAL = Path(__file__).parent / "cardinal"
GROUPS = {"process": "OCID", "buyer": "Buyer", "procuring_entity": "ProcuringEntity", "tenderer": "Tenderer"}


@pytest.mark.rule("FLAG-1")
@every("indicator", INDICATORS)
def test_flags_are_those_of_cardinal(indicator: str) -> None:
    population = Population(fewest_processes=1)
    lines = (CARDINAL / f"{indicator}.jsonl").read_text().splitlines()
    admitted = [line for line in lines if '"NPC"' not in line and '"EXC"' not in line]
    for line in admitted:
        population.add(examine(json.loads(line)["ocid"], msgspec.json.decode(line, type=ProcessFacts)))
    population.close()
    results: defaultdict[str, dict[str, dict[str, float | None]]] = defaultdict(dict)
    for finding in population.findings:
        if finding.indicator == indicator:
            results[GROUPS[finding.subject_type]][finding.subject] = {indicator: finding.value}
    assert results == json.loads((CARDINAL / f"{indicator}.expected").read_text())
    assert population.count == len(admitted)


@pytest.mark.rule("FLAG-2")
@every("indicator", INDICATORS)
def test_every_indicator_of_a_process_is_there_and_says_why_it_cannot_be_computed(indicator: str) -> None:
    processes = [
        examine(json.loads(line)["ocid"], msgspec.json.decode(line, type=ProcessFacts), every=True)
        for line in (CARDINAL / f"{indicator}.jsonl").read_text().splitlines()
    ]
    population = Population(fewest_processes=1)
    for process in processes:
        population.add(process)
    population.close()
    flagged = {(one.indicator, one.subject_type, one.subject) for one in population.findings}
    for process in processes:
        findings = list(population.of_process(process))
        assert {finding.indicator for finding in findings} == set(INDICATORS)
        for one in findings:
            assert (one.flagged is None) == bool(one.reason), one
            assert not one.flagged or (one.indicator, one.subject_type, one.subject) in flagged


def test_quantiles_are_of_the_type_that_cardinal_uses() -> None:
    assert quantile([1.0], 0.25) == 1
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.25) == pytest.approx(17 / 12)
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.75) == pytest.approx(43 / 12)


@pytest.mark.rule("FLAG-4")
def test_a_population_too_large_to_compute_with_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "MOST_RELEASES", 2)

    class Tenders:
        """Three releases on one day."""

        async def numbers(self, *_: str, **__: bool) -> list[int]:
            return [date(2025, 1, 1).toordinal(), 0, 0, 3]

    with pytest.raises(InvalidParameter, match="ZA has more than 2 releases by 2025-06-30"):
        asyncio.run(flags.flags_on(cast("Edition", Tenders()), "ZA", date(2025, 6, 30)))
