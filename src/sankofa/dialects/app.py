"""The ASGI application of the dialects: the checks of REST, then the dialect's own answer.

Order of checks (contract: KEY-7): path, method, 401, 429, then the dialect's own.
"""

from typing import Final
from urllib.parse import parse_qsl

from msgspec.structs import replace

from sankofa.access.keys import presented_key
from sankofa.access.owner import A_DIALECT, IS_FULL_KEY, LINK, is_link
from sankofa.access.tiers import Grant, grant
from sankofa.dialects.contract import (
    Dialect,
    DialectQuestion,
    DialectRequest,
    dialects,
    root_of,
)
from sankofa.model.errors import BadRequest, MethodNotAllowed, NotFound, Problem, Unauthorized
from sankofa.model.limits import limit
from sankofa.operations.answers import (
    NO_STORE,
    PRIVATE,
    RESOURCE_METADATA,
    CachedAnswer,
    Headers,
    body_digest,
    choose_encoding,
    compressed,
    matching_tag,
    problem_headers,
)
from sankofa.operations.contract import Call
from sankofa.operations.locked import AT, NO_DAY, locked, narrower
from sankofa.operations.service import (
    Exchange,
    Head,
    Receive,
    Response,
    Scope,
    Send,
    Service,
    check_request,
    read_body,
)

_LARGEST_BODY: Final = limit("body of a request to a dialect", 64 << 10, "bytes", "413")
_BODY_SECONDS: Final = limit("time for the body of a request to a dialect", 10.0, "seconds", "408")
_MOST_FIELDS: Final = 256
_VARY: Final = (b"vary", b"X-API-Key, Authorization, Accept, Accept-Encoding")


class DialectsApp:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._by_root = {root: dialect for dialect in dialects() for root in dialect.roots}
        self._nobody = grant(service.settings, "", "sample")

    def answers(self, path: str) -> bool:
        return bool(root_of(path))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        root = root_of(scope["path"])
        exchange = _DialectExchange(self._service, scope, self._by_root[root], root)
        await exchange.answer(await exchange.respond(receive, self._nobody), receive, send)


