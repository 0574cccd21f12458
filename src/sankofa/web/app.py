"""The ASGI application of the pages: a request in, HTML out, under the visitor's key (contract: WEB-1)."""

import asyncio
import hashlib
import time
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from sankofa.access.domains import Site
from sankofa.access.owner import SIGN_IN
from sankofa.access.tiers import Grant
from sankofa.model.errors import (
    BadRequest,
    InvalidParameter,
    MethodNotAllowed,
    NotFound,
    Problem,
    RateLimited,
    StoreUnavailable,
)
from sankofa.operations.answers import Headers, common_headers, problem_headers
from sankofa.operations.contract import EDITION, Call
from sankofa.operations.locked import locked, narrower, refuse_edition
from sankofa.operations.service import ObservedRequest, Receive, Scope, Send, Service, send_stream
from sankofa.web.data import cited_sources
from sankofa.web.jobs import COMMANDS, OPERATOR, Jobs
from sankofa.web.languages import language
from sankofa.web.responses import (
    EMBED_HEADERS,
    EVENT_STREAM,
    HTML,
    LINKS,
    PAGE_HEADERS,
    PICTURES,
    PUBLIC_HEADERS,
    SECRET_HEADERS,
    PageCache,
    Reply,
    Written,
    asset_reply,
    chart_reply,
    encoded,
    forget_or_keep_key,
    make_link,
    read_own_form,
    sign_in,
)
from sankofa.web.view import ASSETS, Page, Routes, View, write_page, write_problem
from sankofa.web.visit import EMBED, LANGUAGE_COOKIE, PageRequest, Visit, embedded, key_cookie, read_request

_NOT_OURS: Final = ("/v1/", "/open/", "/feeds/", "/mcp", "/health", "/openapi.json")
_ALSO_TEXT: Final = ("/problems/", "/methodology/")
"""Addresses that return a page to browsers and text to every other client."""
_READ: Final = ("GET", "HEAD")
_VISIT: Final = "sankofa.visit"


