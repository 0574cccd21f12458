"""Pages that need no key: health, status, the description, the guide for models, explanations, and the log
of editions under `/log/` (C2SP tlog-tiles), with the same editions as an Atom feed.
"""

import asyncio
import hashlib
import time
from functools import lru_cache, partial
from importlib.resources import files
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from sankofa import __version__
from sankofa.access.domains import Site
from sankofa.derive.cross_rates import methodology as cross_rates_methodology
from sankofa.derive.metrics.contract import methodology, metrics
from sankofa.derive.signals.contract import methodology as panel_methodology
from sankofa.derive.signals.contract import panels
from sankofa.engines.edition_log import LoggedEdition
from sankofa.model import errors
from sankofa.model.catalogue_rows import METHODOLOGY as CROSS_RATES
from sankofa.model.days import instant
from sankofa.model.provenance import LICENSE_NOTICE
from sankofa.operations.answers import (
    JSON,
    NO_STORE,
    RESOURCE_METADATA,
    Headers,
    choose_encoding,
    compressed,
    matching_tag,
)
from sankofa.operations.contract import endpoints, operations, printable
from sankofa.operations.service import Head, Response, Service, build_id
from sankofa.rest.feeds import FeedEntry, document
from sankofa.rest.openapi import describe, examples
from sankofa.rest.request import OpenPage
from sankofa.settings import Settings

_GUIDE: Final = files("sankofa.rest").joinpath("llms.txt").read_text("utf-8")


def guide_for_models(settings: Settings) -> str:
    """The guide for AI models: the datasets, how to present a key, and the address of each."""
    base_url, sandbox = settings.base_url, settings.sandbox_key
    key = f" `{sandbox}` works without signing up, for a few rows." if sandbox else ""
    tools = "\n".join(f"- `{o.tool}`: {o.summary}" for o in operations() if o.tool)
    paths = "\n".join(f"- [{o.path}]({base_url}{o.path}): {o.summary}" for o in endpoints())
    named = {"base_url": base_url, "mcp_url": settings.public_mcp_url, "notice": LICENSE_NOTICE}
    return _GUIDE.format(**named, key=key, tools=tools, paths=paths)


_STATUS_SECONDS = 0.25
_FOR_FIVE_MINUTES = (b"cache-control", b"public, max-age=300")
_FOR_ONE_CLIENT = (b"cache-control", b"private, max-age=300")
_PLAIN = (b"content-type", b"text/plain; charset=utf-8")
_NOSNIFF = (b"x-content-type-options", b"nosniff")


def open_pages(service: Service) -> dict[str, OpenPage]:
    build_id()  # read from files once, because later no file descriptor may be free
    examples()
    pages: dict[str, OpenPage] = {
        "/health": _health,
        "/v1/status": _Status(service),
        "/openapi.json": partial(_description, service),
        "/tls-permission": partial(_tls_permission, service),
        "/llms.txt": partial(_guide_for_models, service),
    }
    for path in ("", "/mcp"):
        pages[RESOURCE_METADATA + path] = partial(_resource_metadata, service, path)
    for problem in problems():
        text = f"# {problem.status} {problem.title}\n\n{problem.__doc__}\n"
        pages[f"/problems/{problem.slug}"] = partial(_explanation, text)
    for metric in metrics():
        pages[f"/methodology/{metric.methodology_ref}"] = partial(_explanation, methodology(metric))
    for panel in panels().values():
        pages[f"/methodology/{panel.methodology_ref}"] = partial(_explanation, panel_methodology(panel))
    pages[f"/methodology/{CROSS_RATES}"] = partial(_explanation, cross_rates_methodology())
    return pages


async def _site(service: Service, head: Head) -> Site:
    """The site of the request's host; the service's own while the key store is down."""
    try:
        return await service.domains.site(head.host)
    except errors.StoreUnavailable:
        return service.domains.own


def problems() -> list[type[errors.Problem]]:
    """Every problem that a surface may answer with, including mounted surfaces."""
    return sorted(errors.Problem.__subclasses__(), key=lambda p: (p.status, p.slug))


async def _health(_: Head, __: bytes) -> Response:
    return Response(200, [JSON, NO_STORE], b'{"status":"ok"}')


