"""A world with data in every dataset, for the tests of /v1/shared/facts."""

import json
import random
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from tests.live import LiveServer, succeed
from tests.spec.ingesting import source_entry
from tests.spec.register import BANK, BREWER, COLUMNS, record, sid

SOURCES = "".join(
    source_entry(f"tenders-{code}", "ocds", country=code.upper(), license_class="open-government")
    for code in ("za", "ke")
)
LEIS = "\n".join(
    [
        COLUMNS,
        record(BREWER, "Thornveld Breweries (Pty) Ltd", "ZA", "RA990300:2001/000777/07"),
        record(BANK, "First Marula Bank Plc", "NG", "RA990200:RC 4411"),
    ]
)
# The ticker is known before the LEI of the same organisation, so its id is the older one.
TICKER, LEI_ID, BANK_ID = sid("ticker:JSE:THV"), sid(f"lei:{BREWER}"), sid(f"lei:{BANK}")
IDENTIFIERS = f"entity,id_type,id_value,registry\nlei:{BREWER},ticker,JSE:THV,\n"
FILINGS = (
    "entity,line_item,value,currency,period_start,period_end,available_at,document,location,confidence\n"
    "ticker:JSE:THV,revenue,100,ZAR,2022-01-01,2022-12-31,2023-03-01,a,p. 1,0.9\n"
    "ticker:JSE:THV,revenue,110,ZAR,2022-01-01,2022-12-31,2023-06-01,b,p. 2,\n"
    "ticker:JSE:THV,profit,9007199254740993.25,ZAR,2022-01-01,2022-12-31,2023-03-01,a,p. 1,0.9\n"
    "ticker:JSE:THV,revenue,120,ZAR,2023-01-01,2023-12-31,2024-03-01,c,p. 1,\n"
    "ticker:JSE:THV,dividends_paid,0,ZAR,2023-01-01,2023-12-31,2024-03-01,c,p. 1,\n"
)
TABLE = """\
Country Name,Country Code,Year,Value
South Africa,ZAF,2021,420886900000
South Africa,ZAF,2022,406920000000.10
Nigeria,NGA,2021,440833635000
"""
SERIES = """\
series,series_type,frequency,country,date,value,unit,release_date
CPI.ZA,cpi,monthly,ZA,2022-12-31,100,index,2023-01-18
CPI.ZA,cpi,monthly,ZA,2022-12-31,101,index,2023-02-18
CPI.ZA,cpi,monthly,ZA,2023-01-31,102,index,2023-02-18
CPI.ZA,cpi,quarterly,ZA,2022-12-31,99,index,2023-01-20
NY.GDP.MKTP.CD,gdp,annual,ZA,2022-12-31,7,USD,2023-05-01
NY.GDP.MKTP.CD,gdp,annual,ZA,2020-12-31,6,USD,2021-05-01
"""
RATES = "Date,USD,ZAR,XOF\n2023-01-03,1.05,18.2,655.957\n2023-01-02,1.06,18.1,655.957\n"


class Award(NamedTuple):
    """An award in a release; winners by their key in `PARTIES`."""

    id: str
    day: str | None
    status: str
    amount: str | None
    currency: str
    winners: tuple[str, ...]


class TenderRelease(NamedTuple):
    country: str
    ocid: str
    id: str
    instant: str
    amount: str | None
    currency: str | None
    awards: tuple[Award, ...]

    @property
    def day(self) -> str:
        return self.instant[:10]


PARTIES: dict[str, dict[str, Any]] = {
    "brewer": {"name": "Thornveld Breweries (Pty) Ltd", "identifier": {"scheme": "XI-LEI", "id": BREWER}},
    "bank": {"name": "First Marula Bank Plc", "identifier": {"scheme": "XI-LEI", "id": BANK}},
    "other": {"name": "Unheard Of Supplies (Pty) Ltd"},
}


def releases() -> list[TenderRelease]:
    """Amounts that change, return, are zero or missing, in two currencies, some on one day or instant."""
    chance = random.Random(11)
    drawn = []
    for number in range(30):
        day = date(2022, 1, 1) + timedelta(days=chance.randrange(60))
        for part in range(chance.choice((1, 2, 4, 7))):
            hour = chance.choice((0, 9))
            awards = tuple(
                Award(
                    f"A{n}",
                    chance.choice((None, str(day - timedelta(days=3)), str(day))),
                    chance.choice(("active", "active", "active", "cancelled")),
                    chance.choice(("10", "10.0", "20", "0", None)),
                    chance.choice(("ZAR", "ZAR", "USD")),
                    tuple(chance.sample(sorted(PARTIES), chance.choice((1, 1, 2)))),
                )
                for n in range(chance.choice((0, 1, 2)))
            )
            drawn.append(
                TenderRelease(
                    "KE" if number % 10 == 0 else "ZA",
                    f"ocds-test-{number:03}",
                    f"{part}",
                    f"{day}T{hour:02}:00:00Z",
                    chance.choice(("500", "500.00", "1e3", "9007199254740993.25", "0", None)),
                    chance.choice(("ZAR", "ZAR", "USD", None)),
                    awards,
                )
            )
            day += timedelta(days=chance.choice((0, 0, 1, 5)))
    return drawn


