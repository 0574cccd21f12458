"""The published reports of an issuer: what is left out of them changes nothing that is told."""

import random
from datetime import date
from itertools import chain
from pathlib import Path

from sankofa.ledger.reports import Published, Report
from sankofa.model.days import ordinal
from sankofa.model.financial_years import YearEvidence
from sankofa.model.records import Fact
from sankofa.model.vintages import steps
from tests.world.desk import Desk

SUBJECTS = tuple(f"ticker:JSE:T{n}" for n in range(600))
DAYS = ("2021-03-01", "2022-03-01", "2023-03-01")


def random_facts(chance: random.Random, subject: str) -> list[Fact]:
    """Few figures on few days, so that they repeat, return, and meet on one day and in one document."""
    days = (*DAYS, "") if chance.random() < 0.2 else DAYS
    return [
        Fact(
            subject, chance.choice(("assets", "cash")), "USD", "", "2020-12-31", chance.choice(days),
            chance.choice("dde"), chance.choice(("9", "10", "10", "")), "p. 1",
            confidence=chance.choice(("", "", "0.9", "0.2")),
        )
        for _ in range(chance.randrange(1, 14))
    ]  # fmt: skip


def test_steps_are_those_of_every_published_row(tmp_path: Path) -> None:
    chance = random.Random(11)
    ledger = Desk(tmp_path, date(2024, 1, 1)).ledger()
    facts = {subject: random_facts(chance, subject) for subject in SUBJECTS}
    with ledger.capture("filings", "synthetic", "file", "0") as capture:
        for fact in chain.from_iterable(facts.values()):
            capture.fact(fact)
    captures = ledger.captures()
    restated = 0
    for first, second in zip(SUBJECTS[::2], SUBJECTS[1::2], strict=True):
        for subjects in ((first,), (first, second)):
            every: dict[str, dict[Fact, Report]] = {}
            for f in chain.from_iterable(facts[subject] for subject in subjects):
                if f.confidence != "0.2":
                    known = ordinal(f.available_at or captures[1].observed_at[:10])
                    every.setdefault(f.concept, {})[f] = Report(
                        f.value or None, known, f.available_at, f.subject, f.document, f.location,
                        f.confidence, 1, captures[1],
                    )  # fmt: skip
            found = Published(ledger, captures, subjects).reports()
            told = {concept: list(steps(reports)) for (concept, _, _, _), reports in found.items()}
            assert told == {concept: list(steps(list(rows.values()))) for concept, rows in every.items()}
            restated += sum(len(story) > 2 for story in told.values())
    assert restated > 100
    ledger.close()


def test_every_period_tells_the_issuers_year(tmp_path: Path) -> None:
    ledger = Desk(tmp_path, date(2024, 1, 1)).ledger()
    year = Fact(SUBJECTS[0], "revenue", "USD", "2020-01-01", "2020-12-31", "2021-03-01", "d", "1", "p. 1")
    instant = year._replace(concept="assets", period_start="", document="e")
    with ledger.capture("filings", "synthetic", "file", "0") as capture:
        for fact in (year, instant):
            capture.fact(fact)
    published = Published(ledger, ledger.captures(), SUBJECTS[:2])
    assert set(published.evidence()) == {
        YearEvidence(ordinal("2021-03-01"), ordinal("2020-01-01"), ordinal("2020-12-31")),
        YearEvidence(ordinal("2021-03-01"), None, ordinal("2020-12-31")),
    }
    ledger.close()
