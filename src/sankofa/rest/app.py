"""The ASGI application: every request in, every answer out.

Order of checks (contract: KEY-7): path, method, then 401, 429, 400, 402, 404.
"""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from msgspec.structs import replace

from sankofa.access.owner import LINK
from sankofa.access.tiers import Usage
from sankofa.model.days import iso_day
from sankofa.model.errors import (
    InvalidParameter,
    MethodNotAllowed,
    NotFound,
    Problem,
    StoreUnavailable,
)
from sankofa.operations.answers import (
    JSON,
    NO_STORE,
    PRIVATE,
    PRIVATE_NO_STORE,
    PROBLEM_JSON,
    RESOURCE_METADATA,
    CachedAnswer,
    Headers,
    body_digest,
    choose_encoding,
    compressed,
    envelope,
    matching_tag,
    problem_body,
    problem_headers,
)
from sankofa.operations.contract import Call, Operation, endpoints
from sankofa.operations.locked import AT, explained, locked, narrower, perform, refuse_edition
from sankofa.operations.nearest import explained_id
from sankofa.operations.proofs import PROOF_OF_ROW, PROVEN, with_proof
from sankofa.operations.service import (
    LONGEST_PATH,
    LONGEST_QUERY,
    Application,
    Exchange,
    Head,
    Receive,
    Response,
    Scope,
    Send,
    Service,
    check_target,
    read_head,
)
from sankofa.rest.feeds import ATOM, FOLDER, atom, check_subject, feed_route
from sankofa.rest.files import FileRoute, file_response, file_route, preflight
from sankofa.rest.formats import ARROW, CSV, ResponseFormat, named_format, negotiated_format
from sankofa.rest.openapi import without_later_examples
from sankofa.rest.pages import answer_log, is_of_log, refuse_log
from sankofa.rest.request import (
    CURRENT,
    DEPRECATIONS,
    VARY,
    VARY_BY_AUTHORIZATION,
    VARY_BY_EDITION,
    EndpointRoute,
    OpenPage,
    authenticate,
    deprecation_headers,
    echoing_known_by,
    entity_tag,
    next_link,
    read_query,
    requested_edition,
    same_edition,
)

