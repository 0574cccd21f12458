"""The log of editions under `/log/` (C2SP tlog-tiles), and the same editions as an Atom feed.

Both need no key. They tell of every day, so a locked view has neither.
"""

import asyncio
from contextlib import suppress
from html import escape
from typing import Final

from sankofa.access.keys import presented_key
from sankofa.engines.edition_log import LoggedEdition
from sankofa.model.errors import NotFound, Unauthorized
from sankofa.operations.answers import Headers
from sankofa.operations.service import Service
from sankofa.rest.request import Head
from sankofa.rest.response import Response

FOLDER: Final = "/log/"
FEED: Final = "/feeds/editions.atom"
_CHECKPOINT: Final = "checkpoint"
_STAMP: Final = "checkpoint.tsr"
_MOST_ENTRIES: Final = 100
_ANY_PAGE: Final = (b"access-control-allow-origin", b"*")
_FOR_EVER: Final = (b"cache-control", b"public, max-age=31536000, immutable")
_ASK_AGAIN: Final = (b"cache-control", b"public, no-cache")


def is_of_log(path: str) -> bool:
    return path.startswith(FOLDER) or path == FEED


async def answer_log(service: Service, path: str, head: Head, _: bytes) -> Response:
    """Raises NotFound, also for a key with a lock."""
    if head.keys or head.authorizations:
        with suppress(Unauthorized):
            grant = await service.keys.authenticate(presented_key(head.keys, head.authorizations), head.opens)
            if grant.lock is not None:
                refuse_log()
    if path == FEED:
        base_url = (await service.domains.site(head.host)).base_url
        body = await asyncio.to_thread(_feed, service, base_url)
        return Response(200, [*_type("application/atom+xml; charset=utf-8"), _ASK_AGAIN], body)
    name = path.removeprefix(FOLDER)
    if name == _CHECKPOINT:
        checkpoint = await asyncio.to_thread(service.datastore.log.checkpoint)
        if checkpoint is None:
            raise NotFound("No edition is logged yet.")
        return Response(200, [*_type("text/plain; charset=utf-8"), _ASK_AGAIN], checkpoint)
    if name == _STAMP:
        if (stamp := await asyncio.to_thread(service.datastore.log.stamp)) is None:
            raise NotFound("No authority stamped the checkpoint.")
        return Response(200, [*_type("application/timestamp-reply"), _ASK_AGAIN], stamp)
    tile = await asyncio.to_thread(lambda: service.datastore.log.tree().tile(name))
    if tile is None:
        raise NotFound("The log has no such tile; /log/checkpoint tells its size.")
    return Response(200, [*_type("application/octet-stream"), _FOR_EVER], tile)


def refuse_log() -> None:
    raise NotFound("A locked view has no log: it tells of later days.")


def _type(media_type: str) -> Headers:
    return [(b"content-type", media_type.encode()), _ANY_PAGE, (b"x-content-type-options", b"nosniff")]


def _feed(service: Service, base_url: str) -> bytes:
    """The newest editions, each with the number of rows of its datasets."""
    entries = service.datastore.log.tree().decoded()
    logged = [entry for entry in reversed(entries) if isinstance(entry, LoggedEdition)][:_MOST_ENTRIES]
    updated = logged[0].published_at if logged else "1970-01-01T00:00:00Z"
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<id>{escape(base_url + FEED)}</id>",
        "<title>Editions</title>",
        f"<updated>{updated}</updated>",
        f'<link rel="self" type="application/atom+xml" href="{escape(base_url + FEED)}"/>',
        "<author><name>Sankofa</name></author>",
    ]
    for entry in logged:
        rows = ", ".join(f"{name} {one['count']}" for name, one in entry.rows.items())
        lines += [
            "<entry>",
            f"<id>urn:sankofa:edition:{entry.edition}</id>",
            f"<title>Edition {entry.edition}</title>",
            f"<updated>{entry.published_at}</updated>",
            f'<link rel="alternate" type="text/html" href="{escape(base_url)}/editions"/>',
            f"<summary>Rows: {rows}. SHA-256 of the manifest: {entry.manifest_sha256}.</summary>",
            "</entry>",
        ]
    return "\n".join([*lines, "</feed>", ""]).encode()
