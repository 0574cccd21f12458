"""The SEC's data API: companyfacts, companyconcept, frames, submissions and the list of tickers.

A registrant is an organisation whose crosswalk has a CIK. Each vintage of a figure is an entry, `filed` on
the day it became public. Filing an unchanged figure again adds no entry.
"""

import asyncio
import io
import re
from datetime import date, timedelta
from typing import Final, NamedTuple

import msgspec

from sankofa.dialects.contract import JSON, Dialect, DialectQuestion, DialectReply, DialectRequest, Row
from sankofa.edition.format.issuer_pages import COMPANY_FACTS, company_facts_on, concepts_on
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.errors import InvalidParameter, NotFound, Problem
from sankofa.model.identifiers import SEC_CIK, cik
from sankofa.operations.nearest import identified
from sankofa.operations.parameters import MOST_MATCHES

_FACTS: Final = "af-fund-fundamentals"
"""The table that maps a concept to the issuers that reported it."""
_DOCUMENT: Final = re.compile(r"[^:]*:([^#@]*)")
"""The accession number in a source_ref, such as `sec-companyfacts:0001835632-24-000012#us-gaap:Revenues`."""
_FRAME: Final = re.compile(r"CY(\d{4})(?:Q([1-4])(I?))?\Z")
"""The period of a frame, such as `CY2019`, `CY2019Q1` or `CY2019Q1I`."""
_BEFORE_END: Final = {"year": 180, "quarter": 45}
"""Days before its end on which a period is in the calendar period that the SEC counts it as."""
_LENGTHS: Final = {"year": (321, 395), "quarter": (47, 121)}
"""The fewest and the most days of a period that the SEC counts as a calendar period."""
_encode = msgspec.json.Encoder(decimal_format="number").encode


class Registrant(NamedTuple):
    number: int
    name: str
    tickers: tuple[str, ...]


async def answer(question: DialectQuestion) -> DialectReply:
    parts = question.request.path.split("/")
    match [part.removesuffix(".json") for part in parts]:
        case ["api", "xbrl", "companyfacts", registrant]:
            return await _company_facts(question, registrant)
        case ["api", "xbrl", "companyconcept", registrant, taxonomy, tag]:
            return await _company_concept(question, registrant, taxonomy, tag)
        case ["api", "xbrl", "frames", taxonomy, tag, unit, period]:
            return await _frame(question, taxonomy, tag, unit, period)
        case ["files", "company_tickers"]:
            return await _tickers(question)
        case ["submissions", registrant]:
            return await _submissions(question, registrant)
    raise NotFound("No such path; expected api/xbrl/companyfacts, companyconcept and frames, submissions.")


def refuse(problem: Problem, request: DialectRequest) -> DialectReply:
    body = {"code": problem.slug, "message": problem.detail, **problem.members}
    return DialectReply(_encode(body), JSON, problem.status)


async def _registrant(question: DialectQuestion, text: str) -> tuple[str, int, str]:
    """The service_id, the CIK as a number and the name of `CIK0001835632`. Raises NotFound."""
    try:
        number = cik(text.upper().removeprefix("CIK")).value
    except ValueError:
        raise NotFound(f"No registrant {text[:40]!r}: expected CIK and ten digits.") from None
    question.call.grant.requires_paid("A lookup by registry")
    matches = await identified(question.call, number, ("registry",), MOST_MATCHES)
    own = next((one for one in matches if one.scheme == SEC_CIK), None)
    if own is None:
        raise NotFound(f"No registrant with CIK {number}.")
    return own.service_id, int(number), own.legal_name or ""


async def _company_facts(question: DialectQuestion, registrant: str) -> DialectReply:
    service_id, number, name = await _registrant(question, registrant)
    block = await question.call.edition.index_block(COMPANY_FACTS, service_id)
    facts = b"{}" if block is None else company_facts_on(block, question.call.today.toordinal())
    body = b'{"cik":%d,"entityName":%b,"facts":%b}' % (number, _encode(name), facts)
    return DialectReply(body, JSON)


