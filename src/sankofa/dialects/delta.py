"""Delta Sharing at `/delta-sharing/`: every table in bulk, with the published editions as its versions.

A version is an edition's number among all editions ever published, so it does not change when older ones
are removed. Its time is the time of publication. A locked view has one version, 0, with the rows known on
its day (contract: DIA-5).
"""

import asyncio
import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from sankofa.dialects.contract import Dialect, DialectQuestion, DialectReply, DialectRequest
from sankofa.edition.format.keys import last_capture
from sankofa.edition.read.edition import Edition
from sankofa.model.errors import BadRequest, InvalidParameter, MethodNotAllowed, NotFound, Problem
from sankofa.operations.catalogue import (
    LICENSED_FILES,
    OPEN_FILES,
    SIGNED_FOR,
    day_file,
    file_schema,
    is_dated,
    sign_file,
    table_name,
)

if TYPE_CHECKING:
    import pyarrow

_SHARE: Final = "sankofa"
_NDJSON: Final = "application/x-ndjson; charset=utf-8"
_FORMAT: Final = (b"delta-sharing-capabilities", b"responseformat=parquet")
_NAMESPACE: Final = uuid.UUID("6f6a3c0e-3d0a-5e0b-9a53-2f1f8f6d5a11")


class _Version(NamedTuple):
    number: int
    at: datetime
    edition_id: str
    """Empty in a locked view."""


async def _answer(question: DialectQuestion) -> DialectReply:
    parts = question.request.path.strip("/").split("/")
    if question.request.method == "POST" and parts[-1] != "query":
        raise MethodNotAllowed("GET, HEAD")
    if parts[0] == "shares" and parts[1:2] not in ([], [_SHARE]):
        raise NotFound(f"No share {parts[1]}; the only one is {_SHARE}.")
    match parts:
        case ["shares"]:
            return _json({"items": [_share()]})
        case ["shares", _]:
            return _json({"share": _share()})
        case ["shares", _, "schemas"]:
            names = sorted({schema for schema, _ in _tables(question.call.edition)})
            return _json({"items": [{"name": name, "share": _SHARE} for name in names]})
        case ["shares", _, "all-tables"]:
            return _json({"items": _listed(question.call.edition)})
        case ["shares", _, "schemas", schema, "tables"]:
            own = [one for one in _listed(question.call.edition) if one["schema"] == schema]
            if not own:
                raise NotFound(f"No schema {schema}.")
            return _json({"items": own})
        case ["shares", _, "schemas", schema, "tables", table, what]:
            return await _of_table(question, (schema, table), what)
    raise NotFound("No such path of Delta Sharing; begin with /delta-sharing/shares.")


async def _of_table(question: DialectQuestion, table: tuple[str, str], what: str) -> DialectReply:
    request, call = question.request, question.call
    versions = await _versions(question)
    first = last = versions[-1].number
    query: dict[str, Any] = {}
    _files(call.edition, table)
    if what == "version":
        if text := request.given("startingTimestamp"):
            first = _number_at(versions, text, "startingTimestamp")
        return _reply(b"", versions[first])
    if what == "query":
        if request.method != "POST":
            raise MethodNotAllowed("POST")
        query = _query(request.body)
        last = _chosen(versions, query).number
    elif what == "changes":
        query = _checked(_bounds(request))
    elif what != "metadata":
        raise NotFound(f"A table has no {what}.")
    if is_changes := what == "changes" or query.get("startingVersion") is not None:
        first, last = _span(versions, query)
    edition = await _edition(question, versions[last])
    files = _files(edition, table)
    lines = [
        {"protocol": {"minReaderVersion": 1}},
        {
            "metaData": {
                "id": str(uuid.uuid5(_NAMESPACE, "/".join(table))),
                "name": table[1],
                "format": {"provider": "parquet"},
                "schemaString": json.dumps(_struct(list(await file_schema(edition, next(iter(files)))))),
                "partitionColumns": [],
                "configuration": {"enableChangeDataFeed": "true"},
            }
        },
    ]
    if is_changes:
        lines += await _changes(question, table, versions, first, last)
    elif what == "query":
        lines += [{"file": await _file(question, edition, versions[last], name)} for name in files]
    return _reply(b"".join(msgspec.json.encode(line) + b"\n" for line in lines), versions[last])


async def _edition(question: DialectQuestion, version: _Version) -> Edition:
    edition = question.call.edition
    if version.edition_id in ("", edition.id):
        return edition
    return await question.service.edition.by_id(version.edition_id)


