"""The ASGI application of the pages: a request in, HTML out, under the visitor's key (contract: WEB-1)."""

import asyncio
import hashlib
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from sankofa.access.domains import Site
from sankofa.access.owner import SIGN_IN
from sankofa.access.tiers import Grant
from sankofa.model.errors import (
    InvalidParameter,
    MethodNotAllowed,
    NotFound,
    Problem,
    RateLimited,
    StoreUnavailable,
)
from sankofa.operations.answers import Headers, problem_headers
from sankofa.operations.contract import EDITION, Call
from sankofa.operations.locked import locked, narrower, refuse_edition
from sankofa.operations.service import Exchange, Receive, Response, Scope, Send, Service
from sankofa.web.data import cited_sources
from sankofa.web.jobs import OPERATOR
from sankofa.web.languages import language
from sankofa.web.responses import (
    ACTIONS,
    EMBED_HEADERS,
    HTML,
    LINKS,
    PAGE_HEADERS,
    PICTURES,
    PUBLIC_HEADERS,
    PageCache,
    Written,
    asset_response,
    chart_file,
    encoded,
)
from sankofa.web.view import ASSETS, Page, Routes, View, write_page, write_problem
from sankofa.web.visit import EMBED, LANGUAGE_COOKIE, PageRequest, Visit, embedded, key_cookie, read_request

_NOT_OURS: Final = ("/v1/", "/open/", "/feeds/", "/mcp", "/health", "/openapi.json")
_ALSO_TEXT: Final = ("/problems/", "/methodology/")
"""Addresses that return a page to browsers and text to every other client."""