async def _company_concept(
    question: DialectQuestion, registrant: str, taxonomy: str, tag: str
) -> DialectReply:
    service_id, number, name = await _registrant(question, registrant)
    block = await question.call.edition.index_block(COMPANY_FACTS, service_id)
    known = () if block is None else concepts_on(block, question.call.today.toordinal())
    own = [one for one in known if (one.taxonomy, one.tag) == (taxonomy, tag)]
    if not own:
        raise NotFound(f"{name} reported no {taxonomy}:{tag}.")
    head = {"cik": number, "taxonomy": taxonomy, "tag": tag, "entityName": name, "label": own[0].label}
    units = {one.unit: msgspec.Raw(one.figures) for one in own}
    return DialectReply(_encode({**head, "description": "", "units": units}), JSON)


async def _registrants(question: DialectQuestion) -> dict[str, Registrant]:
    """Every issuer with a CIK by service_id, read once per edition and day."""
    question.call.grant.requires_paid("A list of registrants")
    cached = question.call.edition.cache("registrants", 1)
    known: dict[str, Registrant] | None = cached.get("")
    if known is None:
        known = {}
        yield_points = YieldPoints(16)
        for issuer in await question.rows("list_issuers"):
            await yield_points.step()
            service_id = issuer["service_id"]
            own = await question.rows("get_crosswalk", service_id=service_id)
            if numbers := [one["id_value"] for one in own if one["scheme"] == SEC_CIK]:
                tickers = tuple(dict.fromkeys(one["ticker"] for one in issuer["listings"]))
                known[service_id] = Registrant(int(numbers[0]), issuer["legal_name"] or "", tickers)
        cached.put("", known)
    return known


async def _tickers(question: DialectQuestion) -> DialectReply:
    """The tickers of registrants, numbered as the SEC numbers them."""
    listed = [
        {"cik_str": one.number, "ticker": ticker, "title": one.name}
        for one in (await _registrants(question)).values()
        for ticker in one.tickers
    ]
    return DialectReply(_encode({str(number): row for number, row in enumerate(listed)}), JSON)


async def _submissions(question: DialectQuestion, registrant: str) -> DialectReply:
    """A registrant in the SEC's form, without filings and addresses, which we do not have."""
    service_id, number, name = await _registrant(question, registrant)
    (entity,) = await question.rows("get_entity", service_id=service_id) or [{}]
    listings = entity.get("listings") or []
    address = dict.fromkeys(
        "street1 street2 city stateOrCountry zipCode stateOrCountryDescription isForeignLocation".split()
    )
    unknown = (
        "sic sicDescription ownerOrg ein description website investorWebsite category fiscalYearEnd phone "
        "stateOfIncorporation stateOfIncorporationDescription"
    )
    columns = (
        "accessionNumber filingDate reportDate acceptanceDateTime act form fileNumber filmNumber items "
        "core_type size isXBRL isInlineXBRL primaryDocument primaryDocDescription"
    )
    body: Row = {
        "cik": f"{number:010d}",
        "entityType": "operating",
        **dict.fromkeys(unknown.split()),
        "insiderTransactionForOwnerExists": 0,
        "insiderTransactionForIssuerExists": 0,
        "name": name,
        "tickers": [one["ticker"] for one in listings],
        "exchanges": [one["exchange"] for one in listings],
        "lei": entity.get("lei"),
        "addresses": {"mailing": address, "business": address},
        "flags": "",
        "formerNames": [],
        "filings": {"recent": {column: [] for column in columns.split()}, "files": []},
    }
    return DialectReply(_encode(body), JSON)