async def _changes(
    question: DialectQuestion, table: tuple[str, str], versions: list[_Version], first: int, last: int
) -> list[dict[str, Any]]:
    """Each file that a version replaced or left out as `remove`, and each that it brought as `add`.

    So all rows of a changed file are deleted and inserted: the inserts are the file of the version, whole.
    """
    actions: list[dict[str, Any]] = []
    edition, version, before = question.call.edition, versions[first], dict[str, Mapping[str, Any]]()
    if first:
        version = versions[first - 1]
        edition = await _edition(question, version)
        before = _tables(edition).get(table, {})
    for one in versions[first : last + 1]:
        own = await _edition(question, one)
        files = _tables(own).get(table, {})
        moment = {"version": one.number, "timestamp": int(one.at.timestamp() * 1000)}
        for kind, some, others, where in (
            ("remove", before, files, (edition, version)),
            ("add", files, before, (own, one)),
        ):
            changed = [name for name in some if _digest(some, name) != _digest(others, name)]
            actions += [{kind: {**await _file(question, *where, name), **moment}} for name in changed]
        edition, version, before = own, one, files
    return actions


def _digest(files: Mapping[str, Mapping[str, Any]], name: str) -> str | None:
    return files[name]["sha256"] if name in files else None


async def _versions(question: DialectQuestion) -> list[_Version]:
    """Every version, oldest first. Those of removed editions keep their numbers."""
    lock, service = question.call.lock, question.service
    if lock is not None:
        return [_Version(0, datetime.combine(lock, time(), UTC), "")]
    published = await asyncio.to_thread(service.datastore.published)
    logged = await asyncio.to_thread(service.datastore.log.published)
    published_at = {edition_id: at for at, edition_id in reversed(logged)}
    ids = {*published, question.call.edition.id}
    in_order = sorted((published_at.get(one) or last_capture(one), one) for one in ids)
    versions = [_Version(number, *one) for number, one in enumerate(in_order)]
    current = next(one.number for one in versions if one.edition_id == question.call.edition.id)
    return versions[: current + 1]  # a later one may be published and not yet served


def _query(body: bytes) -> dict[str, Any]:
    try:
        query = json.loads(body or b"{}")
    except ValueError:
        query = None
    if not isinstance(query, dict):
        raise BadRequest("The body of a query must be a JSON object.")
    return _checked(query)


def _checked(query: dict[str, Any]) -> dict[str, Any]:
    for name in ("version", "limitHint", "startingVersion", "endingVersion"):
        number = query.get(name)
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
            raise InvalidParameter(name, "expected a whole number")
    return query


def _bounds(request: DialectRequest) -> dict[str, Any]:
    """The bounds of a question for changes, as in the body of a query."""
    names = "startingVersion endingVersion startingTimestamp endingTimestamp".split()
    given = {name: text for name in names if (text := request.given(name))}
    return {
        name: int(text) if name.endswith("Version") and text.isascii() and text.isdigit() else text
        for name, text in given.items()
    }


def _span(versions: list[_Version], query: Mapping[str, Any]) -> tuple[int, int]:
    """The first and the last version whose changes are asked for. Raises InvalidParameter."""
    newest = versions[-1].number
    bounds: list[int | None] = []
    for name in ("starting", "ending"):
        number, at = query.get(f"{name}Version"), query.get(f"{name}Timestamp")
        if number is not None and at is not None:
            raise InvalidParameter(f"{name}Timestamp", f"beside `{name}Version`: send one of them")
        bounds.append(number if at is None else _number_at(versions, at, f"{name}Timestamp"))
    first, last = bounds
    if first is None:
        raise InvalidParameter("startingVersion", "required, or `startingTimestamp`")
    if first > newest:
        raise InvalidParameter("startingVersion", f"the newest is {newest}")
    last = newest if last is None else min(last, newest)
    if last < first:
        raise InvalidParameter("endingVersion", f"before the first version asked for, {first}")
    return first, last


def _number_at(versions: list[_Version], text: object, name: str) -> int:
    """The first version from an instant on for `startingTimestamp`; else the last one by then."""
    at = _instant(text, name)
    if name == "startingTimestamp":
        numbers = [one.number for one in versions if one.at >= at][:1]
    else:
        numbers = [one.number for one in versions if one.at <= at][-1:]
    if not numbers:
        raise InvalidParameter(name, f"outside {versions[0].at.isoformat()} to {versions[-1].at.isoformat()}")
    return numbers[0]


