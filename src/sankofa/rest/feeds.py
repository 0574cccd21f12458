"""Atom feeds (RFC 4287): an operation's rows as entries, newest first, under the operation's own rules."""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from sankofa.edition.format.keys import ENTITIES
from sankofa.edition.read.edition import Edition
from sankofa.model.errors import NotFound
from sankofa.model.figures import split_in_words
from sankofa.operations.answers import Headers
from sankofa.operations.contract import Answer, Call, Operation, printable
from sankofa.operations.locked import operation_named
from sankofa.rest.formats import ResponseFormat
from sankofa.rest.request import EndpointRoute

FOLDER: Final = "/feeds/"
ATOM: Final = ResponseFormat("application/atom+xml", "atom")
MEDIA_TYPE: Final = (b"content-type", b"application/atom+xml; charset=utf-8")
_OF_ALL: Final = "/feeds/restatements.atom"
_OF_ONE: Final = "/feeds/company/"
_END: Final = ".atom"
_OF_TENDERS: Final = "/feeds/tenders.atom"
_RESTATEMENTS: Final = "get_restatements"
_TENDERS: Final = "search_tenders"
_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_IN_ADDRESS: Final = "/?:@!$&'()*+,;=~%"
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
    """Raises NotFound for the feed of an unknown organisation."""
    service_id = route.path.get("service_id")
    if service_id is not None and not await edition.holds(ENTITIES, service_id.upper()):
        raise NotFound(f"No organisation with service_id {printable(service_id)}.")


def atom(operation: Operation, answer: Answer, call: Call, target: str) -> tuple[Headers, bytes]:
    """The rows of an answer as a feed; `target` is the requested path and query."""
    rows = _read(b"[%b]" % answer.selection.rows)
    updated = _instant(rows[0].get("available_at") or rows[0]["release_date"] if rows else str(call.today))
    entry = _tender if operation.name == _TENDERS else _restatement
    entries = [entry(row, call.base_url) for row in rows]
    terms = operation.notice(answer, call.edition).text
    address = call.base_url + quote(target, safe=_IN_ADDRESS)
    return [MEDIA_TYPE], document(address, _title(target, rows), updated, entries, terms)


class FeedEntry(NamedTuple):
    """One entry of a feed, as plain text."""

    id: str
    title: str
    updated: str
    page: str
    summary: str
    categories: Sequence[str] = ()


def document(address: str, title: str, updated: str, entries: Iterable[FeedEntry], terms: str = "") -> bytes:
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<id>{escape(address)}</id>",
        f"<title>{escape(title)}</title>",
        f"<updated>{updated}</updated>",
        f'<link rel="self" type="application/atom+xml" href="{escape(address)}"/>',
        "<author><name>Sankofa</name></author>",
        *([f"<rights>{escape(terms)}</rights>"] if terms else []),
    ]
    for one in entries:
        lines += [
            "<entry>",
            f"<id>{escape(one.id)}</id>",
            f"<title>{escape(one.title)}</title>",
            f"<updated>{one.updated}</updated>",
            f'<link rel="alternate" type="text/html" href="{escape(one.page)}"/>',
            *(f'<category term="{escape(name)}"/>' for name in one.categories),
            f"<summary>{escape(one.summary)}</summary>",
            "</entry>",
        ]
    return _NOT_IN_XML.sub(" ", "\n".join([*lines, "</feed>", ""])).encode()


def _title(target: str, rows: list[dict[str, Any]]) -> str:
    if rows and target.startswith(_OF_ONE):
        return f"Restatements of {rows[0]['legal_name'] or rows[0]['service_id']}"
    return "Tenders" if target.startswith(_OF_TENDERS) else "Restatements"


def _instant(text: str) -> str:
    """A day or an instant, as the instant that Atom needs."""
    return text if "T" in text else f"{text}T00:00:00Z"


def _tender(row: dict[str, Any], base_url: str) -> FeedEntry:
    amount = "" if row["value_amount"] is None else f" {row['value_amount']} {row['value_currency'] or ''}."
    return FeedEntry(
        f"urn:sankofa:release:{quote(row['ocid'])}:{quote(row['release_id'])}",
        row["title"] or row["ocid"],
        _instant(row["release_date"]),
        f"{base_url}/tender/{row['country']}/{quote(row['ocid'])}",
        f"{row['buyer_name'] or 'Buyer unknown'}.{amount} Status: {row['status'] or 'unknown'}. "
        f"Source: {row['source_ref']} ({row['license_class']}).",
        row["tag"],
    )


def _restatement(row: dict[str, Any], base_url: str) -> FeedEntry:
    unit = f" {row['unit']}" if row["unit"] else ""
    before, after = (
        "withdrawn" if row[name] is None else f"{row[name]}{unit}" for name in ("value_before", "value_after")
    )
    change = "" if row["change"] is None else f" Change: {row['change']}."
    name = row["legal_name"] or row["service_id"]
    ratio = row["split_ratio"]
    split = "" if ratio is None else f" for a split ({split_in_words(Decimal(ratio))})"
    return FeedEntry(
        f"urn:sankofa:restatement:{row['record_ref']}",
        f"{name}: {row['line_item']} of {row['period_end']} restated{split} from {before} to {after}",
        _instant(row["available_at"]),
        f"{base_url}/company/{row['service_id']}/figure?line_item={quote(row['line_item'])}",
        f"Reported on {row['available_before']} as {before}, on {row['available_at']} as {after} "
        f"(vintage {row['vintage']}).{change} Source: {row['source_ref']} ({row['license_class']}).",
        [row["line_item"]],
    )