class _DialectExchange(Exchange):
    def __init__(self, service: Service, scope: Scope, dialect: Dialect, root: str) -> None:
        super().__init__(service, scope, dialect.operation)
        self._dialect = dialect
        self._root = root
        self._presented = ""
        self._request: DialectRequest | None = None

    async def respond(self, receive: Receive, nobody: Grant) -> Response:
        """The answer with all header fields except Content-Length."""
        try:
            return await self._answer(receive, nobody)
        except Exception as failure:
            return self._refuse(await self.service.refusal(failure, self._as_key(), self.request_id))

    async def _answer(self, receive: Receive, nobody: Grant) -> Response:
        scope, dialect, service = self.scope, self._dialect, self.service
        head = check_request(scope)
        request, in_query = self._read(head)
        at = scope.get(AT)
        if at == NO_DAY:
            raise NotFound("No such day: /at/ takes a date as YYYY-MM-DD, today's at the latest.")
        if scope["method"] == "OPTIONS":
            return Response(204, [(b"allow", ", ".join(dialect.methods).encode())])
        if scope["method"] not in dialect.methods:
            raise MethodNotAllowed(", ".join(dialect.methods))
        self.site = await service.domains.site(head.host)
        granted = nobody if dialect.open else await self._authenticate(head, in_query)
        if scope["method"] == "POST":
            body = await read_body(receive, _LARGEST_BODY, _BODY_SECONDS)
            request = self._request = replace(request, body=body)
        now = service.clock()
        lock = narrower(at, granted, now)
        if dialect.open and (sent := await service.lock_sent(head.keys, head.authorizations)):
            lock = sent if lock is None else min(lock, sent)
        call = Call(
            locked(service.edition.get(), lock),
            granted,
            lock or now.date(),
            service.cursors,
            service.edition.for_cursor,
            self.site.base_url if at is None else f"{self.site.base_url}/at/{at}",
            service.edition.to_compare,
            usage=self.usage,
        )
        return await self._cached(DialectQuestion(request, call, service), head)

    def _read(self, head: Head) -> tuple[DialectRequest, str | None]:
        """The request without its key, and the key from the query."""
        scope, key_parameter = self.scope, self._dialect.key_parameter
        try:
            text = scope["query_string"].decode("ascii")
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
        except (UnicodeDecodeError, ValueError):
            raise BadRequest(
                f"The query is not valid UTF-8, or has more than {_MOST_FIELDS} fields."
            ) from None
        values: dict[str, list[str]] = {}
        for name, value in pairs:
            values.setdefault(name, []).append(value)
        keys = values.pop(key_parameter, []) if key_parameter else []
        if len(keys) > 1:
            raise Unauthorized(f"Send exactly one {key_parameter}.")
        if keys:
            pairs = [pair for pair in pairs if pair[0] != key_parameter]
        path = scope["path"][len(self._root) :].removeprefix("/")
        accept = head.accept.decode("latin-1")
        self._request = DialectRequest(scope["method"], self._root, path, tuple(pairs), accept, values=values)
        return self._request, keys[0] if keys else None

    async def _authenticate(self, head: Head, in_query: str | None) -> Grant:
        """The grant of the key or the link; the request is counted against it."""
        name, dialect = self._dialect.key_parameter, self._dialect.name
        keys = head.keys
        if in_query is not None and IS_FULL_KEY.match(in_query):
            raise Unauthorized(
                f"{name}: proxies log keys in addresses, so this key is refused. Send a link key: "
                f"`sankofa keys link KEY_ID --dialect {dialect}` prints one."
            )
        if in_query is not None and is_link(in_query) and in_query not in keys:
            keys = (*keys, in_query)
        elif in_query is not None and not keys and not head.authorizations:
            raise Unauthorized(f"{name}: not a link key. `sankofa keys link` prints one.")
        self._presented = presented_key(keys, head.authorizations)
        opens = ""
        if is_link(self._presented) or LINK in self.scope:
            opens = self.scope.get(LINK, A_DIALECT)
            opens += dialect if opens == A_DIALECT else ""
        return await self.admit(await self.service.keys.authenticate(self._presented, opens))

    def _as_key(self) -> Scope:
        """The scope with the link as its key: a wrong link counts like a wrong key."""
        if not is_link(self._presented) or LINK in self.scope:
            return self.scope
        header = (b"x-api-key", self._presented.encode("latin-1", "replace"))
        return {**self.scope, "headers": [*self.scope["headers"], header]}

    async def _cached(self, question: DialectQuestion, head: Head) -> Response:
        """The answer, from the cache if possible."""
        request, call = question.request, question.call
        key = (
            request.method == "POST",
            call.edition.id,
            call.base_url,
            request.root,
            request.path,
            request.query,
            head.accept,
            head.accept_encoding,
            call.grant.tier,
            call.grant.row_cap,
            call.today,
        )
        known = self.service.answers.get(key)
        if known is None:
            reply = await self._dialect.answer(question)
            headers = [(b"content-type", reply.content_type.encode()), *reply.headers]
            if request.method == "POST" or reply.status != 200 or not reply.cached:
                return Response(reply.status, [*headers, *self._of_key()], reply.body)
            body = reply.body
            tag = own_tag = body_digest(body)
            if (encoding := choose_encoding(head.accept_encoding, len(body))) is not None:
                body, own_tag = await compressed(body, encoding), f"{tag}.{encoding}"
                headers.append((b"content-encoding", encoding.encode()))
            known = CachedAnswer([*headers, (b"etag", f'"{own_tag}"'.encode())], body, tag)
            self.service.answers.offer(key, known)
        headers = [*known.headers, *self._of_key()]
        if head.if_none_match and matching_tag(head.if_none_match, known.tag):
            return Response(304, headers)
        return Response(200, headers, known.body)

    def _of_key(self) -> Headers:
        if self._dialect.open:
            return [(b"cache-control", b"public, max-age=300"), _VARY]
        return [*(self.usage.headers if self.usage else ()), PRIVATE, _VARY]

    def _refuse(self, problem: Problem) -> Response:
        self.problem = problem.slug
        request = self._request or DialectRequest(self.scope["method"], self._root, "", ())
        reply = self._dialect.refuse(problem, request)
        fields = problem_headers(problem, self.site.base_url + RESOURCE_METADATA)
        quota = self._of_key() if self.usage else [NO_STORE]
        headers = [(b"content-type", reply.content_type.encode()), *reply.headers, *fields, *quota]
        return Response(reply.status, headers, reply.body)
