import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sankofa.derive.issuers import Issuer
from sankofa.derive.series import MacroColumn, MacroMetadata
from sankofa.derive.signals.contract import Observation, Panel, panels
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import load_declarations
from sankofa.model.days import FOREVER
from sankofa.model.rows import wire
from tests.spec.register import lei
from tests.world.desk import Desk

TODAY = date(2024, 11, 15)
ALPHA, BETA = lei("ALPHA"), lei("BETA")
PERSON = "Quentin Zebulon Marchbanks"
SERIES = "series,series_type,frequency,country,date,value,unit,release_date\n"
Rows = list[dict[str, Any]]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", TODAY)


def observations(panel: Panel, context: BuildContext) -> Iterator[Observation]:
    """The rows of a panel over a whole ledger."""
    if panel.of == "issuer":
        issuers = (Issuer(entity, context.ledger, context.captures) for entity in context.entities)
        yield from (one for issuer in issuers if issuer.reports for one in panel.observe(issuer))
    elif panel.of == "series":
        metadata = MacroMetadata(context.ledger)
        for code, rows in context.ledger.stored_series():
            for series in MacroColumn(code, "", rows, metadata, context.captures).series:
                yield from panel.observe(series, context.captures)
    else:
        yield from panel.observe(context)


def observed(desk: Desk, key: str, as_known_on: date | None = None) -> Rows:
    """The rows of today; with `basis=as_known`, those of a day."""
    load_declarations()
    ledger = desk.ledger()
    day = FOREVER - 1 if as_known_on is None else as_known_on.toordinal()
    try:
        every = observations(panels()[key], BuildContext(ledger))
        rows = [wire.encode(o.row) for o in every if o.seen_from <= day < o.until]
    finally:
        ledger.close()
    return [json.loads(row, parse_int=Decimal, parse_float=Decimal) for row in rows]


def take(desk: Desk, source: str, name: str, content: str) -> None:
    path = desk.inbox / name
    path.write_text(content)
    summary = desk.take(source, path)
    assert summary.failures == []


def tenders(desk: Desk, *releases: dict[str, Any], name: str = "releases.json") -> None:
    take(desk, "za-etenders", name, json.dumps({"releases": releases}))


def release(
    ocid: str, day: str, *awards: tuple[Any, ...], buyer: str = "Ministry of Health"
) -> dict[str, Any]:
    """Awards are (id, winners, amount, currency, status)."""
    return {
        "ocid": ocid,
        "id": f"{ocid}-{day}",
        "date": day,
        "tag": ["award"],
        "buyer": {"name": buyer},
        "tender": {"category": "Works"},
        "awards": [
            {
                "id": award_id,
                "status": status,
                "suppliers": [{"name": winner} for winner in winners],
                "value": {"amount": amount, "currency": currency},
            }
            for award_id, winners, amount, currency, status in awards
        ],
    }


def won(
    award_id: str, *winners: str, amount: Any = None, currency: str = "ZAR", status: str = "active"
) -> Any:
    return award_id, winners, amount, currency, status


def figure(
    number: str, item: str, value: object, year: int, public: str = "", money: str = "ZAR"
) -> list[str]:
    """A row of the filings template: an instant for a balance, else the calendar year."""
    start = "" if item in ("assets",) else f"{year}-01-01"
    public = public or f"{year + 1}-03-31"
    name = f"afs-{public}"
    return [f"lei:{number}", item, str(value), money, start, f"{year}-12-31", public, name, "p. 1", ""]