class _Status:
    """A real read of each dependency; callers within a quarter of a second share one."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._answer: Response | None = None
        self._until = 0.0

    async def __call__(self, head: Head, _: bytes) -> Response:
        if self._answer is None or time.monotonic() > self._until:
            self._answer = await self._read_dependencies()
            self._until = time.monotonic() + _STATUS_SECONDS
        return self._answer

    async def _read_dependencies(self) -> Response:
        checks = await self._service.probe()
        try:
            edition = self._service.edition.get().id
        except errors.StoreUnavailable as failure:  # data endpoints would not answer either
            edition = None
            checks["datastore"] = (failure.cause, checks["datastore"][1])
        degraded = [name for name, (failure, _) in checks.items() if failure is not None]
        body = {
            "status": "degraded" if degraded else "ok",
            "build": build_id(),
            "version": __version__,
            "edition": edition,
            "time": instant(self._service.clock()),
            "checks": {
                name: {"status": "ok" if failure is None else "failed", "latency_ms": round(took, 3)}
                for name, (failure, took) in checks.items()
            },
            "degraded": degraded,
        }
        headers = [JSON, NO_STORE] + ([(b"retry-after", b"2")] if degraded else [])
        return Response(
            503 if degraded else 200, headers, msgspec.json.encode(body | self._following(degraded))
        )

    def _following(self, degraded: list[str]) -> dict[str, object]:
        """The age of a following node's last contact. It does not change the status code, because old data is
        still served: a load balancer that removed every node would leave no data at all."""
        following = self._service.following()
        if following is None:
            return {}
        state, complaint = following
        age = state.age_seconds(self._service.clock())
        members: dict[str, object] = {
            "following": {
                "edition": state.remote_edition or None,
                "answered_at": state.answered_at or None,
                "age_seconds": None if age is None else round(age, 1),
                "reason": complaint,
            }
        }
        if complaint is not None:
            members |= {"status": "degraded", "degraded": [*degraded, "editions"]}
        return members


async def _description(service: Service, head: Head, _: bytes) -> Response:
    """The OpenAPI document of a host."""
    site = await _site(service, head)
    body, tag = await asyncio.to_thread(_described, site.settings)  # slow the first time
    return await _cacheable(head, [JSON], body, tag, site=site)


@lru_cache(maxsize=64)
def _described(settings: Settings) -> tuple[bytes, str]:
    """The document of a host and its tag."""
    document = msgspec.json.encode(describe(settings))
    return document, hashlib.sha256(document).hexdigest()[:16]


async def _cacheable(
    head: Head, headers: Headers, body: bytes, tag: str | None = None, site: Site | None = None
) -> Response:
    """A document that clients may cache for five minutes and then revalidate.

    Shared caches may store it too, unless it names a customer's host (`site`): a cache that ignores the host
    would give it to everybody.
    """
    tag = tag or hashlib.sha256(body).hexdigest()[:16]
    encoding = choose_encoding(head.accept_encoding, len(body))
    quoted_tag = f'"{tag}.{encoding}"' if encoding else f'"{tag}"'
    caching = [
        _FOR_ONE_CLIENT if site is not None and site.is_customers else _FOR_FIVE_MINUTES,
        (b"vary", b"Accept-Encoding" if site is None else b"Accept-Encoding, Host"),
        (b"etag", quoted_tag.encode()),
    ]
    if matching_tag(head.if_none_match, tag):
        return Response(304, caching)
    if encoding:
        caching.append((b"content-encoding", encoding.encode()))
        return Response(200, [*headers, *caching], await compressed(body, encoding))
    return Response(200, [*headers, *caching], body)


async def _resource_metadata(service: Service, path: str, head: Head, _: bytes) -> Response:
    """How to present a key (RFC 9728), of REST or of MCP. There is no authorization server."""
    site = await _site(service, head)
    settings = site.settings
    body = {
        "resource": f"{settings.public_mcp_url}{path}" if path else settings.base_url,
        "resource_name": "Sankofa",
        "resource_documentation": f"{settings.base_url}/llms.txt",
        "bearer_methods_supported": ["header"],
        "api_key_methods_supported": ["X-API-Key", "Authorization: Bearer"],
    }
    return await _cacheable(head, [JSON], msgspec.json.encode(body), site=site)


async def _tls_permission(service: Service, _: Head, query: bytes) -> Response:
    """Tells a proxy with on-demand TLS (such as Caddy) whether to get a certificate: 200 for yes.

    A request to that host would reveal the same.
    """
    given = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    for name, _value in given:
        if name != "domain":
            raise errors.InvalidParameter(printable(name), "no such parameter; expected: domain")
    if len(given) != 1 or not given[0][1]:
        raise errors.InvalidParameter("domain", "expected the name of one host")
    if not await service.domains.is_served(given[0][1]):
        raise errors.NotFound("This service is not served on that host: `sankofa domains add` adds it.")
    return Response(200, [JSON, NO_STORE], b'{"permitted":true}')


async def _guide_for_models(service: Service, head: Head, _: bytes) -> Response:
    site = await _site(service, head)
    text = guide_for_models(site.settings)
    return await _cacheable(head, [_PLAIN, _NOSNIFF], text.encode(), site=site)


async def _explanation(page: str, head: Head, _: bytes) -> Response:
    markdown = [(b"content-type", b"text/markdown; charset=utf-8"), _NOSNIFF, (b"vary", b"Accept")]
    return await _cacheable(head, markdown, page.encode())


LOG: Final = "/log/"
FEED: Final = "/feeds/editions.atom"
_CHECKPOINT: Final = "checkpoint"
_STAMP: Final = "checkpoint.tsr"
_MOST_ENTRIES: Final = 100
_ANY_PAGE: Final = (b"access-control-allow-origin", b"*")
_FOR_EVER: Final = (b"cache-control", b"public, max-age=31536000, immutable")
_ASK_AGAIN: Final = (b"cache-control", b"public, no-cache")


def is_of_log(path: str) -> bool:
    return path.startswith(LOG) or path == FEED


async def answer_log(service: Service, path: str, head: Head, _: bytes) -> Response:
    """Raises NotFound, also for a key with a lock."""
    if await service.lock_sent(head.keys, head.authorizations):
        refuse_log()
    if path == FEED:
        base_url = (await service.domains.site(head.host)).base_url
        body = await asyncio.to_thread(_feed, service, base_url)
        return Response(200, [*_of_type("application/atom+xml; charset=utf-8"), _ASK_AGAIN], body)
    name = path.removeprefix(LOG)
    if name == _CHECKPOINT:
        checkpoint = await asyncio.to_thread(service.datastore.log.checkpoint)
        if checkpoint is None:
            raise errors.NotFound("No edition is logged yet.")
        return Response(200, [*_of_type("text/plain; charset=utf-8"), _ASK_AGAIN], checkpoint)
    if name == _STAMP:
        if (stamp := await asyncio.to_thread(service.datastore.log.stamp)) is None:
            raise errors.NotFound("No authority stamped the checkpoint.")
        return Response(200, [*_of_type("application/timestamp-reply"), _ASK_AGAIN], stamp)
    tile = await asyncio.to_thread(lambda: service.datastore.log.tree().tile(name))
    if tile is None:
        raise errors.NotFound("The log has no such tile; /log/checkpoint tells its size.")
    return Response(200, [*_of_type("application/octet-stream"), _FOR_EVER], tile)


def refuse_log() -> None:
    raise errors.NotFound("A locked view has no log, because the log shows later days.")


def _of_type(media_type: str) -> Headers:
    return [(b"content-type", media_type.encode()), _ANY_PAGE, (b"x-content-type-options", b"nosniff")]


def _feed(service: Service, base_url: str) -> bytes:
    """The newest editions, each with the number of rows of its datasets."""
    entries = service.datastore.log.tree().decoded
    logged = [entry for entry in reversed(entries) if isinstance(entry, LoggedEdition)][:_MOST_ENTRIES]
    updated = logged[0].published_at if logged else "1970-01-01T00:00:00Z"
    listed = [
        FeedEntry(
            f"urn:sankofa:edition:{one.edition}",
            f"Edition {one.edition}",
            one.published_at,
            f"{base_url}/editions",
            f"Rows: {_counts(one)}. SHA-256 of the manifest: {one.manifest_sha256}.",
        )
        for one in logged
    ]
    return document(base_url + FEED, "Editions", updated, listed)


def _counts(entry: LoggedEdition) -> str:
    return ", ".join(f"{name} {one['count']}" for name, one in entry.rows.items())
