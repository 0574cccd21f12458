"""Strict reading of a request: header fields, path, query, and the edition it names; and the header fields of
its answer: entity tags, links and deprecations."""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

import msgspec

from sankofa.access.keys import presented_key
from sankofa.access.tiers import Grant
from sankofa.edition.read.edition import Edition
from sankofa.model.errors import Absence, Gone, InvalidParameter, NotFound, SettingsError
from sankofa.operations.contract import (
    EDITION,
    KNOWN_BY,
    NO_ROWS,
    Answer,
    Call,
    Operation,
    no_such_edition,
)
from sankofa.operations.paging import refuse_bad_cursor
from sankofa.operations.parameter_types import JsonSchema
from sankofa.operations.service import Exchange, Head, Response, Service
from sankofa.rest.formats import ResponseFormat


def read_query(query: bytes) -> dict[str, str]:
    """The query parameters. Raises InvalidParameter for a parameter given twice or not in UTF-8."""
    parameters: dict[str, str] = {}
    plain = query.isascii() and b"%" not in query and b"+" not in query
    for part in query.decode("latin-1").split("&") if query else ():
        label, _, text = part.partition("=")
        if not plain:
            label = _decode(label, "(a parameter name)")
            text = _decode(text, label[:64])
        if label in parameters:
            raise InvalidParameter(label[:64], "given more than once")
        if part:
            parameters[label] = text
    return parameters


