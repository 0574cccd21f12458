"""Issuers with twenty years of filings and a hundred facts a year, to derive metrics from.

Each year has 25 full-year figures that metrics use, the same again as comparatives a year later (one in
twenty restated), and 50 quarterly figures that only determine the issuer's year. Everything follows from the
number of an issuer. The facts go directly into a ledger, without adapters: another benchmark measures ingest.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from sankofa.engines.datastore import open_datastore
from sankofa.ledger.store import SCHEMA, Ledger
from sankofa.model.identifiers import cik
from sankofa.model.records import EntityRecord, Fact, Profile

FLOWS = tuple(
    "us-gaap:" + name
    for name in """Revenues CostOfRevenue GrossProfit OperatingIncomeLoss DepreciationDepletionAndAmortization
    InterestExpense IncomeTaxExpenseBenefit ProfitLoss NetIncomeLoss
    IncomeLossFromContinuingOperationsBeforeIncomeTaxesExtraordinaryItemsNoncontrollingInterest
    NetCashProvidedByUsedInOperatingActivities PaymentsToAcquirePropertyPlantAndEquipment
    PaymentsOfDividends""".split()
)
STOCKS = tuple(
    "us-gaap:" + name
    for name in """Assets AssetsCurrent CashAndCashEquivalentsAtCarryingValue AccountsReceivableNetCurrent
    InventoryNet Liabilities LiabilitiesCurrent AccountsPayableCurrent Goodwill
    DebtLongtermAndShorttermCombinedAmount StockholdersEquity Deposits""".split()
)
QUARTERLY = 50
YEARS = 20
PER_YEAR = 2 * (len(FLOWS) + len(STOCKS)) + QUARTERLY
_GROSS = FLOWS[2]
_FIRST_YEAR = 2004
_FIRST_CIK = 500_000
SECRET = "bench" * 8
SCREENED = ("us-gaap:Revenues", "us-gaap:ProfitLoss", "us-gaap:Assets")
"""Inputs of four of the metrics."""
Make = Callable[[Path], None]
_COUNTRIES = ("ZA", "NG", "KE", "EG", "MA", "GH", "TZ", "CI")


def subject(number: int) -> str:
    return str(cik(_FIRST_CIK + number))


def now() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def facts(number: int, *, only: Sequence[str] = (), changed: int | None = None) -> Iterator[Fact]:
    """Every figure of one issuer, or the full-year ones of some concepts; `changed` restates one of them."""
    chance = random.Random(number)
    month, day = chance.choice(((12, 31), (6, 30), (3, 31)))
    lag = timedelta(days=chance.randrange(40, 120))
    own = subject(number)
    start = end = date(_FIRST_YEAR, month, day)
    for year in range(_FIRST_YEAR, _FIRST_YEAR + YEARS):
        end = date(year, month, day)
        start = date(year - 1, month, day) + timedelta(days=1)
        filed, again = end + lag, end + lag + timedelta(days=364)
        first, second = f"{number:010d}-{year % 100:02d}-000001", f"{number:010d}-{year % 100:02d}-900001"
        figures: dict[str, str] = {}
        for concept in only or (*FLOWS, *STOCKS):
            begin = start.isoformat() if concept in FLOWS else ""
            figure = str(chance.randrange(10**6, 10**11))
            if concept == _GROSS:  # otherwise the filing would contradict itself and have no gross margin
                figure = str(int(figures[FLOWS[0]]) - int(figures[FLOWS[1]]))
            figures[concept] = figure
            yield Fact(own, concept, "USD", begin, str(end), str(filed), first, figure, concept)
            if chance.random() < 0.05 and concept not in FLOWS[:3]:
                figure = str(chance.randrange(10**6, 10**11))
            yield Fact(own, concept, "USD", begin, str(end), str(again), second, figure, concept)
        for part in range(0 if only else QUARTERLY):
            quarter = end - timedelta(days=round(91.3 * (1 + part % 3)))
            begin = "" if part % 2 else str(quarter - timedelta(days=90))
            concept = (*FLOWS, *STOCKS)[part // 3]
            filed_then = str(quarter + lag)
            figure = str(chance.randrange(10**6, 10**10))
            yield Fact(own, concept, "USD", begin, str(quarter), filed_then, first, figure, f"q{part}")
    if changed is not None:
        yield Fact(own, FLOWS[0], "USD", start.isoformat(), str(end), "2025-12-01", "z", str(changed), "z")


def fill(home: Path, issuers: range, *, only: Sequence[str] = (), changed: int | None = None) -> None:
    """Put the facts of issuers into the ledger of a home, as one capture."""
    home.mkdir(parents=True, exist_ok=True)
    store = open_datastore("sqlite:", home, SCHEMA)
    ledger = Ledger(store, SECRET.encode(), now)
    with ledger.capture("sec-companyfacts", "public-domain", "bench", "0" * 64) as capture:
        for number in issuers:
            country = _COUNTRIES[number % len(_COUNTRIES)]
            profile = Profile(f"Benchmark {number} Plc", country=country, identifiers=(subject(number),))
            capture.entity(EntityRecord(subject(number), "", profile))
            for fact in facts(number, only=only, changed=changed):
                capture.fact(fact)
    ledger.close()