class WebApp:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._routes = Routes()
        self._cache = PageCache()

    def answers(self, scope: Scope) -> bool:
        """Whether a request is for a page. A browser on an unknown path gets a page that says so."""
        path: str = scope["path"]
        if path.startswith(_NOT_OURS):
            return False
        if any(name == b"accept" and b"text/html" in value for name, value in scope["headers"]):
            return True
        is_ours = path.startswith((ASSETS, PICTURES, SIGN_IN, OPERATOR, EMBED, LINKS))
        return is_ours or (not path.startswith(_ALSO_TEXT) and self._routes.find(path) is not None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(self._service, scope, "page")
        await exchange.answer(await self._respond(exchange, receive), receive, send)

    async def _respond(self, exchange: Exchange, receive: Receive) -> Response:
        scope = exchange.scope
        request: PageRequest | None = None
        visit: Visit | None = None
        try:
            if scope["path"].startswith((ASSETS, PICTURES)):
                return asset_response(scope["path"])
            request = read_request(scope)
            action = ACTIONS.get((request.method, request.path))
            if action is not None and (request.at is None or request.path == "/key"):
                site, request = await self._on_site(request)
                return await action(self._service, site, request, scope, receive)
            if request.path == SIGN_IN and request.at is None:  # HEAD would use up the code
                raise MethodNotAllowed("GET")
            if request.path.startswith(EMBED):
                request = embedded(request)
            route = self._routes.find(request.path)
            if route is None:
                raise NotFound("There is no page at this address.")
            if request.method not in ("GET", "HEAD"):
                raise MethodNotAllowed("GET, HEAD")
            site, request = await self._on_site(request)
            page, parameters = route
            visit = Visit(request, site, self._service, parameters, page.takes)
            return await self._page(page, visit, exchange)
        except Exception as failure:
            if request is not None and request.api_key:  # a wrong key in a cookie counts as a guess, too
                header = (b"x-api-key", request.api_key.encode("latin-1", "replace"))
                scope = {**scope, "headers": [*scope["headers"], header]}
            problem = await self._service.refusal(failure, scope, exchange.request_id)
            return self._problem(problem, request, visit, exchange)

    async def _on_site(self, request: PageRequest) -> tuple[Site, PageRequest]:
        """The site of the request's host, and the request with the name of its key cookie."""
        site = await self._service.domains.site(request.host)
        return site, replace(request, key_cookie=key_cookie(site.base_url))

    async def _page(self, page: Page, visit: Visit, exchange: Exchange) -> Response:
        grant = None
        if page.needs_key:
            own_key = visit.request.api_key or visit.site.settings.sandbox_key
            grant = await self._service.keys.authenticate(own_key)
            visit.site.admit(grant)
        visit.lock = narrower(visit.request.at, grant, self._service.clock())
        written = self._cached_page(page, visit, grant)
        if written is None:
            await self._count(page, visit, grant, exchange)
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

    def _cached_page(self, page: Page, visit: Visit, grant: Grant | None) -> Written | None:
        """A cached page of the current edition: free for visitors without a key."""
        if not page.cached or not visit.sandbox or "edition" in visit.request.query:
            return None
        edition_id = locked(self._service.edition.get(), visit.lock).id if grant else ""
        return self._cache.get(_cache_key(visit, edition_id, grant))

    async def _count(self, page: Page, visit: Visit, grant: Grant | None, exchange: Exchange) -> None:
        """Count one request of the visitor's key, or of the address without one. Raises RateLimited."""
        service = self._service
        refusal: RateLimited | None = None
        if grant is not None and not visit.sandbox:
            exchange.usage, refusal = await service.quotas.count(grant)
            visit.usage = exchange.usage
        elif grant is not None:
            visit.usage, refusal = await service.addresses.visit(service.address_of(exchange.scope))
        elif visit.given("q"):  # documents are few, possible searches are not
            with suppress(StoreUnavailable):
                _, refusal = await service.addresses.visit(service.address_of(exchange.scope))
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
        visit.started = Call(
            edition,
            grant,
            visit.today,
            service.cursors,
            service.edition.for_cursor,
            visit.base_url,
            service.edition.to_compare,
            requested is not None,
        )
        return edition.id

    async def _build(self, page: Page, visit: Visit) -> Written:
        view = await page.build(visit)
        if view.redirect is not None:
            return Written(303, b"", ((b"location", (visit.prefix + view.redirect).encode()),), "")
        chart = visit.request.query.get("chart")
        if visit.request.embed and view.charts:
            shown = view.chart(chart or view.charts[0].name, drawn=True)
            view = View("embed.html", view.title, {"chart": shown, "sources": await cited_sources(visit)})
        elif chart is not None:
            uncut = await visit.rows_uncut() if visit.cuts else 0
            return await asyncio.to_thread(chart_file, view, chart, visit, uncut)
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

    async def _reply(self, page: Page, written: Written, visit: Visit) -> Response:
        public = PUBLIC_HEADERS if _is_for_all(page, visit) else PAGE_HEADERS
        headers = [*written.headers, *(EMBED_HEADERS if visit.request.embed else public)]
        headers += visit.usage.headers if visit.usage is not None else ()
        chosen = visit.request.query.get("lang")
        if chosen is not None and not visit.request.embed:
            cookie = f"{LANGUAGE_COOKIE}={chosen}; Path=/; Max-Age=31536000; SameSite=Lax"
            headers.append((b"set-cookie", cookie.encode()))
        return await encoded(written, headers, visit.request)

    def _problem(
        self, problem: Problem, request: PageRequest | None, visit: Visit | None, exchange: Exchange
    ) -> Response:
        exchange.problem = problem.slug
        site = visit.site if visit else self._service.domains.own
        own = language(request.language if request else "en")
        body = write_problem(own, request, problem, exchange.request_id, site.settings.upgrade_url).encode()
        headers: Headers = [HTML, *PAGE_HEADERS, *problem_headers(problem)]
        headers += visit.usage.headers if visit is not None and visit.usage is not None else ()
        return Response(problem.status, headers, body)


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
    return edition_id, request.path, request.embed, query, request.language, may, visit.today, visit.base_url
