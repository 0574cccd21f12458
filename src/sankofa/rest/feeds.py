"""Atom feeds (RFC 4287): an operation's rows as entries, newest first, under the operation's own rules."""

from collections.abc import Iterable
from decimal import Decimal
from html import escape
from typing import Any, Final
from urllib.parse import quote

import msgspec

from sankofa.edition.format.keys import ENTITIES
from sankofa.edition.read.edition import Edition
from sankofa.model.errors import NotFound
from sankofa.operations.answers import Headers
from sankofa.operations.contract import Answer, Call, Operation, endpoints, printable
from sankofa.rest.formats import ResponseFormat
from sankofa.rest.request import EndpointRoute

FOLDER: Final = "/feeds/"
ATOM: Final = ResponseFormat("application/atom+xml", "atom")
_OF_ALL: Final = "/feeds/restatements.atom"
_OF_ONE: Final = "/feeds/company/"
_END: Final = ".atom"
_OPERATION: Final = "get_restatements"
_read: Final = msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal).decode


def feed_route(path: str) -> EndpointRoute:
    """The operation behind a feed. Raises NotFound."""
    operation = next(one for one in endpoints() if one.name == _OPERATION)
    if path == _OF_ALL:
        return EndpointRoute(operation, {}, path, ATOM)
    if path.startswith(_OF_ONE) and path.endswith(_END):
        service_id = path.removeprefix(_OF_ONE).removesuffix(_END)
        return EndpointRoute(operation, {"service_id": service_id}, path, ATOM)
    raise NotFound("No such feed; see /openapi.json.")


async def check_subject(route: EndpointRoute, edition: Edition) -> None:
    """Raises NotFound for the feed of an organisation that nobody knows."""
    service_id = route.path.get("service_id")
    if service_id is not None and not await edition.holds(ENTITIES, service_id.upper()):
        raise NotFound(f"No organisation with service_id {printable(service_id)}.")


def atom(operation: Operation, answer: Answer, call: Call, target: str) -> tuple[Headers, bytes]:
    """The rows of an answer as a feed; `target` is the path and query it was asked by."""
    rows = _read(b"[%b]" % answer.selection.rows)
    address = f"{call.base_url}{target}"
    updated = rows[0]["available_at"] if rows else call.day_asked(None).isoformat()
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<id>{escape(address)}</id>",
        f"<title>{escape(_title(target, rows))}</title>",
        f"<updated>{updated}T00:00:00Z</updated>",
        f'<link rel="self" type="application/atom+xml" href="{escape(address)}"/>',
        "<author><name>Sankofa</name></author>",
        f"<rights>{escape(operation.notice(answer, call.edition).text)}</rights>",
        *(line for row in rows for line in _entry(row, call.base_url)),
        "</feed>",
        "",
    ]
    return [(b"content-type", b"application/atom+xml; charset=utf-8")], "\n".join(lines).encode()


def _title(target: str, rows: list[dict[str, Any]]) -> str:
    if rows and target.startswith(_OF_ONE):
        return f"Restatements of {rows[0]['legal_name'] or rows[0]['service_id']}"
    return "Restatements"


def _entry(row: dict[str, Any], base_url: str) -> Iterable[str]:
    unit = f" {row['unit']}" if row["unit"] else ""
    before, after = (
        "withdrawn" if row[name] is None else f"{row[name]}{unit}" for name in ("value_before", "value_after")
    )
    change = "" if row["change"] is None else f" Change: {row['change']}."
    page = f"{base_url}/company/{row['service_id']}/figure?line_item={quote(row['line_item'])}"
    name = row["legal_name"] or row["service_id"]
    title = f"{name}: {row['line_item']} of {row['period_end']} restated from {before} to {after}"
    summary = (
        f"Reported on {row['available_before']} as {before}, on {row['available_at']} as {after} "
        f"(vintage {row['vintage']}).{change} Source: {row['source_ref']} ({row['license_class']})."
    )
    item = escape(row["line_item"])
    yield "<entry>"
    yield f"<id>urn:sankofa:restatement:{escape(row['record_ref'])}</id>"
    yield f"<title>{escape(title)}</title>"
    yield f"<updated>{row['available_at']}T00:00:00Z</updated>"
    yield f'<link rel="alternate" type="text/html" href="{escape(page)}"/>'
    yield f'<category term="{item}"/>'
    yield f"<summary>{escape(summary)}</summary>"
    yield "</entry>"
