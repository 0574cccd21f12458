"""The sample world as its files state it, read without the product."""

import csv
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from sankofa.model.identifiers import service_id
from tests.live import LiveServer
from tests.world.reference import FiledFigure

SAMPLE = Path(str(files("sankofa").joinpath("sample")))
TODAY = datetime.now(UTC).date()
NEVER_SERVED = (
    *("Zorblatt", "Quimbyson", "999900SAMPLEZA000383", "4242424242", "424242424"),
    *("86753096", "86753097", "Plinkett", "Vandersnoot"),
    # people in tenders
    *"Blenkina Trumpelwick Vuyolwetu Zanquebar Quorra Nettlefax Dzidzor Wapplestone Fennimore".split(),
    *"Gwaqqela Skhumbuza Wintlefrith Marzipandra Jellicoe Moyoko Bartholomeow Kwindigwe".split(),
    *"Snodgrimble Wilhelmina Fruitzky Tebogolina Sprockett 9912315999999 Zephyrina Mbokwazala".split(),
    *"Ignatius Plumbottomly Ochiengula Wabberwock Umarudin Glimmerfang".split(),
    *("000 555 0", "000-555-0", "@example.org"),
)
TENDER_COUNTRIES = ("ZA", "KE", "NG")
PERSON = service_id("lei:999900SAMPLEZA000383")
DAYS = (
    "2019-12-31",
    "2021-06-30",
    "2022-08-30",
    "2023-05-31",
    "2023-10-02",
    "2024-03-25",
    "2024-12-31",
    str(TODAY),
)
Rows = list[dict[str, Any]]


def lei_of(middle: str) -> str:
    """The LEI by its middle part, as the README names issuers."""
    with (SAMPLE / "lei" / "golden-copy.csv").open() as stream:
        (number,) = [row["LEI"] for row in csv.DictReader(stream) if row["LEI"][12:18] == middle]
    return number


def issuer(name: str) -> str:
    """The service_id of an issuer by the middle of its LEI or by its CIK."""
    return service_id(f"registry:US-SEC-CIK:{name}" if name.isdigit() else f"lei:{lei_of(name)}")


@cache
def reports_of(name: str) -> tuple[FiledFigure, ...]:
    """Every report of an issuer, read directly from the files of the sample."""
    return _from_companyfacts(name) if name.isdigit() else _from_filings(lei_of(name))


def _from_filings(lei: str) -> tuple[FiledFigure, ...]:
    reports = []
    for path in sorted((SAMPLE / "filings").glob("*.csv")):
        with path.open() as stream:
            reports += [
                FiledFigure(
                    row["line_item"],
                    row["currency"],
                    date.fromisoformat(row["period_start"]) if row["period_start"] else None,
                    date.fromisoformat(row["period_end"]),
                    row["document"],
                    Decimal(row["value"]) if row["value"] else None,
                    date.fromisoformat(row["available_at"]) if row["available_at"] else None,
                    TODAY,
                    Decimal(row["confidence"]) if row["confidence"] else None,
                )
                for row in csv.DictReader(stream)
                if row["entity"] == f"lei:{lei}"
            ]
    return tuple(reports)


def _from_companyfacts(number: str) -> tuple[FiledFigure, ...]:
    whole = json.loads((SAMPLE / "companyfacts" / f"CIK{number}.json").read_text(), parse_float=Decimal)
    return tuple(
        FiledFigure(
            f"{taxonomy}:{name}",
            unit,
            date.fromisoformat(row["start"]) if "start" in row else None,
            date.fromisoformat(row["end"]),
            row["accn"],
            Decimal(row["val"]),
            date.fromisoformat(row["filed"]),
            TODAY,
        )
        for taxonomy, concepts in whole["facts"].items()
        for name, concept in concepts.items()
        for unit, rows in concept["units"].items()
        for row in rows
        if taxonomy in ("us-gaap", "ifrs-full", "srt") or (taxonomy == "dei" and unit == "shares")
    )


ISSUERS = (
    "ZA0001 NG0001 KE0001 EG0001 GH0001 MA0001 BW0001 CI0001 TZ0001 MU0001 SN0001 ZM0001 NG0002 "
    "9999900001 9999900002 9999900003".split()
)


class Reader:
    """A client that parses figures exactly."""

    def __init__(self, server: LiveServer, key: str) -> None:
        self._server = server
        self._key = key

    def body(self, path: str) -> str:
        answer = self._server.get(path, self._key)
        assert answer.status_code == 200, answer.text
        return answer.text

    def rows(self, name: str, **query: str) -> Rows:
        text_query = "&".join(f"{key}={value}" for key, value in query.items())
        text = self.body(f"/v1/fundamentals/{issuer(name)}?{text_query}")
        whole = json.loads(text, parse_int=Decimal, parse_float=Decimal)
        assert not whole["truncated"]
        return list(whole["data"])

    def figures(self, name: str, line_item: str, period_end: str, **query: str) -> list[Decimal | None]:
        """The vintages of one figure, oldest first."""
        query.setdefault("vintages", "all")
        vintages = [
            row
            for row in self.rows(name, **query)
            if line_item in (row["line_item"], row["concept"]) and row["period_end"] == period_end
        ]
        return [row["value_reported"] for row in vintages]


@pytest.fixture(scope="module")
def reader(server: LiveServer, paid_key: str) -> Reader:
    return Reader(server, paid_key)
