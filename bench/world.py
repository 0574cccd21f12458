"""A world of three million facts, and the home into which it is ingested and published.

The files are companyfacts documents in bulk zips, as their publisher ships them. All data follows from the
number of an issuer, so every run on every machine measures the same data.
"""

import hashlib
import os
import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import sankofa
from sankofa.model.identifiers import cik, service_id
from sankofa.model.rows import FundamentalsRow

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "build" / "bench"
SANKOFA = str(Path(sys.executable).with_name("sankofa"))
SOURCE = "sec-companyfacts"
PAST_DAY = date(2021, 6, 30)
"""A day on which about half of the figures were known."""

_FLOWS = tuple(
    """Revenues CostOfRevenue GrossProfit OperatingIncomeLoss NetIncomeLoss IncomeTaxExpenseBenefit
    NetCashProvidedByUsedInOperatingActivities InterestExpense ProfitLoss PaymentsOfDividends
    DepreciationDepletionAndAmortization SellingGeneralAndAdministrativeExpense ShareBasedCompensation
    ResearchAndDevelopmentExpense ComprehensiveIncomeNetOfTax OtherNonoperatingIncomeExpense
    NetCashProvidedByUsedInInvestingActivities NetCashProvidedByUsedInFinancingActivities
    PaymentsToAcquirePropertyPlantAndEquipment RepaymentsOfLongTermDebt ProceedsFromIssuanceOfLongTermDebt
    IncreaseDecreaseInAccountsReceivable IncreaseDecreaseInInventories IncreaseDecreaseInAccountsPayable
    EarningsPerShareBasic EarningsPerShareDiluted OperatingLeaseCost AmortizationOfIntangibleAssets""".split()
)
_STOCKS = tuple(
    """Assets Liabilities StockholdersEquity CashAndCashEquivalentsAtCarryingValue AssetsCurrent
    LiabilitiesCurrent InventoryNet AccountsReceivableNetCurrent AccountsPayableCurrent LongTermDebtNoncurrent
    Goodwill RetainedEarningsAccumulatedDeficit""".split()
)
_MOST_OF_KNOWN_CONCEPTS = 2_000
_RECIPE = 1  # of the documents; another one, another folder
_YEAR_ENDS = ((12, 31), (6, 30), (3, 31), (9, 30))


class Shape(NamedTuple):
    """A kind of issuer: how many there are, and how many rows each answer has today."""

    name: str
    issuers: int
    rows: int
    first_cik: int

    def service_ids(self) -> list[str]:
        return [service_id(cik(self.first_cik + n)) for n in range(self.issuers)]


class Scale(NamedTuple):
    """How large a world is."""

    name: str
    shapes: tuple[Shape, ...]
    issuers_per_file: int = 2048


FULL = Scale("3m", (Shape("50 rows", 40_000, 50, 100_000), Shape("1,000 rows", 1_000, 1_000, 900_000)))
MEDIUM = Scale("300k", (Shape("50 rows", 4_000, 50, 100_000), Shape("1,000 rows", 100, 1_000, 900_000)))
SMALL = Scale("small", (Shape("50 rows", 400, 50, 100_000), Shape("1,000 rows", 20, 1_000, 900_000)))
FILERS = Scale("7m", (Shape("5,000 rows", 1_500, 5_000, 100_000),))
"""As 1,500 filers of the SEC: 7.5 million facts, 5,000 each."""
SCALES = {scale.name: scale for scale in (FULL, MEDIUM, SMALL, FILERS)}


class Period(NamedTuple):
    start: str
    end: str
    filed: str
    refiled: str
    frame: str
    accession: str
    reaccession: str
    form: str
    year: int
    part: str


