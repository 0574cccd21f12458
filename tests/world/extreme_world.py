"""Random worlds of values that are extreme and accepted, as files of every kind."""

import csv
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.spec.register import COLUMNS, lei, record

TODAY = datetime.now(UTC).date()
FIRST = date(1800, 1, 1)
LAST = TODAY.replace(year=TODAY.year + 30, day=min(TODAY.day, 28))
SOURCES = """
[sources.portal]
adapter = "ocds"
sku = "AF-TENDER"
country = "ZA"
license_class = "open-government"
commercial_redistribution = true

[sources.rates]
adapter = "series-csv"
sku = "AF-MACRO"
license_class = "cc-by"
commercial_redistribution = true

[sources.tables]
adapter = "worldbank"
sku = "AF-MACRO"
license_class = "cc-by"
commercial_redistribution = true
"""
ISSUERS = [f"lei:{lei(stem)}" for stem in ("ALPHA", "BETA", "GAMMA")]
CIK = 9999900777
_ITEMS = (
    *("revenue", "profit", "assets", "equity", "liabilities", "cash", "cost_of_sales", "operating_profit"),
    *("current_assets", "current_liabilities", "inventories", "capex", "an_item_of_their_own"),
)
_INSTANTS = (
    "assets",
    "equity",
    "liabilities",
    "cash",
    "current_assets",
    "current_liabilities",
    "inventories",
)
_CONCEPTS = ("Revenues", "ProfitLoss", "Assets", "StockholdersEquity", "Liabilities", "SomethingElse")
_CURRENCIES = ("ZAR", "XAU", "XTS", "CLF", "JPY", "")
_UNITS = ("USD", "USD/shares", "pure", "\u202eUSD", "kWh\u2066", "u" * 120)
SERIES = (
    *(("CPI.ZA", "cpi", "monthly"), ("FX.USD.ZAR", "fx", "daily"), ("FX.USD.XAU", "fx", "daily")),
    *(("FX.EUR.ZAR.H10", "fx", "weekly"), ("A" + "-" * 63, "x" * 32, "quarterly"), ("0", "gdp", "annual")),
)
_NAMES = (
    "Sankofa \u202elatipaC\u202c Holdings Ltd",
    "\u200f\u2067شركة\u2069 Trading PLC",
    "N" * 280 + " Limited",
    "A\u0301\u0300\u0327\u200d\U0001f9ff Bank Limited",
    "  Blanks \u00a0\u3000 between   PLC ",
)
_MONTHS = [f"2025-{month:02}-15" for month in range(1, 13)]
_TEXTS = (
    *(
        "",
        " ",
        "\u202e\u2066\u200b",
        "\x00\x01\x1b[31m\x7f\x85",
        "line\r\nline\u2028line\u2029",
        "%s{}{{0}}$",
    ),
    *("<script>&\"'</script>", "x" * 200_000, "word " * 5_000, "-1", "\ufffe\uffff\U0010ffff", "'; --"),
)
_NUMBERS = (
    *("0", "-0", "-0.0", "1e60", "-1e60", "1e-60", "-1e-60", "9" * 61, "-" + "9" * 61),
    *("1." + "3" * 300, "0." + "0" * 59 + "7" * 241, "-5", "1", "100", "0.1"),
)

numbers = st.sampled_from(_NUMBERS) | st.integers(-(10**60), 10**60).map(str)
texts = st.sampled_from(_TEXTS) | st.text(max_size=40).filter(lambda text: "\ud800" not in text)


def days(last: date = LAST) -> st.SearchStrategy[str]:
    """Days of the range that is accepted, often at its ends."""
    ends = (
        FIRST,
        FIRST + timedelta(1),
        date(1900, 2, 28),
        date(2000, 2, 29),
        TODAY,
        last - timedelta(1),
        last,
    )
    return (st.sampled_from([day for day in ends if day <= last]) | st.dates(FIRST, last)).map(str)


@st.composite
def periods(draw: st.DrawFn) -> tuple[str, str]:
    """The start and end of an instant, a day, a year, 30 years, or everything."""
    end = date.fromisoformat(draw(days()))
    length = draw(st.sampled_from((None, 0, 90, 181, 364, 365, 10_957, 10**5)))
    if length is None:
        return "", end.isoformat()
    return max(FIRST, end - timedelta(length)).isoformat(), end.isoformat()


