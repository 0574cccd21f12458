"""Random tender releases, and procurement-demand computed from the rules alone: no product code.

For every day, releases dated later are dropped, and the months are computed from scratch.
"""

import random
from calendar import monthrange
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

COUNTRIES = {"ZA": "za-etenders", "PY": "py-dncp"}
CATEGORIES = ("Works: roads & bridges", "Supplies: Medical", "Services|IT", "obras públicas", None)
PERSON = "Quentin Zebulon Marchbanks"
BUYERS = (
    {"name": "Department of Water and Roads"},
    {"name": "Thornveld City Council"},
    {"name": "THORNVELD  CITY COUNCIL"},  # the same, written differently
    {"name": "Karoo Water Board"},
    {"name": "Ministry of Health"},
)
SUPPLIERS = ("Kgosi Road Builders (Pty) Ltd", "Maputo Bridge Works Limited", "Karoo Water Board", PERSON)
TODAY = datetime.now(UTC).date()
_TEN = Context(prec=10, rounding=ROUND_HALF_EVEN)
Release = dict[str, Any]
Row = tuple[str, str, str, str, int, Decimal, Decimal | None, Decimal | None, Decimal]


def releases(country: str, seed: int, months: int = 20, first: date = date(2024, 1, 1)) -> list[Release]:
    """Tenders over some months, with several releases each, some at the edges of months."""
    chance = random.Random(seed)
    rows = []
    days = months * 30
    for number in range(months * 9):
        ocid = f"ocds-{country.lower()}-{number}"
        moment = datetime.combine(first, time()) + timedelta(
            days=chance.randrange(days), hours=chance.choice((0, 11, 23))
        )
        for step in range(chance.choice((1, 1, 1, 2, 3, 4))):
            if step:
                moment += timedelta(days=chance.choice((0, 0, 5, 31)), hours=chance.choice((0, 1)))
            if chance.random() < 0.3:  # at the edge of a month
                last = monthrange(moment.year, moment.month)[1]
                moment = moment.replace(day=last, hour=23, minute=30)
            rows.append(_release(chance, ocid, f"r{chance.randrange(10**6)}-{step}", moment))
    # In the open month, unless today is its last day.
    rows.append(_release(chance, f"ocds-{country.lower()}-now", "now", datetime.combine(TODAY, time())))
    chance.shuffle(rows)
    return rows


def _release(chance: random.Random, ocid: str, release_id: str, moment: datetime) -> Release:
    spelled = chance.choice(
        (
            moment.isoformat() + "Z",
            moment.isoformat(),
            moment.replace(tzinfo=timezone(timedelta(hours=chance.choice((-5, 2))))).isoformat(),
            f"{moment.isoformat()}.{chance.choice(('25', '500'))}Z",
            moment.date().isoformat(),
        )
    )
    tender: dict[str, Any] = {"id": ocid, "title": "A tender"}
    if category := chance.choice(CATEGORIES):
        tender["category"] = category
    if chance.random() < 0.7:
        tender["value"] = {"amount": chance.choice((0, 12.5, 1_000_000)), "currency": "ZAR"}
    winners = [s for s in SUPPLIERS if chance.random() < 0.2]
    awards = [{"id": "a1", "suppliers": [{"name": s} for s in winners], "value": tender.get("value")}]
    buyer = {"name": PERSON} if chance.random() < 0.01 else chance.choice(BUYERS)
    return {
        "ocid": ocid,
        "id": release_id,
        "date": spelled,
        "tag": ["tender"],
        "initiationType": "tender",
        "buyer": buyer,
        "tender": tender,
        **({"awards": awards} if chance.random() < 0.4 else {}),
    }


def released(release: Release) -> datetime:
    """The instant of a release; without a zone it is UTC."""
    when = datetime.fromisoformat(release["date"])
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def last_day(month: str) -> date:
    year, number = int(month[:4]), int(month[5:])
    return date(year, number, monthrange(year, number)[1])


def demand(reported: Iterable[Release], country: str, as_of: date) -> list[Row]:
    """The rows of a country under an as_of, in the order they are served."""
    months: dict[str, dict[str, Release]] = {}
    for release in reported:
        when = released(release)
        if when.date() > as_of:
            continue
        by_ocid = months.setdefault(f"{when:%Y-%m}", {})
        current = by_ocid.get(release["ocid"])
        if current is None or (when, release["id"]) < (released(current), current["id"]):
            by_ocid[release["ocid"]] = release
    rows = []
    for month in sorted(months, reverse=True):
        if last_day(month) > as_of:
            continue
        tenders = list(months[month].values())
        counts = Counter(r["tender"].get("category") for r in tenders)
        for category in sorted(filter(None, counts)):
            own = [r for r in tenders if r["tender"].get("category") == category]
            valued = sum(bool(r["tender"].get("value", {}).get("amount")) for r in own)
            rows.append(
                (
                    country,
                    category,
                    month,
                    last_day(month).isoformat(),
                    len(own),
                    ten(Fraction(len(own), len(tenders))),
                    _hhi(own),
                    _momentum(months, month, category),
                    ten(Fraction(valued, len(own))),
                )
            )
    return rows


def _hhi(own: list[Release]) -> Decimal | None:
    names = Counter(" ".join(r["buyer"]["name"].lower().split()) for r in own)
    if PERSON.lower() in names:
        return None
    return ten(sum((Fraction(n, len(own)) ** 2 for n in names.values()), Fraction()))


def _momentum(months: dict[str, dict[str, Release]], month: str, category: str) -> Decimal | None:
    window = [month]
    for _ in range(5):
        window.append(f"{last_day(window[-1]).replace(day=1) - timedelta(days=1):%Y-%m}")
    if window[-1] < min(months):
        return None
    counts = [
        sum(r["tender"].get("category") == category for r in months.get(m, {}).values()) for m in window
    ]
    before = sum(counts[3:])
    return ten(Fraction(sum(counts[:3]), before) - 1) if before else None


def ten(value: Fraction) -> Decimal:
    return _TEN.divide(Decimal(value.numerator), Decimal(value.denominator))
