"""SDMX-REST 2.2 at `/sdmx/`: dated series as the dataflow SANKOFA:MACRO(1.0.0) (contract: DIA-7).

`asOf`, `updatedAfter` and `includeHistory` use `available_at`, the day on which a value became public,
because we have no load time. Structures are SDMX-JSON 2.0 or, through `sdmx.xml`, SDMX-ML 2.1.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import msgspec
from jinja2 import Environment, StrictUndefined, Template

from sankofa.dialects.contract import (
    Dialect,
    DialectQuestion,
    DialectReply,
    DialectRequest,
    ListedSeries,
    read_series_rows,
    rows_numbered,
    tabled_numbers,
)
from sankofa.edition.read.series_catalogue import columns_of_series, every_vintage
from sankofa.model.countries import country_name
from sankofa.model.days import parse_day
from sankofa.model.errors import InvalidParameter, NotFound, Problem
from sankofa.model.limits import limit

AGENCY: Final = "SANKOFA"
FLOW: Final = "MACRO"
VERSION: Final = "1.0.0"
DIMENSIONS: Final = ("FREQ", "REF_AREA", "SERIES")
FREQUENCIES: Final = {"daily": "D", "weekly": "W", "monthly": "M", "quarterly": "Q", "annual": "A"}
NO_AREA: Final = "_Z"
_JSON_SCHEMAS: Final = "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/master"
_CONCEPTS: Final = {
    "FREQ": "Frequency",
    "REF_AREA": "Reference area",
    "SERIES": "Series key of Sankofa",
    "TIME_PERIOD": "Date of the value",
    "OBS_VALUE": "Value; NaN where it was withdrawn",
    "AVAILABLE_AT": "Day on which the value became public",
}
_FLOW_URN: Final = f"{AGENCY}:{FLOW}({VERSION})"
_FLOW_NAME: Final = "Macroeconomic series, as known on any day"
_URN: Final = "urn:sdmx:org.sdmx.infomodel."
_SCHEMAS: Final = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/"
Codes = Mapping[str, Mapping[str, str]]
"""By dimension, the names of its codes."""


class StructureKinds(NamedTuple):
    """The kinds of structures that a message has."""

    flows: bool = True
    others: bool = True
    partial: bool = False
    """Whether the code list of series is partial."""
    constraint: Codes | None = None
    """The codes with data, if requested."""


def _item(name: str, title: str) -> dict[str, Any]:
    return {"id": name, "name": title, "names": {"en": title}}


def _maintained(name: str, title: str, **more: Any) -> dict[str, Any]:
    owned = {"version": VERSION, "agencyID": AGENCY, "isExternalReference": False}
    return {**_item(name, title), **owned, **more}


def _message(schema: str, prepared: str, data: dict[str, Any], **more: Any) -> bytes:
    """An SDMX-JSON message in the format of `schema`."""
    kind, _, _ = schema.partition("-")
    own = {
        "schema": f"{_JSON_SCHEMAS}/{kind}-message/tools/schemas/2.0.0/sdmx-json-{schema}.json",
        "id": f"{AGENCY}-{FLOW}",
        "test": False,
        "prepared": prepared,
    }
    return msgspec.json.encode({"meta": {**own, **more, "sender": {"id": AGENCY}}, "data": data})


def structure_json(codes: Codes, prepared: str, kinds: StructureKinds) -> bytes:
    data: dict[str, Any] = {}
    if kinds.flows:
        structure = f"{_URN}datastructure.DataStructure={_FLOW_URN}"
        data["dataflows"] = [_maintained(FLOW, _FLOW_NAME, structure=structure)]
    if kinds.others:
        data["dataStructures"] = [_maintained(FLOW, _FLOW_NAME, dataStructureComponents=_components())]
        concepts = [_item(name, title) for name, title in _CONCEPTS.items()]
        data["conceptSchemes"] = [_maintained("CONCEPTS", "Concepts", isPartial=False, concepts=concepts)]
        data["codelists"] = [
            _maintained(
                f"CL_{name}",
                _CONCEPTS[name],
                isPartial=kinds.partial and name == "SERIES",
                codes=[_item(code, title) for code, title in codes[name].items()],
            )
            for name in DIMENSIONS
        ]
    if kinds.constraint is not None:
        attached = {"dataflows": [f"{_URN}datastructure.Dataflow={_FLOW_URN}"]}
        values = [
            {"id": name, "include": True, "values": [{"value": code} for code in kinds.constraint[name]]}
            for name in DIMENSIONS
        ]
        regions = [{"include": True, "components": values}]
        about = {"role": "Actual", "constraintAttachment": attached, "cubeRegions": regions}
        data["dataConstraints"] = [_maintained("AVAILABLE", "What there is", **about)]
    return _message("structure-schema", prepared, data, contentLanguages=["en"])


def _components() -> dict[str, Any]:
    def component(name: str, representation: dict[str, Any], **more: Any) -> dict[str, Any]:
        concept = f"{_URN}conceptscheme.Concept={AGENCY}:CONCEPTS({VERSION}).{name}"
        return {"id": name, "conceptIdentity": concept, "localRepresentation": representation, **more}

    day = {"format": {"dataType": "ObservationalTimePeriod"}}
    dimensions = [
        component(
            name, {"enumeration": f"{_URN}codelist.Codelist={AGENCY}:CL_{name}({VERSION})"}, position=at
        )
        for at, name in enumerate(DIMENSIONS)
    ]
    measure = component("OBS_VALUE", {"format": {"dataType": "Double"}}, usage="optional")
    observed: dict[str, Any] = {"observation": {}}
    attribute = component("AVAILABLE_AT", day, usage="optional", attributeRelationship=observed)
    return {
        "dimensionList": {
            "id": "DimensionDescriptor",
            "dimensions": dimensions,
            "timeDimension": component("TIME_PERIOD", day),
        },
        "measureList": {"id": "MeasureDescriptor", "measures": [measure]},
        "attributeList": {"id": "AttributeDescriptor", "attributes": [attribute]},
    }


def structure_xml(codes: Codes, prepared: str, kinds: StructureKinds) -> bytes:
    """SDMX-ML 2.1, which older clients read."""
    written = _template().render(
        agency=AGENCY,
        flow=FLOW,
        flow_name=_FLOW_NAME,
        version=VERSION,
        dimensions=DIMENSIONS,
        concepts=_CONCEPTS,
        schemas=_SCHEMAS,
        codes=codes,
        prepared=prepared,
        kinds=kinds,
    )
    return ('<?xml version="1.0" encoding="UTF-8"?>\n' + "".join(written.splitlines())).encode()


@cache
def _template() -> Template:
    text = files("sankofa.dialects").joinpath("sdmx.xml").read_text("utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined).from_string(text)


MOST_OBSERVATIONS: Final = limit("observations of an SDMX answer", 2_000_000, "observations", "400")
MOST_SERIES: Final = limit("series of an SDMX data query", 5_000, "series", "400")
_MOST_LOOKED_UP: Final = 64
_STRUCTURE_JSON: Final = "application/vnd.sdmx.structure+json; version=2.0.0; charset=utf-8"
_STRUCTURE_XML: Final = "application/vnd.sdmx.structure+xml; version=2.1; charset=utf-8"
_DATA_CSV: Final = "application/vnd.sdmx.data+csv; version=2.0.0; charset=utf-8"
_DATA_JSON: Final = "application/vnd.sdmx.data+json; version=2.0.0; charset=utf-8"
_KINDS: Final = frozenset(("dataflow", "datastructure", "codelist", "conceptscheme", "*"))
_IDS: Final = {"codelist": tuple(f"CL_{name}" for name in DIMENSIONS), "conceptscheme": ("CONCEPTS",)}
_ANY: Final = frozenset(("*", "all", "~", "+", "latest", "", VERSION, "1.0", "1.0+", "1+"))
_OTHER: Final = re.compile("[^A-Za-z0-9]")
_TABLED: Final = re.compile("WDI_(.+)_([A-Z]{3})")
_FILTER: Final = re.compile(r"c\[([A-Z_]+)\]")
_NAMES: Final = {"A": "Annual", "Q": "Quarterly", "M": "Monthly", "W": "Weekly", "D": "Daily"}
_IGNORED: Final = frozenset(
    ("dimensionAtObservation", "attributes", "measures", "detail", "references", "format", "mode", "context")
)
_LINE: Final = "STRUCTURE,STRUCTURE_ID,ACTION,FREQ,REF_AREA,SERIES,TIME_PERIOD,OBS_VALUE,AVAILABLE_AT"


class _Observation(NamedTuple):
    key: tuple[str, str, str]
    """The codes of frequency, area and series."""
    day: str
    value: Decimal | None
    available_at: str


class _DataQuery(NamedTuple):
    codes: tuple[frozenset[str] | None, ...]
    """The requested codes by dimension; None for any."""
    since: str
    until: str
    as_of: date
    updated_after: datetime | None
    first: int | None
    last: int | None
    has_history: bool


def series_code(key: str) -> str:
    """The code of a series: its key with `_` instead of all characters except letters and digits."""
    return _OTHER.sub("_", key)


async def _answer(question: DialectQuestion) -> DialectReply:
    kind, *parts = question.request.path.strip("/").split("/")
    if kind == "structure":
        return await _structures(question, parts)
    if kind in ("data", "availability"):
        if not parts or parts[0] not in ("dataflow", "*"):
            raise NotFound("There is one dataflow: data/dataflow/SANKOFA/MACRO/1.0.0.")
        _check_id(parts[1:4], (FLOW,))
        query = _data_query(question, parts[4] if len(parts) > 4 else "*")
        return await (_data if kind == "data" else _availability)(question, query)
    raise NotFound("No such path; expected structure/, data/ or availability/.")


def _check_id(parts: list[str], ids: tuple[str, ...]) -> None:
    """Raises NotFound for an unknown agency, id or version."""
    agency, name, version = [*parts, "*", "*", "*"][:3]
    known = agency in _ANY or AGENCY in agency.split(",")
    known = known and (name in _ANY or bool(set(name.split(",")) & set(ids)))
    if not known or version not in _ANY:
        raise NotFound(f"No such structure; the only one is {_FLOW_URN}.")


async def _structures(question: DialectQuestion, parts: list[str]) -> DialectReply:
    kind = parts[0] if parts else "*"
    if kind not in _KINDS:
        raise NotFound(f"No structures of this kind; expected one of {', '.join(sorted(_KINDS))}.")
    _check_id(parts[1:4], _IDS.get(kind, (FLOW,)))
    refers = question.request.given("references", "none") != "none"
    kinds = StructureKinds(
        flows=kind in ("dataflow", "*") or refers,
        others=kind != "dataflow" or refers,
        partial=question.call.grant.sample,
    )
    codes = _codes(await _catalogue(question)) if kinds.others else {}
    return _structure_reply(question, codes, kinds)


def _structure_reply(question: DialectQuestion, codes: Codes, kinds: StructureKinds) -> DialectReply:
    prepared = f"{question.call.today}T00:00:00Z"
    if "json" in question.request.accept or kinds.constraint is not None:
        return DialectReply(structure_json(codes, prepared, kinds), _STRUCTURE_JSON)
    return DialectReply(structure_xml(codes, prepared, kinds), _STRUCTURE_XML)


async def _catalogue(question: DialectQuestion, query: _DataQuery | None = None) -> list[ListedSeries]:
    """The dated series that may match a query. If the query names a few, they are looked up one by one."""
    codes = None if query is None else query.codes[2]
    if codes is not None and len(codes) <= _MOST_LOOKED_UP:
        rows = [row for code in sorted(codes) for row in await _named(question, code)]
    else:
        rows = await question.read(read_series_rows, "list_series")
    asked = (None, None, None) if query is None else query.codes
    return [
        row
        for row in rows
        if row.vintages  # annual indicators also exist as `WDI:` series
        and all(own is None or code in own for own, code in zip(asked, _key(row), strict=True))
    ]


async def _named(question: DialectQuestion, code: str) -> list[ListedSeries]:
    """Series that may have a code."""
    if (table := _TABLED.fullmatch(code)) is None:
        return await question.read(read_series_rows, "list_series", q=code.replace("_", " "))
    edition = question.call.edition
    known = (await tabled_numbers(edition)).items()
    numbers = [n for indicator, own in known if series_code(indicator) == table[1] for n in own]
    return await rows_numbered(edition, numbers)


def _key(row: ListedSeries) -> tuple[str, str, str]:
    return FREQUENCIES[row.frequency], row.country or NO_AREA, series_code(row.series)


def _codes(rows: Iterable[ListedSeries]) -> dict[str, dict[str, str]]:
    codes: dict[str, dict[str, str]] = {name: {} for name in DIMENSIONS}
    for row in rows:
        frequency, area, series = _key(row)
        codes["FREQ"][frequency] = _NAMES[frequency]
        codes["REF_AREA"][area] = "No one country" if area == NO_AREA else country_name(area) or area
        codes["SERIES"].setdefault(series, row.series)
    return {name: dict(sorted(own.items())) for name, own in codes.items()}


async def _availability(question: DialectQuestion, query: _DataQuery) -> DialectReply:
    codes = _codes(await _catalogue(question, query))
    refers = question.request.given("references", "none") != "none"
    kinds = StructureKinds(refers, refers, question.call.grant.sample, codes)
    return _structure_reply(question, codes, kinds)


def _data_query(question: DialectQuestion, key: str) -> _DataQuery:
    request, today = question.request, question.call.today
    codes: list[frozenset[str] | None] = [None] * len(DIMENSIONS)
    if key not in _ANY:
        positions = key.split(".")
        if len(positions) != len(DIMENSIONS):
            raise InvalidParameter("key", f"expected the positions {'.'.join(DIMENSIONS)}, empty for any")
        codes = [None if one in ("", "*") else frozenset(re.split("[+,]", one)) for one in positions]
    since, until = request.given("startPeriod"), request.given("endPeriod")
    for name, value in request.query:
        if (match := _FILTER.fullmatch(name)) is None:
            if name not in _IGNORED and name not in _KNOWN:
                raise InvalidParameter(name[:64], "no such parameter")
        elif match[1] in DIMENSIONS:
            own = frozenset(one.removeprefix("eq:") for one in re.split("[ +,]", value))
            at = DIMENSIONS.index(match[1])
            before = codes[at]
            codes[at] = own if before is None else own & before
        elif match[1] == "TIME_PERIOD":
            for part in re.split("[ +]", value):
                operator, _, day = part.rpartition(":")
                since = day if operator in ("ge", "eq", "") else since
                until = day if operator in ("le", "eq", "") else until
                if operator in ("gt", "lt"):
                    moved = _shifted(day, 1 if operator == "gt" else -1)
                    since, until = (moved, until) if operator == "gt" else (since, moved)
        else:
            raise InvalidParameter(name[:64], f"filters are on {', '.join(DIMENSIONS)} and TIME_PERIOD")
    as_of = _instant(text, "asOf").date() if (text := request.given("asOf")) else today
    if as_of > today:
        raise InvalidParameter("asOf", f"later than {today}, the last day of this view")
    return _DataQuery(
        tuple(codes),
        _checked_day(since),
        _checked_day(until) or "9999",
        as_of,
        _instant(text, "updatedAfter") if (text := request.given("updatedAfter")) else None,
        _count(request, "firstNObservations"),
        _count(request, "lastNObservations"),
        request.given("includeHistory", "false").lower() == "true",
    )


_KNOWN: Final = frozenset(
    "startPeriod endPeriod asOf updatedAfter firstNObservations lastNObservations includeHistory".split()
)
_PERIOD: Final = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?")
_DAY: Final = len("2024-06-30")


def _checked_day(text: str) -> str:
    """The start of a date as given: a year, a month or a day."""
    try:
        parse_day(f"{text}-01-01"[:_DAY] if _PERIOD.fullmatch(text) else text)
    except ValueError:
        if text:
            expected = "expected a date such as 2024, 2024-06 or 2024-06-30"
            raise InvalidParameter("TIME_PERIOD", expected) from None
    return text


def _shifted(day: str, days: int) -> str:
    try:
        return (date.fromisoformat(day) + timedelta(days=days)).isoformat()
    except (ValueError, OverflowError):
        raise InvalidParameter(
            "TIME_PERIOD", "after gt: and lt: expected a date such as 2024-06-30"
        ) from None


def _instant(text: str, name: str) -> datetime:
    try:
        at = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        raise InvalidParameter(name, "expected an instant such as 2024-06-30T23:59:59Z") from None
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def _count(request: DialectRequest, name: str) -> int | None:
    text = request.given(name)
    if text and not (text.isascii() and text.isdigit() and 0 < len(text) < 10):
        raise InvalidParameter(name, "expected a whole number")
    return int(text) if text else None


async def _data(question: DialectQuestion, query: _DataQuery) -> DialectReply:
    rows = await _catalogue(question, query)
    updated_after = query.updated_after.isoformat() if query.updated_after else ""
    observations: list[_Observation] = []
    if len(rows) > MOST_SERIES:
        raise InvalidParameter("key", f"{len(rows)} series match; an answer has at most {MOST_SERIES}")
    for row in rows:
        in_full = query.has_history or question.call.grant.sample  # which may request a few of many
        own = await (_history if in_full else _latest)(question, query, row)
        until = len(query.until)
        own = [one for one in own if query.since <= one.day and one.day[:until] <= query.until]
        if not query.has_history:
            own = list({one.day: one for one in own}.values())
        if query.updated_after is not None:
            # A value became public at the end of its day.
            own = [one for one in own if f"{one.available_at}T23:59:59+00:00" > updated_after]
        if query.first is not None or query.last is not None:  # the first, the last, or both
            days = sorted({one.day for one in own})
            chosen = {*days[: query.first or 0], *(days[-query.last :] if query.last else ())}
            own = [one for one in own if one.day in chosen]
        observations += own
        if len(observations) > MOST_OBSERVATIONS:
            raise InvalidParameter("key", f"more than {MOST_OBSERVATIONS} observations; narrow the key")
    if not observations:
        raise NotFound("No data matches the query.")
    question.refuse_cut(len(observations))
    if "json" in question.request.accept and "csv" not in question.request.accept:
        return DialectReply(_json(question, observations), _DATA_JSON)
    start = f"dataflow,{_FLOW_URN},I"
    lines = [
        ",".join((start, *one.key, one.day, "NaN" if one.value is None else str(one.value), one.available_at))
        for one in observations
    ]
    return DialectReply("\n".join((_LINE, *lines, "")).encode(), _DATA_CSV)


async def _latest(question: DialectQuestion, query: _DataQuery, row: ListedSeries) -> list[_Observation]:
    """The values of a series as known on a day, oldest first."""
    key = _key(row)
    values = await question.rows(
        "get_macro",
        series=row.series,
        country=row.country or "",
        frequency=row.frequency,
        as_of=str(query.as_of),
        from_=query.since and f"{query.since}-01-01"[:_DAY],
    )
    return [_Observation(key, one["date"], one["value"], one["available_at"]) for one in reversed(values)]


async def _history(question: DialectQuestion, query: _DataQuery, row: ListedSeries) -> list[_Observation]:
    """Every vintage of a series known on a day, by date and the day it became public."""
    key = _key(row)
    observations = []
    for column in await columns_of_series(question.call.edition, row.series):
        _, _, frequency, country = column.split("|")
        if (frequency, country) == (row.frequency, row.country or ""):
            async for one in every_vintage(question.call.edition, column, query.as_of):
                observations.append((str(one.date), one.vintage, one.value, str(one.available_at)))
    observations.sort(key=lambda one: one[:2])
    return [_Observation(key, at, value, public) for at, _, value, public in observations]


def _json(question: DialectQuestion, observations: list[_Observation]) -> bytes:
    """SDMX-JSON 2.0: one data set for the latest values, further ones for the values they replaced."""
    dimensions = ("TIME_PERIOD", "AllDimensions")
    flat = question.request.chosen("dimensionAtObservation", dimensions, "TIME_PERIOD") == "AllDimensions"
    members = [sorted({one.key[at] for one in observations}) for at in range(len(DIMENSIONS))]
    days = sorted({one.day for one in observations})
    public = sorted({one.available_at for one in observations})
    positions = [{code: at for at, code in enumerate(own)} for own in (*members, days, public)]
    sets: list[dict[str, Any]] = []
    counts: defaultdict[tuple[Any, ...], int] = defaultdict(int)
    for one in observations:
        number = counts[one.key, one.day]
        counts[one.key, one.day] += 1
        if number == len(sets):
            sets.append({"structure": 0, "action": "Information", "observations" if flat else "series": {}})
        series = ":".join(str(positions[at][code]) for at, code in enumerate(one.key))
        day, value = str(positions[3][one.day]), None if one.value is None else float(one.value)
        cell = [value, positions[4][one.available_at]]
        if flat:
            sets[number]["observations"][f"{series}:{day}"] = cell
        else:
            own = sets[number]["series"].setdefault(series, {"observations": {}})
            own["observations"][day] = cell
    own_dimensions = [
        {"id": name, "keyPosition": at, "values": [{"id": code} for code in members[at]]}
        for at, name in enumerate(DIMENSIONS)
    ]
    period = {"id": "TIME_PERIOD", "keyPosition": 3, "values": [{"value": day} for day in days]}
    listed = {
        "series": [] if flat else own_dimensions,
        "observation": [*own_dimensions, period] if flat else [period],
    }
    attribute = {"id": "AVAILABLE_AT", "values": [{"value": day} for day in public]}
    structure = {
        "links": [{"urn": f"{_URN}datastructure.Dataflow={_FLOW_URN}", "rel": "dataflow"}],
        "dataSets": list(range(len(sets))),
        "dimensions": listed,
        "measures": {"observation": [{"id": "OBS_VALUE"}]},
        "attributes": {"observation": [attribute]},
    }
    prepared = f"{question.call.today}T00:00:00Z"
    return _message("data-schema", prepared, {"dataSets": sets, "structures": [structure]})


def _refuse(problem: Problem, _: DialectRequest) -> DialectReply:
    error = {"code": problem.status, "title": problem.title, "detail": problem.detail}
    return DialectReply(msgspec.json.encode({"errors": [error]}), status=problem.status)


DIALECT: Final = Dialect("sdmx", ("/sdmx",), _answer, _refuse)