_READ_METHODS = ("GET", "HEAD")
_ALLOW = "GET, HEAD, OPTIONS"


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
        """By the parts of a path before and after the identifier."""
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
        if (mounted := self._mounted.get(scope["path"])) is not None:
            await mounted(scope, receive, send)
            return
        exchange = Exchange(self._service, scope)
        exchange.body_read = scope["method"] in _READ_METHODS
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
            response = await self._respond(route, exchange, head)
        except Exception as failure:
            problem = await self._service.refusal(failure, scope, exchange.request_id)
            response = await self._problem(problem, exchange, route, host)
        await exchange.answer(response, receive, send)

    async def _respond(
        self, route: OpenPage | FileRoute | EndpointRoute, exchange: Exchange, head: Head
    ) -> Response:
        if isinstance(route, EndpointRoute):
            exchange.operation = route.operation.name
        else:
            exchange.operation = "file" if isinstance(route, FileRoute) else "page"
        if not exchange.body_read:
            if exchange.scope["method"] == "OPTIONS":
                cors = preflight(route) if isinstance(route, FileRoute) else []
                return Response(204, [(b"allow", _ALLOW.encode()), *cors])
            raise MethodNotAllowed(_ALLOW)
        if isinstance(route, EndpointRoute):
            return await self._perform(route, exchange, head)
        if isinstance(route, FileRoute):
            return await file_response(exchange, route, head)
        return await self._open_page(route, exchange.scope, head)

    def _route(self, path: str, raw: bytes) -> EndpointRoute | FileRoute | OpenPage:
        # an encoded slash belongs to the identifier
        parts = [*map(unquote, raw.rsplit(b"/", 2))] if b"%2" in raw else path.rsplit("/", 2)
        head, middle, last = ["", "", *parts][-3:]  # the target of a tunnel has no slash
        under, identifier = self._under.get((f"{head}/{middle}/", "")), last
        if under is None:
            under, identifier = self._under.get((f"{head}/", f"/{last}")), middle
        if under is None or not identifier:
            if is_of_log(path):
                return partial(answer_log, self._service, path)
            if path.startswith(FOLDER):
                return feed_route(path)
            if (file := file_route(path)) is None:
                raise NotFound("No such path; see /openapi.json.")
            return file
        requested = raw.decode("latin-1") if raw else quote(path)  # an encoded slash makes another path
        return EndpointRoute(under[0], {under[1]: identifier}, requested)

    async def _open_page(self, page: OpenPage, scope: Scope, head: Head) -> Response:
        at = scope.get(AT)
        if scope["path"] == "/v1/status" and (
            at or await self._service.lock_sent(head.keys, head.authorizations)
        ):
            raise NotFound("A locked view has no status: see /v1/status without a key.")
        if at is None:
            return await page(head, scope["query_string"])
        if is_of_log(scope["path"]):
            refuse_log()
        answer = await page(replace(head, accept_encoding=b"", if_none_match=b""), scope["query_string"])
        base_url = (await self._service.domains.site(head.host)).base_url.encode()
        body = answer.body.replace(base_url, b"%b/at/%b" % (base_url, str(at).encode()))
        if scope["path"] == "/openapi.json":
            body = await asyncio.to_thread(without_later_examples, body, at)
        headers = [field for field in answer.headers if field[0] != b"etag"]
        return Response(answer.status, headers, body)

    async def _perform(self, route: EndpointRoute, exchange: Exchange, head: Head) -> Response:
        operation, service = route.operation, self._service
        query, at = exchange.scope["query_string"], exchange.scope.get(AT)
        grant = await authenticate(exchange, head)
        now = service.clock()
        lock = at if grant.lock is None else narrower(at, grant, now)
        today = lock or now.date()
        base_url = exchange.site.settings.base_url
        if at is not None:
            base_url += f"/at/{iso_day(at.toordinal())}"
        path = route.requested_path
        asked_by = head.accept, head.accept_encoding, head.edition, base_url, grant.sample, grant.row_cap
        key = service.edition.id, path, query, today, lock, *asked_by
        known = service.answers.get(key)
        headers = self._headers(operation, head, exchange.usage)
        if known is not None:
            return _unless_held(known, head, headers)
        try:
            given = read_query(query)
            asked, fmt = CURRENT, route.feed or negotiated_format(head.accept)
            if head.edition is not None or not given.keys() <= operation.query.keys():
                asked = requested_edition(given.pop("edition", None), given.pop("known_by", None), head, now)
                if (name := given.pop("format", None)) is not None:
                    if route.feed is not None:
                        raise InvalidParameter("format", "a feed has one format")
                    fmt = named_format(name, head.accept)
                if operation.name in PROVEN and (proof := given.pop("proof", None)) is not None:
                    operation = with_proof(operation, proof, service, fmt)
            if operation.name == PROOF_OF_ROW:
                operation = with_proof(operation, "true", service)
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
            operation = echoing_known_by(operation, asked, named)
            edition = named or service.edition.get()
        if route.feed is not None:
            await check_subject(route, edition)
        tag = ""  # in a locked view: a digest of the body
        if lock is None:
            tag = entity_tag(edition.id, path, query, grant, today) + ("" if fmt is None else f"-{fmt.tag}")
            held = b"" if operation.live else head.if_none_match.strip()
            if held not in (b"", b"*") and (client_tag := matching_tag(held, tag)) is not None:
                return Response(304, [(b"etag", f'"{client_tag}"'.encode()), *headers])
        call = Call(
            edition,
            grant,
            today,
            service.cursors,
            service.edition.for_cursor if asked is CURRENT else same_edition(edition),
            base_url,
            service.edition.to_compare,
            asked is not CURRENT,
            exchange.usage,
        )
        answer = await _write_answer(
            operation, call, arguments, fmt, tag, head.accept_encoding, asked.id, path, query
        )
        if operation.live:
            return Response(200, [*answer.headers, *headers], answer.body)
        if asked is CURRENT and arguments.get("cursor") is None:
            service.answers.offer(key, answer)
        return _unless_held(answer, head, headers)

    def _headers(self, operation: Operation, head: Head, usage: Usage | None) -> Headers:
        """The header fields independent of the body."""
        caching = PRIVATE_NO_STORE if operation.live else PRIVATE
        headers = [
            *(usage.headers if usage else []),
            caching,
            VARY,
            *self._deprecated.get(operation.path, ()),
        ]
        if head.edition is not None:
            headers.append(VARY_BY_EDITION)
        if head.authorizations:
            headers.append(VARY_BY_AUTHORIZATION)
        return headers

    async def _problem(
        self,
        problem: Problem,
        exchange: Exchange,
        route: OpenPage | FileRoute | EndpointRoute | None,
        host: bytes,
    ) -> Response:
        exchange.problem, scope = problem.slug, exchange.scope
        site = self._service.domains.own
        with suppress(StoreUnavailable):
            site = await self._service.domains.site(host)
        headers: Headers = [PROBLEM_JSON, *problem_headers(problem, site.base_url + RESOURCE_METADATA)]
        headers += [*exchange.usage.headers, PRIVATE, VARY] if exchange.usage else [NO_STORE]
        if isinstance(route, EndpointRoute):
            headers += self._deprecated.get(route.operation.path, ())
        requested = scope["path"] if scope.get(AT) is None else f"/at/{scope[AT]}{scope['path']}"
        instance = quote(requested, safe="/:@!$&'()*+,;=")  # a URI reference, whatever the client sent
        body = problem_body(problem, site.base_url, instance, exchange.request_id)
        return Response(problem.status, headers, body)