class World(NamedTuple):
    """The files of a world, by source: name and content."""

    files: dict[str, tuple[str, str]]

    def __repr__(self) -> str:
        return str({source: content[:2_000] for source, (_, content) in self.files.items()})

    def write(self, folder: Path) -> list[tuple[str, Path]]:
        written = []
        for source, (name, content) in self.files.items():
            path = folder / name
            path.write_text(content, newline="")
            written.append((source, path))
        return written


def _table(header: str, rows: Sequence[Sequence[str]]) -> str:
    lines: list[str] = []

    class Lines:
        def write(self, line: str) -> None:
            lines.append(line)

    csv.writer(Lines(), lineterminator="\n").writerows([header.split(","), *rows])
    return "".join(lines)


_FILINGS = "entity,line_item,value,currency,period_start,period_end,available_at,document,location"
_filings = st.lists(
    st.builds(
        lambda entity, item, value, money, period, known, document: [
            *(entity, item, value, money, *period, known, document, "p. 1")
        ],
        st.sampled_from((*ISSUERS, "ticker:JSE:XTR")),
        st.sampled_from(_ITEMS),
        numbers,
        st.sampled_from(_CURRENCIES),
        periods(),
        days(TODAY),
        st.sampled_from(("afs", "\u202esfa", "d" * 300)),
    ),
    min_size=1,
    max_size=25,
)


@st.composite
def _statements(draw: st.DrawFn) -> list[list[str]]:
    """Full years of one issuer, one after the other, from which metrics can be computed."""
    last = draw(st.sampled_from((FIRST.year + 1, 1900, 2001, TODAY.year - 1)))
    money, known = draw(st.sampled_from(_CURRENCIES)), draw(days(TODAY))
    return [
        [
            *(ISSUERS[0], item, draw(numbers), money),
            *("" if item in _INSTANTS else f"{year}-01-01", f"{year}-12-31", max(known, f"{year + 1}-03-31")),
            *("afs", "p. 2"),
        ]
        for year in (last - 1, last)
        for item in _ITEMS
    ]


_figures = st.builds(
    lambda period, value, filed, number: {
        **({"start": period[0]} if period[0] else {}),
        "end": period[1],
        "val": value,
        "accn": f"0000000000-24-{number:06}",
        "filed": filed,
    },
    periods(),
    st.integers(-(10**60), 10**60),
    days(TODAY),
    st.integers(1, 3),
)
_concepts = st.dictionaries(
    st.sampled_from(_CONCEPTS),
    st.dictionaries(
        st.sampled_from(_UNITS), st.lists(_figures, min_size=1, max_size=4), min_size=1, max_size=2
    ),
    min_size=1,
)
_SERIES_COLUMNS = "series,series_type,frequency,country,date,value,unit,release_date"
_ORDINARY = [*SERIES[0], "ZA", "2020-01-01", "1", "", ""]
_values = st.lists(
    st.builds(
        lambda series, place, day, value, unit, known: [*series, place, day, value, unit, known],
        st.sampled_from(SERIES),
        st.sampled_from(("", "ZA", "XK")),
        days(TODAY),
        numbers | st.just(""),
        st.sampled_from(("", "index", "\u202e%\u202c", "u" * 100)),
        days(TODAY) | st.just(""),
    ),
    min_size=1,
    max_size=40,
)
_points = st.lists(
    st.tuples(st.sampled_from(("ZAF", "NGA")), st.integers(FIRST.year, TODAY.year), numbers),
    min_size=1,
    max_size=30,
)


@st.composite
def _registers(draw: st.DrawFn) -> str:
    """Organisations that succeed each other, themselves or nobody."""
    numbers_of = [issuer.removeprefix("lei:") for issuer in ISSUERS]
    rows = [
        record(
            number,
            draw(st.sampled_from(_NAMES)),
            draw(st.sampled_from(("ZA", "NG", "XK"))),
            draw(st.sampled_from(("", "RA990300:1", "RA990300:2"))),
            successor=draw(st.sampled_from(("", *numbers_of))),
            also=draw(st.sampled_from(("", *_NAMES))),
        )
        for number in numbers_of
    ]
    return "\n".join((COLUMNS, *rows, ""))