async def _frame(question: DialectQuestion, taxonomy: str, tag: str, unit: str, period: str) -> DialectReply:
    """One figure of each registrant for a calendar period: the latest that was public on the day."""
    if (match := _FRAME.match(period)) is None:
        raise InvalidParameter("period", "expected CY2019, CY2019Q1 or CY2019Q1I")
    registrants = await _registrants(question)
    uom = unit.replace("-per-", "/")
    frame = _Frame.read(match)
    filters = [
        ("concept", "=", f"{taxonomy}:{tag}"),
        ("unit", "=", uom),
        ("period_end", ">=", frame.first),
        ("period_end", "<=", frame.last + timedelta(days=_BEFORE_END[frame.length])),
        ("available_at", "<=", question.call.today),
    ]
    chosen: dict[str, Row] = {}
    for row in await _reported(question.call.edition, filters):
        if row["service_id"] in registrants and frame.fits(row):
            other = chosen.get(row["service_id"])
            if other is None or frame.rank(row) > frame.rank(other):
                chosen[row["service_id"]] = row
    data = []
    for service_id, row in chosen.items():
        if row["value_reported"] is not None:
            one, named = registrants[service_id], _DOCUMENT.match(row["source_ref"])
            start = {"start": row["period_start"]} if row["period_start"] else {}
            figure = msgspec.Raw(row["value_reported"].encode())
            about = {"accn": named[1] if named else "", "cik": one.number, "entityName": one.name, "loc": ""}
            data.append({**about, **start, "end": row["period_end"], "val": figure})
    if not data:
        raise NotFound(f"No registrant reported {taxonomy}:{tag} in {unit} for {period}.")
    data.sort(key=lambda one: one["cik"])
    head = {"taxonomy": taxonomy, "tag": tag, "ccp": period, "uom": uom, "label": tag, "description": ""}
    return DialectReply(_encode({**head, "pts": len(data), "data": data}), JSON)


class _Frame(NamedTuple):
    first: date
    last: date
    length: str
    instant: bool

    @classmethod
    def read(cls, match: "re.Match[str]") -> "_Frame":
        year, quarter = min(max(int(match[1]), 1), 9998), match[2]
        month, months, length = (3 * int(quarter) - 2, 3, "quarter") if quarter else (1, 12, "year")
        end = date(year + (month + months) // 13, (month + months - 1) % 12 + 1, 1)
        return cls(date(year, month, 1), end - timedelta(days=1), length, bool(match[3]))

    def fits(self, row: Row) -> bool:
        """Whether the SEC counts a figure's period as this one."""
        start, end = row["period_start"], row["period_end"]
        if self.instant or start is None:
            counted = self.instant and start is None
        else:
            fewest, most = _LENGTHS[self.length]
            counted = fewest <= (end - start).days + 1 <= most
        return counted and self.first <= end - timedelta(days=_BEFORE_END[self.length]) <= self.last

    def rank(self, row: Row) -> tuple[timedelta, date, int]:
        """The closest figure is the highest; then the latest."""
        start, end = row["period_start"] or self.first, row["period_end"]
        return -abs(start - self.first) - abs(end - self.last), row["available_at"], row["vintage"]


async def _reported(edition: Edition, filters: list[tuple[str, str, object]]) -> list[Row]:
    rows: list[Row] = []
    for name, file in edition.files.items():
        if name.partition(".")[0] == _FACTS:
            stream = _EditionFile(edition, name, int(file["size_bytes"]), asyncio.get_running_loop())
            rows += await asyncio.to_thread(_matching, stream, filters)
    return rows


def _matching(stream: "_EditionFile", filters: list[tuple[str, str, object]]) -> list[Row]:
    import pyarrow.parquet as pq

    columns = "service_id period_start period_end value_reported available_at vintage source_ref".split()
    table = pq.read_table(stream, columns=columns, filters=filters)
    rows: list[Row] = table.to_pylist()
    return rows


class _EditionFile(io.RawIOBase):
    """A file of an edition for a reader in a thread; the edition reads and checks each part."""

    def __init__(self, edition: Edition, name: str, size: int, loop: asyncio.AbstractEventLoop) -> None:
        self._edition, self._name, self._size, self._loop = edition, name, size, loop
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._size, self._at + size)
        part = asyncio.run_coroutine_threadsafe(self._part(self._at, end), self._loop).result()
        self._at = end
        return part

    async def _part(self, start: int, end: int) -> bytes:
        return b"".join([chunk async for chunk in self._edition.file_chunks(self._name, start, end)])


DIALECT: Final = Dialect("sec", ("/sec",), answer, refuse)
