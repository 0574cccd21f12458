"""The ASGI application of the dialects: the checks of REST, then the dialect's own answer.

Order of checks (contract: KEY-7): path, method, 401, 429, then the dialect's own.
"""

from collections.abc import Hashable
from typing import Final
from urllib.parse import parse_qsl

from msgspec.structs import replace

from sankofa.access.keys import presented_key
from sankofa.access.owner import A_DIALECT, FOLDER, IS_FULL_KEY, LINK, is_link
from sankofa.access.tiers import Grant, grant
from sankofa.dialects.contract import (
    Dialect,
    DialectQuestion,
    DialectReply,
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
        reply = await exchange.respond(receive, self._nobody)
        await exchange.answer(Response(reply.status, [*reply.headers], reply.body), receive, send)


class _DialectExchange(Exchange):
    def __init__(self, service: Service, scope: Scope, dialect: Dialect, root: str) -> None:
        super().__init__(service, scope, f"dialect:{dialect.name}")
        self._dialect = dialect
        self._root = root
        self._presented = ""
        self._request = DialectRequest(scope["method"], root, "", (), {})

    async def respond(self, receive: Receive, nobody: Grant) -> DialectReply:
        """The reply with all header fields except Content-Length."""
        try:
            return await self._answer(receive, nobody)
        except Exception as failure:
            return self._refuse(await self.service.refusal(failure, self._as_key(), self.request_id))

    async def _answer(self, receive: Receive, nobody: Grant) -> DialectReply:
        scope, dialect, service = self.scope, self._dialect, self.service
        head = check_request(scope)
        self._request, in_query = self._read()
        if scope.get(AT) == NO_DAY:
            raise NotFound("No such day: /at/ takes a date as YYYY-MM-DD, today's at the latest.")
        if scope["method"] == "OPTIONS":
            return DialectReply(b"", status=204, headers=((b"allow", ", ".join(dialect.methods).encode()),))
        if scope["method"] not in dialect.methods:
            raise MethodNotAllowed(", ".join(dialect.methods))
        self.site = await service.domains.site(head.host)
        granted = nobody if dialect.open else await self._authenticate(head, in_query)
        if scope["method"] == "POST":
            body = await read_body(receive, _LARGEST_BODY, _BODY_SECONDS)
            self._request = replace(self._request, body=body)
        self._request = replace(self._request, root_url=self.site.base_url + self._prefix() + self._root)
        at = scope.get(AT)
        now = service.clock()
        lock = narrower(at, granted, now)
        if dialect.open and (sent := await service.lock_sent(head.keys, head.authorizations)):
            lock = sent if lock is None else min(lock, sent)
        edition = locked(service.edition.get(), lock)
        call = Call(
            edition,
            granted,
            lock or now.date(),
            service.cursors,
            service.edition.for_cursor,
            self.site.base_url if at is None else f"{self.site.base_url}/at/{at}",
            service.edition.to_compare,
            usage=self.usage,
        )
        return await self._cached(DialectQuestion(self._request, call, service))

    def _read(self) -> tuple[DialectRequest, str | None]:
        """The request without its key, and the key from the query."""
        scope, key_parameter = self.scope, self._dialect.key_parameter
        try:
            text = scope["query_string"].decode("ascii")
            if "%" in text or "+" in text or text.count("&") >= _MOST_FIELDS:
                pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
            else:
                pairs = [(part.partition("=")[::2]) for part in text.split("&") if part]
        except (UnicodeDecodeError, ValueError):
            raise BadRequest(
                f"The query is not valid UTF-8, or has more than {_MOST_FIELDS} fields."
            ) from None
        keys = [value for name, value in pairs if name == key_parameter] if key_parameter else []
        if len(keys) > 1:
            raise Unauthorized(f"Send exactly one {key_parameter}.")
        query = tuple((name, value) for name, value in pairs if name != key_parameter or not key_parameter)
        path = scope["path"][len(self._root) :].removeprefix("/")
        values: dict[str, list[str]] = {}
        for name, value in query:
            values.setdefault(name, []).append(value)
        headers = dict(scope["headers"])
        request = DialectRequest(scope["method"], self._root, path, query, headers, values=values)
        return request, keys[0] if keys else None

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

    def _prefix(self) -> str:
        at, opens = self.scope.get(AT), self.scope.get(LINK)
        inside = "" if at is None else f"/at/{at}"
        return f"{inside}{FOLDER}{self._presented}" if opens == A_DIALECT else inside

    async def _cached(self, question: DialectQuestion) -> DialectReply:
        """The answer, from the cache if possible."""
        request, call = question.request, question.call
        accepted = request.headers.get(b"accept-encoding", b"")
        key: Hashable = (
            call.edition.id,
            request.root_url,
            request.path,
            request.query,
            request.accept,
            accepted,
            call.grant.tier,
            call.grant.row_cap,
            call.today,
        )
        if request.method == "POST":
            return self._with_headers(await self._dialect.answer(question))
        known = self.service.answers.get(key)
        if known is None:
            reply = await self._dialect.answer(question)
            if reply.status != 200 or not reply.cached:
                return self._with_headers(reply)
            tag = body_digest(reply.body)
            headers: Headers = [(b"content-type", reply.content_type.encode()), *reply.headers]
            headers.append((b"etag", f'"{tag}"'.encode()))
            body = reply.body
            if (encoding := choose_encoding(accepted, len(body))) is not None:
                body = await compressed(body, encoding)
                headers.append((b"content-encoding", encoding.encode()))
            known = CachedAnswer(headers, body)
            self.service.answers.offer(key, known)
        held = request.headers.get(b"if-none-match", b"").split(b",")
        if dict(known.headers)[b"etag"] in [one.strip().removeprefix(b"W/") for one in held]:
            return DialectReply(b"", status=304, headers=(*known.headers, *self._of_key()))
        return DialectReply(known.body, status=200, headers=(*known.headers, *self._of_key()))

    def _with_headers(self, reply: DialectReply) -> DialectReply:
        headers = ((b"content-type", reply.content_type.encode()), *reply.headers, *self._of_key())
        return reply._replace(headers=headers)

    def _of_key(self) -> Headers:
        if self._dialect.open:
            return [(b"cache-control", b"public, max-age=300"), _VARY]
        return [*(self.usage.headers if self.usage else []), PRIVATE, _VARY]

    def _refuse(self, problem: Problem) -> DialectReply:
        self.problem = problem.slug
        reply = self._dialect.refuse(problem, self._request)
        fields = problem_headers(problem, self.site.base_url + RESOURCE_METADATA)
        quota = self._of_key() if self.usage else [NO_STORE]
        headers = ((b"content-type", reply.content_type.encode()), *reply.headers, *fields, *quota)
        return reply._replace(headers=headers)
