"""The World Bank's API, version 2: countries, indicators and their values, as wbgapi and wbdata ask for them.

Values come from the tables captured last. Inside `/at/DAY/`, and for a locked key, they are the `WDI:`
series as known on the day. The only source is 2 (World Development Indicators); nothing is classified.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from sankofa.dialects.contract import (
    JSON,
    Dialect,
    DialectQuestion,
    DialectReply,
    DialectRequest,
    ListedSeries,
    Row,
    stored_row,
    tabled_numbers,
)
from sankofa.edition.read.day_view import DayView
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.search import macro_spans
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.countries import alpha3_of, country, country_name
from sankofa.model.errors import InvalidParameter, NotFound, Problem
from sankofa.model.observations import TABLED

_SOURCE: Final = "2"
_SOURCE_NAME: Final = "World Development Indicators"
_ID: Final = {"id": _SOURCE, "name": _SOURCE_NAME}
_FIRST_YEAR: Final = 1960
_EVERY_YEAR: Final = range(1, 10_000)
_FEW: Final = 8
"""Most countries looked up one by one; for more, all are read and filtered."""
_ALL: Final = "all"
_encode = msgspec.json.Encoder(decimal_format="number").encode
_PLURALS: Final = {
    "countries": "country",
    "indicators": "indicator",
    "sources": "source",
    "regions": "region",
    "incomelevels": "incomelevel",
    "lendingtypes": "lendingtype",
    "topics": "topic",
}
_UNCLASSIFIED: Final = ("region", "incomelevel", "lendingtype", "topic")


async def answer(question: DialectQuestion) -> DialectReply:
    request = question.request
    if request.given("format", "json") != "json":
        raise InvalidParameter("format", "expected json")
    parts = [part for part in request.path.split("/") if part]
    if parts and len(parts[0]) == 2:  # the language
        parts = parts[1:]
    match [_PLURALS.get(part.lower(), part.lower()) if n % 2 == 0 else part for n, part in enumerate(parts)]:
        case ["country", countries, "indicator", indicators]:
            return await _values(question, countries, indicators, request.given("date"))
        case ["country"]:
            return _list(question, _countries(request, _ALL))
        case ["country", chosen]:
            return _list(question, _countries(request, chosen))
        case ["indicator"]:
            return _list(question, await _indicators(question, _ALL))
        case ["indicator", chosen]:
            return _list(question, await _indicators(question, chosen))
        case ["source"]:
            return _list(question, [_OWN_SOURCE])
        case ["source", chosen]:
            _check_source(chosen)
            return _list(question, [_OWN_SOURCE])
        case ["source", chosen, *_]:
            _check_source(chosen)
            return await _concepts(question, parts[2:])
        case [kind] | [kind, _] if kind in _UNCLASSIFIED:
            return _list(question, [])
    raise NotFound("No such path; expected country, indicator, source, region, incomelevel and lendingtype.")


def refuse(problem: Problem, request: DialectRequest) -> DialectReply:
    key = "Invalid value" if problem.status == 400 else problem.title
    message = {"id": "120" if problem.status == 400 else str(problem.status), "key": key}
    return DialectReply(_encode([{"message": [{**message, "value": problem.detail}]}]), JSON, problem.status)


def _check_source(text: str) -> None:
    if text.lower() not in (_SOURCE, _ALL):
        raise InvalidParameter("source", f"expected {_SOURCE}, the only one")


_OWN_SOURCE: Final = {
    "id": _SOURCE,
    "lastupdated": "",
    "name": _SOURCE_NAME,
    "code": "WDI",
    "description": "",
    "url": "",
    "dataavailability": "Y",
    "metadataavailability": "N",
    "concepts": "3",
}


@cache
def _every_country() -> dict[str, Row]:
    none = {"id": "", "iso2code": "", "value": ""}
    about = dict.fromkeys(("region", "adminregion", "incomeLevel", "lendingType"), none)
    blank = dict.fromkeys(("capitalCity", "longitude", "latitude"), "")
    return {
        code: {"id": alpha3, "iso2Code": code, "name": country_name(code) or code, **about, **blank}
        for code, alpha3 in sorted(alpha3_of().items(), key=lambda pair: pair[1])
    }


def _countries(request: DialectRequest, text: str) -> list[Row]:
    for name, value in request.query:
        if name.lower() in (*_UNCLASSIFIED, "income", "lending") and value.lower() != _ALL:
            raise InvalidParameter(name, "this service does not classify countries")
    codes = _codes(text)
    return list(_every_country().values()) if codes is None else [_every_country()[code] for code in codes]


def _codes(text: str) -> list[str] | None:
    """The countries asked for, as alpha-2; None for all. Raises InvalidParameter."""
    if text.lower() == _ALL:
        return None
    codes = {one: country(one) for one in text.split(";") if one}
    if not codes or None in codes.values():
        unknown = next((one for one, code in codes.items() if code is None), text)
        raise InvalidParameter("country", f"no country {unknown[:40]!r}: expected ISO 3166 codes or all")
    return list(dict.fromkeys(code for code in codes.values() if code))


async def _indicators(question: DialectQuestion, text: str) -> list[Row]:
    """The indicators asked for, as the World Bank describes them. Raises InvalidParameter."""
    listed = await _catalogue(question.call.edition)
    codes = list(listed) if text.lower() == _ALL else [one.upper() for one in text.split(";") if one]
    for one in codes:
        if one not in listed:
            raise InvalidParameter("indicator", f"no indicator {one[:64]!r}")
    return [
        {
            "id": one,
            "name": listed[one].name or one,
            "unit": listed[one].unit or "",
            "source": {"id": _SOURCE, "value": _SOURCE_NAME},
            "sourceNote": listed[one].note or "",
            "sourceOrganization": "",
            "topics": [],
        }
        for one in codes
    ]


async def _catalogue(edition: Edition) -> dict[str, ListedSeries]:
    """Every indicator by code, read once per edition; on a day, those whose `WDI:` series are known."""
    cached = edition.cache("indicators", 1)
    listed: dict[str, ListedSeries] | None = cached.get("")
    if listed is None:
        listed = {}
        spans = await macro_spans(edition)
        numbers = [int(spans[2 * n]) for n in range(len(spans) // 2)]
        if isinstance(edition, DayView):
            numbers = [known[0] for known in (await tabled_numbers(edition)).values()]
        yield_points = YieldPoints(64)
        for number in numbers:
            row = await stored_row(edition, number)
            if row.series.startswith(TABLED) or not row.vintages:
                listed[row.series.removeprefix(TABLED).partition(":")[0]] = row
            await yield_points.step()
        cached.put("", listed)
    return listed


async def _values(question: DialectQuestion, countries: str, indicators: str, dates: str) -> DialectReply:
    if source := question.request.given("source"):
        _check_source(source)
    if question.request.given("gapfill").upper() == "Y":
        raise InvalidParameter("gapfill", "no value is carried forward here: use mrnev")
    rows = await _rows(question, countries, indicators, _years(dates))
    unknown = {"unit": "", "obs_status": "", "decimal": 0}
    points = [
        {
            "indicator": {"id": row["indicator"], "value": row["name"]},
            "country": {"id": row["country"], "value": country_name(row["country"])},
            "countryiso3code": alpha3_of()[row["country"]],
            "date": str(row["year"]),
            "value": row["value"],
            **unknown,
        }
        for row in rows
    ]
    return _list(question, points, _updated(rows))


async def _rows(
    question: DialectQuestion, countries: str, indicators: str, years: Sequence[int]
) -> list[Row]:
    """The values asked for, by country, then newest first."""
    described = {row["id"]: row for row in await _indicators(question, indicators)}
    if indicators.lower() == _ALL:
        raise InvalidParameter("indicator", "name one or a few indicators")
    codes = _codes(countries)
    span = {} if years is _EVERY_YEAR else {"from_": f"{years[0]:04}-01-01", "to": f"{years[-1]:04}-12-31"}
    rows: list[Row] = []
    for indicator, about in described.items():
        of_day = question.call.lock is not None
        values = await (_as_known if of_day else _as_captured)(question, indicator, codes, span)
        rows += [
            {**row, "indicator": indicator, "name": about["name"]} for row in values if row["year"] in years
        ]
    return _most_recent(question.request, rows)


async def _as_captured(
    question: DialectQuestion, indicator: str, codes: list[str] | None, span: Mapping[str, str]
) -> list[Row]:
    if codes is None or len(codes) > _FEW:
        rows = await question.rows("get_macro", indicator=indicator, **span)
        return rows if codes is None else [row for row in rows if row["country"] in codes]
    rows = []
    for code in codes:
        rows += await question.rows("get_macro", indicator=indicator, country=code, **span)
    return rows


async def _as_known(
    question: DialectQuestion, indicator: str, codes: list[str] | None, span: Mapping[str, str]
) -> list[Row]:
    """The `WDI:` series of the indicator in the countries that have it."""
    edition, rows = question.call.edition, []
    for number in (await tabled_numbers(edition)).get(indicator, []):
        entry = await stored_row(edition, number)
        if codes is None or entry.country in codes:
            rows += await question.rows("get_macro", series=entry.series, **span)
    return [{**row, "year": int(row["date"][:4])} for row in rows]


def _years(text: str) -> Sequence[int]:
    """The years of `2010:2019`, `2010;2012` or `YR2010`, in order; all if the text is empty or `all`."""
    if not text or text.lower() == _ALL:
        return _EVERY_YEAR
    years: set[int] = set()
    try:
        for part in text.upper().split(";"):
            begin, _, end = part.replace("YR", "").partition(":")
            first, last = sorted((int(begin), int(end or begin)))
            years.update(range(max(first, 1), min(last, _EVERY_YEAR[-1]) + 1))
    except ValueError:
        years.clear()
    if not years:
        raise InvalidParameter("date", "expected years, such as 2010, 2010:2019 or YR2010;YR2011")
    return sorted(years)


def _most_recent(request: DialectRequest, rows: list[Row]) -> list[Row]:
    """With `mrv`, the values of the newest years; with `mrnev`, the newest values that are not empty."""
    if request.given("mrv"):
        years = sorted({row["year"] for row in rows}, reverse=True)[: request.number("mrv", 1, 1, 10_000)]
        return [row for row in rows if row["year"] in years]
    if not request.given("mrnev"):
        return rows
    most = request.number("mrnev", 1, 1, 10_000)
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    newest = []
    for row in sorted(rows, key=lambda row: -row["year"]):
        counts[row["indicator"], row["country"]] += row["value"] is not None
        if row["value"] is not None and counts[row["indicator"], row["country"]] <= most:
            newest.append(row)
    return sorted(newest, key=lambda row: row["country"])


def _updated(rows: Iterable[Row]) -> str | None:
    """The newest day on which one of the rows became public, or was captured."""
    return max((row["available_at"] or row["observed_at"][:10] for row in rows), default=None)


async def _concepts(question: DialectQuestion, parts: list[str]) -> DialectReply:
    """GET sources/2/...: the concepts of the source, the members of one, or values."""
    if parts == ["concepts"]:
        concepts = [{"id": one, "value": one} for one in ("Country", "Series", "Time")]
        return _of_source(_slice(question, concepts)[1], concept=concepts)
    chosen = {parts[n].lower(): parts[n + 1] for n in range(0, len(parts) - 1, 2)}
    if len(parts) % 2 or not chosen.keys() <= {"country", "series", "time"}:
        raise NotFound("No such path; a source has concepts, country, series and time.")
    if len(chosen) == 1:
        ((concept, text),) = chosen.items()
        members, head = _slice(question, await _members(question, concept, text))
        variables = {"id": concept.title(), "name": concept.title(), "variable": members}
        return _of_source(head, concept=[variables])
    rows = await _rows(
        question, chosen.get("country", _ALL), chosen.get("series", _ALL), _years(chosen.get("time", _ALL))
    )
    page, head = _slice(question, [_point(row) for row in rows], _updated(rows))
    return DialectReply(_encode({**head, "source": {**_ID, "data": page}}), JSON)


def _of_source(head: Row, **about: list[Row]) -> DialectReply:
    return DialectReply(_encode({**head, "source": [{**_ID, **about}]}), JSON)


async def _members(question: DialectQuestion, concept: str, text: str) -> list[Row]:
    if concept == "country":
        return [{"id": row["id"], "value": row["name"]} for row in _countries(question.request, text)]
    if concept == "series":
        return [{"id": row["id"], "value": row["name"]} for row in await _indicators(question, text)]
    years, served = _years(text), range(_FIRST_YEAR, question.call.today.year + 1)
    return [{"id": f"YR{year}", "value": str(year)} for year in served if year in years]


def _point(row: Row) -> Row:
    code = row["country"]
    variables = (
        ("Country", alpha3_of()[code], country_name(code)),
        ("Series", row["indicator"], row["name"]),
        ("Time", f"YR{row['year']}", str(row["year"])),
    )
    named = [{"concept": concept, "id": one, "value": value} for concept, one, value in variables]
    return {"variable": named, "value": row["value"]}


def _list(question: DialectQuestion, rows: Sequence[Row], updated: str | None = None) -> DialectReply:
    page, head = _slice(question, rows, updated)
    return DialectReply(_encode([head, page]), JSON)


def _slice(question: DialectQuestion, rows: Sequence[Row], updated: str | None = None) -> tuple[Any, Row]:
    """A page of the rows, with the header before them."""
    request = question.request
    size, page = request.number("per_page", 50, 1, 32_500), request.number("page", 1, 1, 10**6)
    total = len(rows)
    head: Row = {"page": page, "pages": max(1, -(-total // size)), "per_page": size, "total": total}
    if updated is not None:
        head |= {"sourceid": _SOURCE, "lastupdated": updated}
        question.refuse_cut(total)
    return rows[(page - 1) * size : page * size], head


DIALECT: Final = Dialect("worldbank", ("/worldbank/v2",), answer, refuse)