def document(number: int, rows: int) -> bytes:
    """The companyfacts document of one issuer: as many facts as rows, one in twenty of them restated."""
    chance = random.Random(number)
    month, day = chance.choice(_YEAR_ENDS)
    lag = chance.randrange(40, 100)
    annual = rows <= 100
    flows, stocks = (_FLOWS[:7], _STOCKS[:3]) if annual else (_FLOWS, _STOCKS)
    if rows > _MOST_OF_KNOWN_CONCEPTS:  # the rest has concepts without a line item, as in real filings
        flows += tuple(
            f"OtherExpenseItem{n:03d}" for n in range(rows // 60 - len(_FLOWS) - len(_STOCKS) // 2)
        )
    each = rows // (len(flows) + len(stocks))
    flow_periods = _periods(
        number, month, day, lag, ("FY",) if annual else ("FY", "9M", "H1", "Q3", "Q2", "Q1")
    )
    stock_periods = _periods(number, month, day, lag, ("FY",) if annual else ("FY", "9M", "H1", "Q1"))
    concepts: dict[str, object] = {}
    for name in flows:
        unit = "USD/shares" if name.startswith("Earnings") else "USD"
        concepts[name] = _concept(chance, name, unit, flow_periods[:each], instant=False)
    for name in stocks:
        concepts[name] = _concept(chance, name, "USD", stock_periods[:each], instant=True)
    name = f"BENCHMARK {number} HOLDINGS INC"
    return msgspec.json.encode({"cik": number, "entityName": name, "facts": {"us-gaap": concepts}})


def _periods(number: int, month: int, day: int, lag: int, parts: tuple[str, ...]) -> list[Period]:
    """The newest periods first, each filed some weeks after its end and again a year later."""
    periods = []
    for year in range(2023, 2013, -1):
        year_end = date(year, month, day)
        for part in parts:
            quarters, length = {"FY": (4, 4), "9M": (3, 3), "H1": (2, 2)}.get(part) or (int(part[1]), 1)
            end = _months_before(year_end, 3 * (4 - quarters))
            start = _months_before(end, 3 * length) + timedelta(days=1)
            filed, again = end + timedelta(days=lag), end + timedelta(days=lag + 364)
            form = "10-K" if quarters == 4 else "10-Q"
            periods.append(
                Period(
                    start.isoformat(),
                    end.isoformat(),
                    filed.isoformat(),
                    again.isoformat(),
                    f"CY{end.year}" if length == 4 else f"CY{end.year}Q{(end.month + 2) // 3}",
                    f"{number:010d}-{filed:%y}-{filed.timetuple().tm_yday:06d}",
                    f"{number:010d}-{again:%y}-{again.timetuple().tm_yday:06d}",
                    form,
                    year,
                    part,
                )
            )
    return periods


def _months_before(day: date, months: int) -> date:
    """The last day of the month that many months earlier."""
    ordinal = day.year * 12 + day.month - months  # the month after, counted from zero
    return date(ordinal // 12, ordinal % 12 + 1, 1) - timedelta(days=1)


def _concept(chance: random.Random, name: str, unit: str, periods: list[Period], instant: bool) -> object:
    rows: list[dict[str, object]] = []
    for period in periods:
        value = _value(chance, unit)
        rows.append(_reported(period, value, period.filed, period.accession, instant))
        if chance.random() < 0.05:
            rows.append(_reported(period, _value(chance, unit), period.refiled, period.reaccession, instant))
    return {"label": name, "description": f"{name}, as the taxonomy words it.", "units": {unit: rows}}


def _value(chance: random.Random, unit: str) -> object:
    if unit != "USD":
        return chance.randrange(-500, 2_000) / 100
    return chance.randrange(-(10**8), 10**10) * 1000


def _reported(period: Period, value: object, filed: str, accession: str, instant: bool) -> dict[str, object]:
    return {
        **({} if instant else {"start": period.start}),
        "end": period.end,
        "val": value,
        "accn": accession,
        "fy": period.year,
        "fp": period.part,
        "form": period.form,
        "filed": filed,
        "frame": period.frame + ("I" if instant else ""),
    }


def files(scale: Scale) -> list[Path]:
    """The zips of a world; missing ones are written."""
    folder = CACHE / f"files-{scale.name}-{_RECIPE}"
    written = []
    for shape in scale.shapes:
        per_file = max(1, scale.issuers_per_file * 50 // shape.rows)
        for first in range(0, shape.issuers, per_file):
            numbers = range(shape.first_cik + first, shape.first_cik + min(first + per_file, shape.issuers))
            path = folder / f"companyfacts-{numbers[0]}.zip"
            if not path.exists():
                _write(path, ((f"CIK{n:010d}.json", document(n, shape.rows)) for n in numbers))
            written.append(path)
    return written


def _write(path: Path, documents: Iterator[tuple[str, bytes]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in documents:
            archive.writestr(name, content)
    partial.rename(path)


def published_home(scale: Scale, *, fresh: bool = False) -> Path:
    """A home with the world ingested and published by the real commands; kept between runs.

    A change of the code since then is reported but not acted on: making a home takes minutes.
    """
    home = CACHE / f"home-{scale.name}"
    stamp, code = home / "made-by", _code_digest()
    if stamp.exists() and not fresh:
        if stamp.read_text() != code:
            print(f"note: {home.name} was made by another state of the code; --fresh makes it again")
        return home
    if home.exists():
        shutil.rmtree(home)
    print(f"making {home.name}: ingest and publish, some minutes", flush=True)
    environment = environment_of(home)
    paths = [str(path) for path in files(scale)]
    subprocess.run([SANKOFA, "ingest", "--strict", SOURCE, *paths], env=environment, check=True)
    subprocess.run([SANKOFA, "publish"], env=environment, check=True)
    stamp.write_text(code)
    return home


def environment_of(home: Path) -> dict[str, str]:
    """The environment of commands: this home, and none of the caller's other settings. Modules are
    compiled once, as in an installation.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SANKOFA_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    return {**inherited, "SANKOFA_HOME": str(home)}


def _code_digest() -> str:
    package = Path(sankofa.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] in ("model", "sources", "ledger", "edition", "engines"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def reported(year: int, **own: Any) -> FundamentalsRow:
    """The figure of a full year as first reported, in dollars; `own` distinguishes it from others."""
    alike: dict[str, Any] = {
        "currency_reported": "USD",
        "unit": "USD",
        "period_start": date(year, 1, 1),
        "period_end": date(year, 12, 31),
        "period_type": "FY",
        "fiscal_year": year,
        "available_instant": None,
        "available_precision": "day",
        "tradable_from": None,
        "vintage": 1,
        "restated": False,
        "split_ratio": None,
        "superseded_at": None,
        "superseding_record_ref": None,
        "extraction_confidence": None,
        "method": "structured",
        "license_class": "public-domain",
        "observed_at": "2026-01-02T03:04:05Z",
    }
    return FundamentalsRow(**alike, **own)