class WebApp:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._routes = Routes()
        self._cache = PageCache()

    def answers(self, scope: Scope) -> bool:
        """Whether a request is for a page. A browser on an unknown path gets a page that says so."""
        path: str = scope["path"]
        if path.startswith(_ALSO_TEXT):
            return _accepts_html(scope)
        if path.startswith(_NOT_OURS):
            return False
        if (
            path.startswith((ASSETS, PICTURES, SIGN_IN, OPERATOR, EMBED, LINKS))
            or self._routes.find(path) is not None
        ):
            return True
        return _accepts_html(scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = next(self._service.request_ids)
        observe = self._service.observe
        began = 0.0 if observe is None else time.perf_counter()
        reply = await self._respond(scope, receive, request_id)
        if observe is not None:
            observe(_observed(scope, reply, began, request_id))
        body = reply.body
        headers = [*common_headers(request_id), *reply.headers]
        if reply.stream is not None:
            await send({"type": "http.response.start", "status": reply.status, "headers": headers})
            await send_stream(reply.stream, receive, send)
            return
        if reply.status != 304:
            headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _respond(self, scope: Scope, receive: Receive, request_id: str) -> Reply:
        request: PageRequest | None = None
        visit: Visit | None = None
        try:
            if scope["path"].startswith((ASSETS, PICTURES)):
                return asset_reply(scope["path"])
            request = read_request(scope)
            is_owners = request.path.startswith(OPERATOR) and request.at is None
            if is_owners and (reply := await self._operate(request, receive)) is not None:
                return reply
            if request.path == LINKS and request.at is None and request.method == "POST":
                return await self._link(request, receive)
            if request.path == SIGN_IN and request.at is None:
                return await self._sign_in(request, scope)
            if request.path.startswith(EMBED):
                request = embedded(request)
            route = self._routes.find(request.path)
            if route is None:
                raise NotFound("There is no page at this address.")
            is_form = request.method == "POST" and request.path == "/key" and not request.embed
            if request.method not in _READ and not is_form:
                raise MethodNotAllowed("GET, HEAD")
            site, request = await self._on_site(request)
            if is_form:
                return await forget_or_keep_key(self._service, site, request, scope, receive)
            page, parameters = route
            visit = Visit(request, site, self._service, language(request.language), parameters)
            visit.takes = page.takes
            scope[_VISIT] = visit
            return await self._page(page, visit, scope)
        except Exception as failure:
            if request is not None and request.api_key:  # a wrong key in a cookie counts as a guess, too
                header = (b"x-api-key", request.api_key.encode("latin-1", "replace"))
                scope = {**scope, "headers": [*scope["headers"], header]}
            problem = await self._service.refusal(failure, scope, request_id)
            return self._problem(problem, request, visit, request_id)

    async def _sign_in(self, request: PageRequest, scope: Scope) -> Reply:
        if request.method != "GET":  # HEAD would use up the code
            raise MethodNotAllowed("GET")
        return await sign_in(self._service, *await self._on_site(request), scope)

    async def _on_site(self, request: PageRequest) -> tuple[Site, PageRequest]:
        """The site of the request's host, and the request with the name of its key cookie."""
        site = await self._service.domains.site(request.host)
        return site, replace(request, key_cookie=key_cookie(site.base_url))

    async def _link(self, request: PageRequest, receive: Receive) -> Reply:
        """Make a link and show it once: as a page, or as JSON for a program."""
        site, request = await self._on_site(request)
        address = await make_link(self._service, site, request, receive)
        if b"text/html" not in request.headers.get(b"accept", b""):
            body = msgspec.json.encode({"address": address})
            return Reply(201, [*SECRET_HEADERS, (b"content-type", b"application/json")], body)
        visit = Visit(request, site, self._service, language(request.language), {})
        view = View("link.html", visit.language.text("Link"), {"address": address})
        return Reply(201, [*SECRET_HEADERS, HTML], write_page(view, visit).encode())

    async def _operate(self, request: PageRequest, receive: Receive) -> Reply | None:
        """Start a command for the owner, or stream its output; None for the page itself."""
        is_stream = request.path == f"{OPERATOR}/events" and request.method == "GET"
        if not is_stream and request.method != "POST":
            return None
        site, request = await self._on_site(request)
        grant = await self._service.keys.authenticate(request.api_key or "")
        site.admit(grant)
        if not grant.owner:
            raise NotFound("This page is the owner's.")
        jobs = Jobs(self._service.settings.home)
        if is_stream:
            return Reply(200, [*EVENT_STREAM], b"", stream=jobs.events())
        command = (await read_own_form(request, receive)).get("command", "")
        if request.path != OPERATOR or command not in COMMANDS:
            raise BadRequest(f"Expected command, one of {', '.join(COMMANDS)}.")
        await asyncio.to_thread(jobs.start, command)
        return Reply(303, [*PAGE_HEADERS, (b"location", f"{OPERATOR}#log".encode())], b"")

    async def _page(self, page: Page, visit: Visit, scope: Scope) -> Reply:
        visit.sandbox = not visit.request.api_key
        grant = await self._authenticate(visit) if page.needs_key else None
        visit.lock = narrower(visit.request.at, grant, self._service.clock())
        written = self._cached_page(page, visit, grant)
        if written is None:
            await self._count(page, visit, grant, scope)
            for name in visit.request.query:
                if name not in page.takes:
                    raise InvalidParameter(name[:64], "this page takes no such parameter")
            edition_id = await self._open_edition(visit, grant)
            key = _cache_key(visit, edition_id, grant)
            written = self._cache.get(key) if page.cached else None
            if written is None:
                written = await self._build(page, visit)
                if page.cached and written.status == 200:
                    self._cache.put(key, written)
        return await self._reply(page, written, visit)

    async def _authenticate(self, visit: Visit) -> Grant:
        """The grant of the visitor's key, or of the sandbox key."""
        key = visit.request.api_key or visit.site.settings.sandbox_key
        grant = await self._service.keys.authenticate(key)
        visit.site.admit(grant)
        return grant

    def _cached_page(self, page: Page, visit: Visit, grant: Grant | None) -> Written | None:
        """A cached page of the current edition: free for visitors without a key."""
        if not page.cached or not visit.sandbox or "edition" in visit.request.query:
            return None
        edition_id = locked(self._service.edition.get(), visit.lock).id if grant else ""
        return self._cache.get(_cache_key(visit, edition_id, grant))

    async def _count(self, page: Page, visit: Visit, grant: Grant | None, scope: Scope) -> None:
        """Count one request of the visitor's key, or of the address without one. Raises RateLimited."""
        service = self._service
        refusal: RateLimited | None = None
        if grant is not None and not visit.sandbox:
            visit.grant = grant
            visit.usage, refusal = await service.quotas.count(grant)
        elif grant is not None:
            visit.usage, refusal = await service.visitors.count(service.address_of(scope))
        elif visit.given("q"):  # documents are few, possible searches are not
            with suppress(StoreUnavailable):
                _, refusal = await service.visitors.count(service.address_of(scope))
        if refusal is not None and page.refused:
            raise refusal

    async def _open_edition(self, visit: Visit, grant: Grant | None) -> str:
        """Start the call of the operations. Returns the id of the edition that answers."""
        if grant is None:
            return ""
        service, requested = self._service, visit.request.query.get("edition")
        if requested is not None:
            refuse_edition(visit.lock)
            try:
                EDITION.kind.read(requested, service.today())
            except ValueError as failure:
                raise InvalidParameter("edition", str(failure)) from None
        edition = service.edition.get() if requested is None else await service.edition.by_id(requested)
        edition = locked(edition, visit.lock)
        visit.begin(
            Call(
                edition,
                grant,
                visit.today,
                service.cursors,
                service.edition.for_cursor,
                visit.site.base_url + visit.prefix,
                service.edition.to_compare,
                requested is not None,
            )
        )
        return edition.id

    async def _build(self, page: Page, visit: Visit) -> Written:
        view = await page.build(visit)
        if view.redirect is not None:
            return Written(303, b"", ((b"location", (visit.prefix + view.redirect).encode()),), "")
        chart = visit.request.query.get("chart")
        if visit.request.embed and view.charts:
            view = await _embedded(view, visit, chart or view.charts[0].name)
        elif chart is not None:
            uncut = await visit.rows_uncut() if visit.cuts else 0
            return await asyncio.to_thread(chart_reply, view, chart, visit, uncut)
        elif visit.request.embed:
            raise NotFound("This page has no chart to embed.")
        if visit.cited or visit.filings:
            rows = (await visit.ask("get_sources", shown=False)).rows
            visit.sites = {row["source_id"]: row["url"] or "" for row in rows}
            await visit.find_filers()
        part = visit.request.query.get("part")
        if part is not None and part not in view.parts:
            raise InvalidParameter("part", f"this page has {', '.join(view.parts) or 'no parts'}")
        body = (await asyncio.to_thread(write_page, view, visit, part)).encode()
        return Written(view.status, body, (HTML,), hashlib.blake2b(body, digest_size=12).hexdigest())

    async def _reply(self, page: Page, written: Written, visit: Visit) -> Reply:
        own = EMBED_HEADERS if visit.request.embed else PUBLIC_HEADERS
        is_public = visit.request.embed or _is_for_all(page, visit)
        headers: Headers = [*written.headers, *(own if is_public else PAGE_HEADERS)]
        if visit.usage is not None:
            headers += visit.usage.headers
        chosen = visit.request.query.get("lang")
        if chosen is not None and not visit.request.embed:
            cookie = f"{LANGUAGE_COOKIE}={chosen}; Path=/; Max-Age=31536000; SameSite=Lax"
            headers.append((b"set-cookie", cookie.encode()))
        return await encoded(written, headers, visit.request)

    def _problem(
        self, problem: Problem, request: PageRequest | None, visit: Visit | None, request_id: str
    ) -> Reply:
        site: Site = visit.site if visit else self._service.domains.own
        own = language(request.language if request else "en")
        body = write_problem(own, request, problem, request_id, site.settings.upgrade_url).encode()
        headers: Headers = [HTML, *PAGE_HEADERS, *problem_headers(problem)]
        if visit is not None and visit.usage is not None:
            headers += visit.usage.headers
        return Reply(problem.status, headers, body, problem.slug)


async def _embedded(view: View, visit: Visit, name: str) -> View:
    """A single chart of a page, with a line that names its sources."""
    chart = next((chart for chart in view.charts if chart.name == name and chart.drawing), None)
    if chart is None:
        raise InvalidParameter("chart", "this page has no such chart")
    return View("embed.html", view.title, {"chart": chart, "sources": await cited_sources(visit)})


def _accepts_html(scope: Scope) -> bool:
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


def _observed(scope: Scope, reply: Reply, began: float, request_id: str) -> ObservedRequest:
    visit: Visit | None = scope.get(_VISIT)
    grant = visit.grant if visit is not None else None
    size = len(reply.body)
    return ObservedRequest.of(scope, "page", reply.status, size, began, grant, reply.problem, request_id)


def _is_for_all(page: Page, visit: Visit) -> bool:
    """Whether every visitor of this language gets the same bytes, so that shared caches may store them."""
    request = visit.request
    own = request.api_key or b"cookie" in request.headers or "lang" in request.query
    return page.cached and not page.needs_key and not own and not visit.site.is_customers


def _cache_key(visit: Visit, edition_id: str, grant: Grant | None) -> tuple[object, ...]:
    """Everything that a page depends on. Editions never change, so their pages can be cached."""
    request = visit.request
    may: tuple[object, ...] = (visit.sandbox,)
    if grant:
        may += grant.tier, grant.row_cap, grant.default_rows, grant.owner
    query = tuple(sorted(request.query.items()))
    base_url = visit.site.base_url + visit.prefix
    return edition_id, request.path, request.embed, query, request.language, may, visit.today, base_url
