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
from sankofa.operations.contract import Answer, Call, Operation, printable
from sankofa.operations.locked import operation_named
from sankofa.rest.formats import ResponseFormat
from sankofa.rest.request import EndpointRoute

FOLDER: Final = "/feeds/"
ATOM: Final = ResponseFormat("application/atom+xml", "atom")
_OF_ALL: Final = "/feeds/restatements.atom"
_OF_ONE: Final = "/feeds/company/"
_END: Final = ".atom"
_OF_TENDERS: Final = "/feeds/tenders.atom"
_RESTATEMENTS: Final = "get_restatements"
_TENDERS: Final = "search_tenders"
_read: Final = msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal).decode


def feed_route(path: str) -> EndpointRoute:
    """The operation behind a feed. Raises NotFound."""
    operation = operation_named(_RESTATEMENTS)
    if path == _OF_ALL:
        return EndpointRoute(operation, {}, path, ATOM)
    if path.startswith(_OF_ONE) and path.endswith(_END):
        service_id = path.removeprefix(_OF_ONE).removesuffix(_END)
        return EndpointRoute(operation, {"service_id": service_id}, path, ATOM)
    if path == _OF_TENDERS:
        return EndpointRoute(operation_named(_TENDERS), {}, path, ATOM)
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
    entry = _tender if operation.name == _TENDERS else _restatement
    updated = _instant(rows[0].get("available_at") or rows[0]["release_date"] if rows else str(call.today))
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<id>{escape(address)}</id>",
        f"<title>{escape(_title(target, rows))}</title>",
        f"<updated>{updated}</updated>",
        f'<link rel="self" type="application/atom+xml" href="{escape(address)}"/>',
        "<author><name>Sankofa</name></author>",
        f"<rights>{escape(operation.notice(answer, call.edition).text)}</rights>",
        *(line for row in rows for line in entry(row, call.base_url)),
        "</feed>",
        "",
    ]
    return [(b"content-type", b"application/atom+xml; charset=utf-8")], "\n".join(lines).encode()


def _title(target: str, rows: list[dict[str, Any]]) -> str:
    if rows and target.startswith(_OF_ONE):
        return f"Restatements of {rows[0]['legal_name'] or rows[0]['service_id']}"
    return "Tenders" if target.startswith(_OF_TENDERS) else "Restatements"


def _instant(text: str) -> str:
    """A day or an instant, as the instant that Atom needs."""
    return text if "T" in text else f"{text}T00:00:00Z"


def _tender(row: dict[str, Any], base_url: str) -> Iterable[str]:
    page = f"{base_url}/tender/{row['country']}/{quote(row['ocid'])}"
    amount = "" if row["value_amount"] is None else f" {row['value_amount']} {row['value_currency'] or ''}."
    summary = (
        f"{row['buyer_name'] or 'Buyer unknown'}.{amount} Status: {row['status'] or 'unknown'}. "
        f"Source: {row['source_ref']} ({row['license_class']})."
    )
    yield "<entry>"
    yield f"<id>urn:sankofa:release:{quote(row['ocid'])}:{quote(row['release_id'])}</id>"
    yield f"<title>{escape(row['title'] or row['ocid'])}</title>"
    yield f"<updated>{_instant(row['release_date'])}</updated>"
    yield f'<link rel="alternate" type="text/html" href="{escape(page)}"/>'
    yield from (f'<category term="{escape(tag)}"/>' for tag in row["tag"])
    yield f"<summary>{escape(summary)}</summary>"
    yield "</entry>"


def _restatement(row: dict[str, Any], base_url: str) -> Iterable[str]:
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