def _chosen(versions: list[_Version], query: Mapping[str, Any]) -> _Version:
    """The version named in a query, or the newest. Raises InvalidParameter."""
    number, timestamp = query.get("version"), query.get("timestamp")
    if number is not None and timestamp is not None:
        raise InvalidParameter("timestamp", "together with `version`: send only one of them")
    if timestamp is not None:
        number = _number_at(versions, timestamp, "timestamp")
    elif number is not None and number >= len(versions):
        raise InvalidParameter("version", f"the newest is {versions[-1].number}")
    return versions[-1 if number is None else number]


def _instant(text: object, name: str) -> datetime:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        raise InvalidParameter(name, "expected an instant such as 2024-06-30T12:00:00Z") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _share() -> dict[str, str]:
    return {"name": _SHARE, "id": str(uuid.uuid5(_NAMESPACE, _SHARE))}


def _tables(edition: Edition) -> dict[tuple[str, str], dict[str, Mapping[str, Any]]]:
    """The files of each table, by schema and name; in a locked view only tables with dated rows."""
    tables: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for name, file in sorted(edition.files.items()):
        if edition.lock is None or is_dated(name):
            schema = (file["sku"] or "shared").lower()
            tables.setdefault((schema, table_name(name)), {})[name] = file
    return tables


def _listed(edition: Edition) -> list[dict[str, str]]:
    return [
        {
            "name": name,
            "schema": schema,
            "share": _SHARE,
            "id": str(uuid.uuid5(_NAMESPACE, f"{schema}/{name}")),
        }
        for schema, name in sorted(_tables(edition))
    ]


def _files(edition: Edition, table: tuple[str, str]) -> dict[str, Mapping[str, Any]]:
    files = _tables(edition).get(table)
    if files is None:
        raise NotFound(f"No table {'.'.join((_SHARE, *table))}.")
    return files


async def _file(question: DialectQuestion, edition: Edition, version: _Version, name: str) -> dict[str, Any]:
    """One file of a table, with an address that is valid for some minutes."""
    call, file = question.call, edition.files[name]
    if file["min_tier"] is not None:
        call.grant.requires_paid(f"The table {table_name(name)}")
    size, rows, digest = file["size_bytes"], file["row_count"], file["sha256"]
    if call.lock is not None:
        of_day = await day_file(edition, name)
        size, rows, digest = len(of_day.content), of_day.row_count, of_day.sha256
    until = question.service.clock() + SIGNED_FOR
    pinned = f"edition={version.edition_id}" if version.edition_id else ""
    folder, query = OPEN_FILES, pinned
    if file["access"] != "open" or call.lock is not None:
        cursors = question.service.cursors
        signature = sign_file(cursors, call.grant, name, version.edition_id, call.lock, until)
        folder, query = LICENSED_FILES, f"{pinned}&signature={signature}".removeprefix("&")
    return {
        "url": f"{call.base_url}{folder}{name}?{query}",
        "id": digest[:32],
        "partitionValues": {},
        "size": size,
        "stats": json.dumps({"numRecords": rows}),
        "expirationTimestamp": int(until.timestamp() * 1000),
    }


def _struct(fields: "list[pyarrow.Field]") -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {"name": field.name, "type": _type(field.type), "nullable": True, "metadata": {}}
            for field in fields
        ],
    }


def _type(kind: "pyarrow.DataType") -> Any:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return _struct(list(kind))
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _type(kind.value_type), "containsNull": True}
    if pa.types.is_timestamp(kind):
        return "timestamp"
    words = {"int64": "long", "int32": "integer", "bool": "boolean", "date32[day]": "date"}
    return words.get(str(kind), str(kind))


def _json(body: object) -> DialectReply:
    return DialectReply(msgspec.json.encode(body))


def _reply(body: bytes, version: _Version) -> DialectReply:
    headers = ((b"delta-table-version", b"%d" % version.number), _FORMAT)
    return DialectReply(body, _NDJSON, headers=headers, cached=False)


def _refuse(problem: Problem, _: DialectRequest) -> DialectReply:
    code = HTTPStatus(problem.status).name
    return DialectReply(
        msgspec.json.encode({"errorCode": code, "message": problem.detail}), status=problem.status
    )


DIALECT: Final = Dialect(
    "delta-sharing", ("/delta-sharing",), _answer, _refuse, methods=("GET", "HEAD", "POST")
)
