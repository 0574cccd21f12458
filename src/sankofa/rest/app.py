"""The ASGI application: every request in, every answer out.

Order of checks (contract: KEY-7): path, method, then 401, 429, 400, 402, 404.
"""

import asyncio
import time
from contextlib import suppress
from datetime import date
from functools import partial
from urllib.parse import parse_qsl, quote, unquote

from msgspec.structs import replace

from sankofa.access.domains import Site
from sankofa.access.keys import presented_key
from sankofa.access.owner import LINK
from sankofa.access.tiers import Grant, Usage
from sankofa.model.errors import (
    InvalidParameter,
    MethodNotAllowed,
    NotFound,
    Problem,
    StoreUnavailable,
)
from sankofa.operations.answers import (
    API_VERSION_FIELD,
    NO_STORE,
    PRIVATE,
    PRIVATE_NO_STORE,
    PROBLEM_JSON,
    RESOURCE_METADATA,
    CachedAnswer,
    Headers,
    problem_body,
    problem_headers,
)
from sankofa.operations.contract import Call, Operation, endpoints
from sankofa.operations.locked import AT, explained, locked, narrower, refuse_edition
from sankofa.operations.nearest import explained_id
from sankofa.operations.proofs import PROOF_OF_ROW, PROVEN, with_proof
from sankofa.operations.service import (
    LONGEST_PATH,
    LONGEST_QUERY,
    Application,
    ObservedRequest,
    Receive,
    Scope,
    Send,
    Service,
    check_target,
    send_stream,
)
from sankofa.rest.feeds import FOLDER, check_subject, feed_route
from sankofa.rest.files import FileRoute, file_response, file_route, preflight
from sankofa.rest.formats import named_format, negotiated_format
from sankofa.rest.openapi import without_later_examples
from sankofa.rest.pages import answer_log, is_of_log, refuse_log
from sankofa.rest.request import (
    CURRENT,
    EndpointRoute,
    Head,
    asked_edition,
    known_then,
    read_head,
    read_query,
)
from sankofa.rest.response import (
    DEPRECATIONS,
    VARY,
    VARY_BY_AUTHORIZATION,
    VARY_BY_EDITION,
    OpenPage,
    Response,
    Streamed,
    deprecation_headers,
    entity_tag,
    matching_tag,
    same_edition,
    write_answer,
)

_READ_METHODS = ("GET", "HEAD")
_ALLOW = "GET, HEAD, OPTIONS"
# Where a request keeps what its observers are told.
_ROUTE, _USAGE, _PROBLEM = "sankofa.route", "sankofa.usage", "sankofa.problem"