RELEASES = releases()


def as_ocds(row: TenderRelease) -> dict[str, Any]:
    def value(amount: str | None, currency: str | None) -> dict[str, Any]:
        number = None if amount is None else float(amount) if len(amount) < 10 else Decimal(amount)
        return {"amount": number, "currency": currency}

    return {
        "ocid": row.ocid, "id": row.id, "date": row.instant, "tag": ["award"], "language": "en",
        "initiationType": "tender",
        "parties": [{"id": key, "roles": ["supplier"], **party} for key, party in PARTIES.items()],
        "tender": {"id": row.ocid, "title": "Beer", "value": value(row.amount, row.currency)},
        "awards": [
            {
                "id": award.id, "status": award.status, "value": value(award.amount, award.currency),
                "suppliers": [{"id": key, "name": PARTIES[key]["name"]} for key in award.winners],
                **({"date": f"{award.day}T00:00:00Z"} if award.day else {}),
            }
            for award in row.awards
        ],
    }  # fmt: skip


def lines(rows: Sequence[TenderRelease]) -> str:
    """JSON Lines with exact figures."""
    texts = []
    for one in rows:
        text = json.dumps(as_ocds(one), default=lambda number: f"<{number}>")
        texts.append(text.replace('"<', "").replace('>"', ""))
    return "\n".join(texts) + "\n"


def files(order: Sequence[TenderRelease] = RELEASES, parts: int = 2) -> list[tuple[str, str, str]]:
    """(source, file name, content); each country's releases are split over so many files."""
    contents = [
        ("filings", "filings.csv", FILINGS),
        ("gleif-lei", "lei.csv", LEIS),
        ("identifiers", "identifiers.csv", IDENTIFIERS),
        ("worldbank", "ny.gdp.mktp.cd.csv", TABLE),
        ("series", "series.csv", SERIES),
        ("ecb-fx", "rates.csv", RATES),
    ]
    for country in ("za", "ke"):
        own = [row for row in order if row.country == country.upper()]
        for part in range(parts):
            contents.append((f"tenders-{country}", f"{country}-{part}.jsonl", lines(own[part::parts])))
    return contents


def serve(folder: Path) -> Iterator[LiveServer]:
    """A server of a HOME with the files ingested and published."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    (home / "sources.toml").write_text(SOURCES)
    for source, name, content in files():
        (folder / name).write_text(content)
        succeed(home, "ingest", source, folder / name)
    succeed(home, "publish")
    with LiveServer(home, per_minute_sample="100000", per_month_sample="1000000") as server:
        yield server


# The expected rows, from a replay of what was public by a day; no product code.


def _latest(story: list[tuple[str, str, Decimal | None, Any]]) -> tuple[int, tuple[Any, ...]] | None:
    """The number of the last vintage and the report that began it; a history is (day, order, value, rest)."""
    figures: list[tuple[Any, ...]] = []
    for telling in sorted(story, key=lambda t: t[:2]):
        if (figures or telling[2] is not None) and (not figures or figures[-1][2] != telling[2]):
            figures.append(telling)
    return (len(figures), figures[-1]) if figures and figures[-1][2] is not None else None


def tender_values(country: str, day: str) -> list[tuple[Any, ...]]:
    """(currency, value, available_at, period_end, vintage) of a country's tenders, newest release first."""
    stories: dict[tuple[str, str], list[Any]] = {}
    for release in RELEASES:
        if release.country == country and release.day <= day and release.amount not in (None, "0"):
            story = stories.setdefault((release.ocid, release.currency or ""), [])
            story.append((release.day, (release.instant, release.id), Decimal(release.amount or ""), release))
    latest_rows = []
    for (ocid, currency), story in stories.items():
        if latest := _latest(story):
            number, (first, _, value, release) = latest
            sort_key = (release.instant, ocid, release.id)
            latest_rows.append((sort_key, (currency or None, value, first, first, str(number))))
    latest_rows.sort(key=lambda one: one[0][1:])
    latest_rows.sort(key=lambda one: one[0][0], reverse=True)
    return [row for _, row in latest_rows]


def awards_won(winner: str, day: str) -> list[tuple[Any, ...]]:
    """(currency, value, available_at, period_end, vintage) of the awards to a party, newest release first."""
    stories: dict[tuple[str, str, str], list[Any]] = {}
    for release in RELEASES:
        for position, award in enumerate(release.awards):
            if winner in award.winners and release.day <= day and award.amount not in (None, "0"):
                value = None if award.status == "cancelled" else Decimal(award.amount or "")
                story = stories.setdefault((release.ocid, award.id, award.currency), [])
                story.append((release.day, (release.instant, release.id, position), value, (release, award)))
    latest_rows = []
    for identity, story in stories.items():
        if latest := _latest(story):
            number, (first, _, value, (release, award)) = latest
            row = (award.currency, value, first, award.day or first, str(number))
            latest_rows.append(((release.instant, *identity), row))
    latest_rows.sort(key=lambda one: one[0][1:])
    latest_rows.sort(key=lambda one: one[0][0], reverse=True)
    return [row for _, row in latest_rows]