def _decode(text: str, name: str) -> str:
    try:
        return unquote_to_bytes(text.replace("+", " ").encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise InvalidParameter(name, "not valid UTF-8") from None


class EndpointRoute(NamedTuple):
    """An operation, the parameters in its path, the path as requested, and the format of a feed."""

    operation: Operation
    path: dict[str, str]
    requested_path: str
    feed: ResponseFormat | None = None


async def authenticate(exchange: Exchange, head: Head) -> Grant:
    """The grant of the key; the request is counted against it. Raises Unauthorized or RateLimited."""
    exchange.site = await exchange.service.domains.site(head.host)
    key = presented_key(head.keys, head.authorizations)
    return await exchange.admit(await exchange.service.keys.authenticate(key, head.opens))


class RequestedEdition(NamedTuple):
    """The edition that a request asks for: none, an id, or an instant."""

    id: str | None = None
    known_by: str | None = None
    moment: datetime | None = None

    async def edition(self, service: Service) -> Edition | None:
        """The edition; None if none was published by the instant. Raises Gone or NotFound."""
        if self.moment is not None:
            return await service.edition.known_by(self.moment)
        return service.edition.get() if self.id is None else await service.edition.by_id(self.id)

    async def open(
        self, service: Service, operation: Operation, grant: Grant, today: date, arguments: dict[str, Any]
    ) -> Edition | None:
        """Like `edition`, but checks the cursor first."""
        try:
            return await self.edition(service)
        except (Gone, NotFound):
            if arguments.get("cursor") is not None:
                call = Call(service.edition.get(), grant, today, service.cursors, no_such_edition)
                await refuse_bad_cursor(operation, call, arguments)
            raise


CURRENT: Final = RequestedEdition()
"""No edition is requested: the current one answers."""


def requested_edition(
    in_query: str | None, known_by: str | None, head: Head, now: datetime
) -> RequestedEdition:
    """The edition named in the query or header fields of a request. Raises InvalidParameter."""
    if in_query is None and known_by is None and head.edition is None:
        return CURRENT
    moment = None
    if known_by is not None:
        try:
            moment = KNOWN_BY.kind.read(known_by, now.date())
        except ValueError as failure:
            raise InvalidParameter("known_by", str(failure)) from None
        if moment > now:
            raise InvalidParameter("known_by", "an instant in the future: nothing was published by then yet")
        if in_query is not None or head.edition is not None:
            raise InvalidParameter("known_by", "`edition` names an edition already; send only one of them")
    for name, text in (("edition", in_query), ("X-Edition", head.edition)):
        if text is not None:
            try:
                EDITION.kind.read(text, now.date())
            except ValueError as failure:
                raise InvalidParameter(name, str(failure)) from None
    if in_query is not None and head.edition is not None and in_query != head.edition:
        raise InvalidParameter("edition", "X-Edition names another")
    return RequestedEdition(in_query if in_query is not None else head.edition, known_by, moment)


def echoing_known_by(operation: Operation, asked: RequestedEdition, edition: Edition | None) -> Operation:
    """The operation with `known_by` repeated in its envelope, and without rows if nothing was published."""
    if asked.moment is None:
        return operation

    async def perform(call: Call, **arguments: Any) -> Answer:
        if edition is None:
            answer = _nothing(operation, asked, call, arguments)
        else:
            answer = await operation.perform(call, **arguments)
        return msgspec.structs.replace(answer, members={**answer.members, "known_by": asked.known_by})

    return operation.with_perform(perform)


def _nothing(
    operation: Operation, asked: RequestedEdition, call: Call, arguments: Mapping[str, Any]
) -> Answer:
    members: dict[str, object] = {"next_cursor": None} if "cursor" in operation.parameters else {}
    members |= {
        name: arguments.get(name) or _empty(schema, call) for name, schema in operation.members.items()
    }
    detail = f"No edition of this service was published by {asked.known_by}."
    absent = Absence("nothing_known", detail)
    day = arguments.get("as_of") or call.today if "as_of" in operation.parameters else msgspec.UNSET
    return Answer(NO_ROWS, day, members, edition_id="", absent=absent)


def _empty(schema: JsonSchema, call: Call) -> object:
    """An empty value of the type of an envelope member."""
    types = schema.get("type", "null")
    if "null" in (types if isinstance(types, list) else [types]):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    empty: dict[str, object] = {"array": [], "object": {}, "integer": 0, "number": 0, "boolean": False}
    return str(call.today) if schema.get("format") == "date" else empty.get(types, "")


VARY = (b"vary", b"X-API-Key, Accept, Accept-Encoding")
VARY_BY_EDITION = (b"vary", b"X-Edition")
"""Added to `Vary` if that field chose the edition."""
VARY_BY_AUTHORIZATION = (b"vary", b"Authorization")
"""Added to `Vary` if that field carries the key."""

OpenPage = Callable[[Head, bytes], Awaitable[Response]]
"""Answers a path that needs no key, from the header fields and the query."""


def entity_tag(edition_id: str, path: str, query: bytes, grant: Grant, today: date) -> str:
    """A digest of everything that decides the bytes: edition, query, the key's rights and today's date."""
    request = f"{path} {grant.sample} {grant.row_cap} {today.toordinal()} ".encode() + query
    return f"{edition_id}-{hashlib.blake2b(request, digest_size=9).hexdigest()}"


def next_link(
    base_url: str, path: str, query: bytes, edition_id: str | None, cursor: str
) -> tuple[bytes, bytes]:
    """The header that names the next page: this request with its cursor, and with the edition it named."""
    given = read_query(query) | ({} if edition_id is None else {"edition": edition_id}) | {"cursor": cursor}
    # A cursor needs no quoting, and caching would not help: each is unique.
    pairs = [f"{name}={text if name == 'cursor' else _quoted(text)}" for name, text in given.items()]
    question = "&".join(pairs)
    return b"link", f'<{base_url}{path}?{question}>; rel="next"'.encode()


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return quote(text, safe="")


NOTICE_DAYS = 180


class Deprecation(NamedTuple):
    """An endpoint's day of deprecation, day of removal and successor."""

    since: date
    sunset: date
    successor: str


DEPRECATIONS: Mapping[str, Deprecation] = {}
"""By path of the operation, e.g. `/v1/macro`."""


def deprecation_headers(
    table: Mapping[str, Deprecation], known: Collection[str]
) -> dict[str, list[tuple[bytes, bytes]]]:
    """The header fields of each deprecated endpoint.

    Raises SettingsError for too short a notice, or an unknown path.
    """
    headers = {}
    for path, (since, sunset, successor) in table.items():
        if path not in known:
            raise SettingsError(f"deprecation of {path}: no endpoint has that path")
        if (sunset - since).days < NOTICE_DAYS:
            raise SettingsError(f"deprecation of {path}: {NOTICE_DAYS} days' notice is promised")
        if not successor:
            raise SettingsError(f"deprecation of {path}: it names no successor")
        at = _midnight(sunset)
        headers[path] = [
            (b"deprecation", f"@{int(_midnight(since).timestamp())}".encode()),
            (b"sunset", format_datetime(at, usegmt=True).encode()),
            (b"link", f'<{successor}>; rel="successor-version"'.encode()),
        ]
    return headers


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def same_edition(edition: Edition) -> Callable[[str], Awaitable[Edition]]:
    """Raises InvalidParameter (400) if the cursor belongs to another edition than the request names."""

    async def open_for_cursor(requested: str) -> Edition:
        if requested != edition.id:
            raise InvalidParameter("cursor", "of another edition than the one asked for")
        return edition

    return open_for_cursor