class RestApp:
    """Dispatches a request to an operation, an open page or a mounted surface."""

    def __init__(
        self, service: Service, pages: dict[str, OpenPage], mounted: dict[str, Application] | None = None
    ) -> None:
        self._service = service
        self._pages = pages
        self._mounted = mounted or {}
        self._exact: dict[str, EndpointRoute] = {}
        self._under: dict[tuple[str, str], tuple[Operation, str]] = {}
        """By what is before the identifier in a path, and what is behind it."""
        self._deprecated = deprecation_headers(DEPRECATIONS, [o.path for o in endpoints()])
        for operation in endpoints():
            prefix, brace, rest = operation.path.partition("{")
            if brace:
                name, _, behind = rest.partition("}")
                self._under[prefix, behind] = operation, name
            else:
                self._exact[prefix] = EndpointRoute(operation, {}, prefix)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        mounted = self._mounted.get(scope["path"])
        request_id = next(self._service.request_ids)
        if mounted is not None:
            scope["sankofa.request_id"] = request_id
            await mounted(scope, receive, send)
            return
        observe = self._service.observe
        began = 0.0 if observe is None else time.perf_counter()
        response = await self._respond(scope, request_id)
        size = response.size if isinstance(response, Streamed) else len(response.body)
        if observe is not None:
            observe(_observed(scope, response.status, size, began, request_id))
        headers = [
            (b"content-length", b"%d" % size),
            API_VERSION_FIELD,
            (b"x-request-id", request_id.encode()),
            *response.headers,
        ]
        if response.status == 304:
            headers = headers[1:]
        if scope["method"] not in _READ_METHODS:
            headers.append((b"connection", b"close"))  # its body was not read
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if isinstance(response, Response) or scope["method"] == "HEAD":
            body = response.body if isinstance(response, Response) and scope["method"] != "HEAD" else b""
            await send({"type": "http.response.body", "body": body})
            return
        await send_stream(response.chunks, receive, send)

    async def _respond(self, scope: Scope, request_id: str) -> Response | Streamed:
        usage: list[Usage] = []
        scope[_USAGE] = usage
        route: OpenPage | FileRoute | EndpointRoute | None = None
        host = b""
        try:
            head = read_head(scope["headers"])
            host = head.host
            if LINK in scope:
                head = replace(head, opens=scope[LINK])
            path: str = scope["path"]
            if len(path) > LONGEST_PATH or len(scope["query_string"]) > LONGEST_QUERY:
                check_target(scope)
            route = self._exact.get(path) or self._pages.get(path)
            route = route or self._route(path, scope.get("raw_path") or b"")
            scope[_ROUTE] = route
            if scope["method"] not in _READ_METHODS:
                if scope["method"] == "OPTIONS":
                    cors = preflight(route) if isinstance(route, FileRoute) else []
                    return Response(204, [(b"allow", _ALLOW.encode()), *cors], b"")
                raise MethodNotAllowed(_ALLOW)
            if isinstance(route, OpenPage):
                return await self._open_page(route, scope, head)
            if isinstance(route, FileRoute):
                return await file_response(self._service, route, scope, head, usage, self._authenticate)
            return await self._perform(route, scope["query_string"], head, usage, scope.get(AT))
        except Exception as failure:
            problem = await self._service.refusal(failure, scope, request_id)
            return await self._problem(problem, scope, request_id, usage, route, host)

    def _route(self, path: str, raw: bytes) -> EndpointRoute | FileRoute | OpenPage:
        prefix, _, identifier = path.rpartition("/")
        if b"%2" in raw:  # an encoded slash belongs to the identifier
            before, _, last = raw.rpartition(b"/")
            prefix, identifier = unquote(before), unquote(last)
        under = self._under.get((prefix + "/", ""))
        if under is None:
            behind = f"/{identifier}"
            prefix, _, identifier = prefix.rpartition("/")
            under = self._under.get((prefix + "/", behind))
        if under is None or not identifier:
            if is_of_log(path):
                return OpenPage(partial(answer_log, self._service, path))
            if path.startswith(FOLDER):
                return feed_route(path)
            if (file := file_route(path)) is None:
                raise NotFound("No such path; see /openapi.json.")
            return file
        requested = raw.decode("latin-1") if raw else quote(path)  # an encoded slash is another question
        return EndpointRoute(under[0], {under[1]: identifier}, requested)

    async def _open_page(self, page: OpenPage, scope: Scope, head: Head) -> Response:
        at = scope.get(AT)
        if scope["path"] == "/v1/status" and (
            at or await self._service.lock_sent(head.keys, head.authorizations)
        ):
            raise NotFound("A locked view has no status: see /v1/status without a key.")
        if at is None:
            return await page.answer(head, scope["query_string"])
        if is_of_log(scope["path"]):
            refuse_log()
        answer = await page.answer(
            replace(head, accept_encoding=b"", if_none_match=b""), scope["query_string"]
        )
        base_url = (await self._service.domains.site(head.host)).base_url.encode()
        body = answer.body.replace(base_url, b"%b/at/%b" % (base_url, str(at).encode()))
        if scope["path"] == "/openapi.json":
            body = await asyncio.to_thread(without_later_examples, body, at)
        headers = [field for field in answer.headers if field[0] != b"etag"]
        return Response(answer.status, headers, body)

    async def _authenticate(self, site: Site, head: Head, usage: list[Usage]) -> Grant:
        """The grant of the key; the request is counted against it. Raises Unauthorized or RateLimited."""
        key = presented_key(head.keys, head.authorizations)
        grant = await self._service.keys.authenticate(key, head.opens)
        if site.keys is not None:
            site.admit(grant)
        counted, refusal = await self._service.quotas.count(grant)
        usage.append(counted)
        if refusal is not None:
            raise refusal
        return grant

    async def _perform(
        self, route: EndpointRoute, query: bytes, head: Head, usage: list[Usage], at: date | None
    ) -> Response:
        operation, service = route.operation, self._service
        site = await service.domains.site(head.host)
        grant = await self._authenticate(site, head, usage)
        now = service.clock()
        lock = None if at is None and grant.lock is None else narrower(at, grant, now)
        today = lock or now.date()
        base_url = site.base_url if at is None else f"{site.base_url}/at/{at}"
        headers = self._headers(operation, head, usage[0])
        path = route.requested_path
        asked_by = head.accept, head.accept_encoding, head.edition, base_url, grant.sample, grant.row_cap
        key = service.edition.id, path, query, today, lock, *asked_by
        if (known := service.answers.get(key)) is not None:
            return _unless_held(known, head, headers)
        try:
            given = read_query(query)
            asked = asked_edition(given.pop("edition", None), given.pop("known_by", None), head, now)
            name = given.pop("format", None)
            proof = given.pop("proof", None) if operation.name in PROVEN else None
            if route.feed is not None and name is not None:
                raise InvalidParameter("format", "a feed has one format")
            fmt = route.feed or negotiated_format(head.accept)
            if name is not None:
                fmt = named_format(name, head.accept)
            if operation.name == PROOF_OF_ROW:
                operation = with_proof(operation, "true", service)
            elif proof is not None:
                operation = with_proof(operation, proof, service, fmt)
            arguments = operation.read(given, today, route.path)
        except (InvalidParameter, NotFound) as problem:
            given = {**dict(parse_qsl(query.decode("latin-1"))), **route.path}
            refusal = await explained_id(service, grant, operation, problem, given, lock)
            raise explained(refusal, lock) from None
        if asked is not CURRENT:
            refuse_edition(lock)
        operation.admit(grant, arguments)
        if asked is CURRENT:
            edition = locked(service.edition.get(), lock)
        else:
            named = await asked.open(service, operation, grant, today, arguments)
            operation = known_then(operation, asked, named)
            edition = named or service.edition.get()
        if route.feed is not None:
            await check_subject(route, edition)
        tag = entity_tag(edition.id, path, query, grant, today) + ("" if fmt is None else f"-{fmt.tag}")
        held = b"" if operation.live or lock is not None else head.if_none_match.strip()
        if held not in (b"", b"*") and (client_tag := matching_tag(held, tag)) is not None:
            return Response(304, [(b"etag", f'"{client_tag}"'.encode()), *headers], b"")
        call = Call(
            edition,
            grant,
            today,
            service.cursors,
            service.edition.for_cursor if asked is CURRENT else same_edition(edition),
            base_url,
            service.edition.to_compare,
            asked is not CURRENT,
            usage[0],
        )
        answer = await write_answer(
            operation, call, arguments, fmt, tag, head.accept_encoding, asked.id, path, query
        )
        if operation.live:
            return Response(200, [*answer.headers, *headers], answer.body)
        if asked is CURRENT and arguments.get("cursor") is None:
            service.answers.offer(key, answer)
        return _unless_held(answer, head, headers)

    def _headers(self, operation: Operation, head: Head, usage: Usage) -> Headers:
        """The header fields that do not depend on the body."""
        caching = PRIVATE_NO_STORE if operation.live else PRIVATE
        headers = [*usage.headers, caching, VARY, *self._deprecated.get(operation.path, ())]
        if head.edition is not None:
            headers.append(VARY_BY_EDITION)
        if head.authorizations:
            headers.append(VARY_BY_AUTHORIZATION)
        return headers

    async def _problem(
        self,
        problem: Problem,
        scope: Scope,
        request_id: str,
        usage: list[Usage],
        route: OpenPage | FileRoute | EndpointRoute | None,
        host: bytes,
    ) -> Response:
        scope[_PROBLEM] = problem.slug
        site = self._service.domains.own
        with suppress(StoreUnavailable):
            site = await self._service.domains.site(host)
        headers: Headers = [PROBLEM_JSON, *problem_headers(problem, site.base_url + RESOURCE_METADATA)]
        headers += [*usage[0].headers, PRIVATE, VARY] if usage else [NO_STORE]
        if isinstance(route, EndpointRoute):
            headers += self._deprecated.get(route.operation.path, ())
        requested = scope["path"] if scope.get(AT) is None else f"/at/{scope[AT]}{scope['path']}"
        instance = quote(requested, safe="/:@!$&'()*+,;=")  # a URI reference, whatever the client sent
        body = problem_body(problem, site.base_url, instance, request_id)
        return Response(problem.status, headers, body)


def _unless_held(answer: CachedAnswer, head: Head, headers: Headers) -> Response:
    """The answer; a 304 if the client holds it."""
    if head.if_none_match and (tag := matching_tag(head.if_none_match, answer.tag)) is not None:
        return Response(304, [(b"etag", f'"{tag}"'.encode()), *headers], b"")
    return Response(200, [*answer.headers, *headers], answer.body)


def _observed(scope: Scope, status: int, size: int, began: float, request_id: str) -> ObservedRequest:
    route: OpenPage | FileRoute | EndpointRoute | None = scope.get(_ROUTE)
    if isinstance(route, EndpointRoute):
        operation = route.operation.name
    else:
        operation = "unknown" if route is None else "page" if isinstance(route, OpenPage) else "file"
    usage: list[Usage] = scope[_USAGE]
    grant = usage[0].grant if usage else None
    problem = scope.get(_PROBLEM, "")
    return ObservedRequest.of(scope, operation, status, size, began, grant, problem, request_id)