@st.composite
def _links(draw: st.DrawFn) -> str:
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from((*ISSUERS, "ticker:JSE:XTR")),
                st.sampled_from(("ticker", "registry", "aggregator")),
                st.sampled_from(("JSE:XTR", "JSE:YYY", "42", "9" * 40)),
                st.sampled_from(("ZA-CIPC", "opencorporates")),
                st.sampled_from(("", *ISSUERS, "ticker:JSE:XTR")),
            ),
            min_size=1,
            max_size=8,
        )
    )
    found = [[e, t, v, "" if t == "ticker" and ":" in v else r, s] for e, t, v, r, s in rows]
    ordinary = [ISSUERS[0], "ticker", "JSE:ALP", "", ""]
    return _table("entity,id_type,id_value,registry,successor", [ordinary, *found])


def _money(amount: str, currency: str) -> dict[str, Any]:
    return {"amount": float(amount) if abs(float(amount)) < 1e15 else amount, "currency": currency}


@st.composite
def _release(draw: st.DrawFn, number: int) -> dict[str, Any]:
    ocids = [f"ocds-x-{n}" for n in range(3)] + ["ocds-\u202ex/ %3F#?&" + "o" * 100]
    span = st.fixed_dictionaries({"startDate": days(), "endDate": days(), "durationInDays": st.integers()})
    amounts = st.builds(_money, numbers, st.sampled_from(("ZAR", "XTS", "XAU", "NOPE")))
    buyer = {"id": "b", "name": draw(st.sampled_from(("City of Zebra Municipality", *_NAMES)))}
    supplier = {"id": "s", "name": draw(st.sampled_from(_NAMES)), "roles": ["supplier"]}
    return {
        "ocid": draw(st.sampled_from(ocids)),
        "id": f"r{number}",
        "date": draw(days(TODAY) | st.sampled_from(_MONTHS))
        + draw(st.sampled_from(("", "T23:59:59Z", "T00:00:00.000001+00:00"))),
        "tag": draw(st.lists(texts, max_size=3)),
        "buyer": buyer,
        "parties": [{**buyer, "roles": ["buyer"]}, supplier],
        "tender": {
            "id": "1",
            "title": draw(texts),
            "description": draw(texts),
            "category": draw(texts),
            "status": draw(texts),
            "value": draw(amounts),
            "tenderPeriod": draw(span),
            "contractPeriod": draw(span),
        },
        "awards": draw(
            st.lists(
                st.fixed_dictionaries(
                    {
                        "id": st.sampled_from(("1", "2")),
                        "date": days(),
                        "value": amounts,
                        "suppliers": st.just([{"id": "s", "name": supplier["name"]}]),
                        "contractPeriod": span,
                    }
                ),
                max_size=2,
            )
        ),
        "relatedProcesses": [
            {
                "id": "1",
                "relationship": ["parent"],
                "scheme": "ocid",
                "identifier": draw(st.sampled_from(ocids)),
            }
        ],
    }


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One file of each source."""
    facts: dict[str, Any] = {
        "cik": CIK,
        "entityName": draw(st.sampled_from(_NAMES)),
        "facts": {"us-gaap": {name: {"units": units} for name, units in draw(_concepts).items()}},
    }
    ordinary = {"end": "2020-12-31", "val": 1, "accn": "0000000000-21-000001", "filed": "2021-03-01"}
    facts["facts"]["dei"] = {"EntityCommonStockSharesOutstanding": {"units": {"shares": [ordinary]}}}
    page = [
        {"indicator": {"id": "X.Y", "value": "\u202eX"}, "country": {"id": code}, "countryiso3code": code,
         "date": str(year), "value": value}
        for code, year, value in draw(_points)
    ]  # fmt: skip
    releases = [draw(_release(number)) for number in range(draw(st.integers(1, 8)))]
    return World(
        {
            "gleif-lei": ("lei.csv", draw(_registers())),
            "identifiers": ("identifiers.csv", draw(_links())),
            "filings": ("filings.csv", _table(_FILINGS, [*draw(_statements()), *draw(_filings)])),
            "sec-companyfacts": (f"CIK{CIK}.json", json.dumps(facts)),
            "rates": ("rates.csv", _table(_SERIES_COLUMNS, [_ORDINARY, *draw(_values)])),
            "tables": ("page.json", json.dumps([{"page": 1}, page])),
            "portal": ("releases.json", json.dumps({"version": "1.1", "releases": releases})),
        }
    )