async def _write_answer(
    operation: Operation,
    call: Call,
    arguments: dict[str, Any],
    fmt: ResponseFormat | None,
    tag: str,
    accept_encoding: bytes,
    edition_id: str | None,
    path: str,
    query: bytes,
) -> CachedAnswer:
    """Perform the operation and encode its answer. Links name the edition that the request names."""
    if (
        fmt is not None and fmt.media_type in (CSV, ARROW) and call.lock is None
    ):  # a locked view rewrites rows
        call = replace(call, as_columns=True)
    answer = await perform(operation, call, arguments)
    headers: Headers = []
    if following := answer.members.get("next_cursor"):
        headers.append(next_link(call.base_url, path, query, edition_id, str(following)))
    if fmt is None:
        headers.append(JSON)
        body = envelope(answer, call.edition, operation)
    elif fmt is ATOM:
        target = f"{path}?{query.decode('latin-1')}" if query else path
        content_headers, body = await asyncio.to_thread(atom, operation, answer, call, target)
        headers += content_headers
    else:
        stored = await fmt.stored(operation, answer, call.edition)
        work = operation, answer, call.edition, stored
        # Let other requests run: ten thousand rows take a twentieth of a second.
        content_headers, body = (
            fmt.body(*work) if fmt.is_quick(answer, stored) else await asyncio.to_thread(fmt.body, *work)
        )
        headers += content_headers
    tag = own_tag = tag if call.lock is None else body_digest(body)
    encoding = choose_encoding(accept_encoding, len(body))
    if encoding is not None:
        body = await compressed(body, encoding)
        own_tag = f"{tag}.{encoding}"
        headers.append((b"content-encoding", encoding.encode()))
    if not operation.live:
        headers.append((b"etag", f'"{own_tag}"'.encode()))
    return CachedAnswer(headers, body, tag)


def _unless_held(answer: CachedAnswer, head: Head, headers: Headers) -> Response:
    """The answer; a 304 if the client already has it."""
    if head.if_none_match and (tag := matching_tag(head.if_none_match, answer.tag)) is not None:
        return Response(304, [(b"etag", f'"{tag}"'.encode()), *headers], b"")
    return Response(200, [*answer.headers, *headers], answer.body)
