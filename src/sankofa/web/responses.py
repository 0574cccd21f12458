"""Replies of the pages: header fields, cached pages, assets, single charts, compression, and the key form.

The visitor's key is in a session cookie. The pages read it; the API never does
(docs/decisions/keys-and-domains.md).
"""

import asyncio
import csv
import io
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from sankofa.access.domains import Site
from sankofa.access.owner import PATHS, SIGN_IN, address_of_path
from sankofa.model.errors import BadRequest, InvalidParameter, NotFound, Problem, Unauthorized
from sankofa.model.limits import limit
from sankofa.operations.answers import JSON, Headers, choose_encoding, compressed
from sankofa.operations.locked import day_of_path
from sankofa.operations.service import Receive, Response, Scope, Service, read_body
from sankofa.web.documents import pictures
from sankofa.web.jobs import COMMANDS, OPERATOR, Jobs
from sankofa.web.view import View, assets, inside, stylesheet_digest, write_page
from sankofa.web.visit import PageRequest, Visit, read_form

_MOST_BYTES: Final = 32 << 20


class Written(msgspec.Struct):
    """A page as bytes, with the compressed forms that clients asked for."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    tag: str
    encodings: dict[str, bytes] = {}

    @property
    def size(self) -> int:
        return len(self.body) * 2  # its compressed forms take about as much again


class PageCache:
    """The most recently requested pages, up to a number of bytes."""

    def __init__(self) -> None:
        self._pages: OrderedDict[tuple[object, ...], Written] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[object, ...]) -> Written | None:
        page = self._pages.get(key)
        if page is not None:
            self._pages.move_to_end(key)
        return page

    def put(self, key: tuple[object, ...], page: Written) -> None:
        if (before := self._pages.pop(key, None)) is not None:
            self._bytes -= before.size
        self._pages[key] = page
        self._bytes += page.size
        while self._bytes > _MOST_BYTES and self._pages:
            _, oldest = self._pages.popitem(last=False)
            self._bytes -= oldest.size


HTML: Final = (b"content-type", b"text/html; charset=utf-8")
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' {stylesheet_digest()}",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types sankofa",
    )
).encode()
PAGE_HEADERS: Final[Headers] = [
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"vary", b"Accept, Cookie, X-API-Key, Accept-Language, Accept-Encoding, Host"),
    (b"cache-control", b"private, no-cache"),
]
PUBLIC_HEADERS: Final[Headers] = [*PAGE_HEADERS[:-1], (b"cache-control", b"public, max-age=300")]
"""Header fields of a page that is the same for every visitor without a cookie."""
SECRET_HEADERS: Final[Headers] = [*PAGE_HEADERS[:-1], (b"cache-control", b"no-store")]
"""Header fields of a page that holds a key, or sets one."""
EMBED_HEADERS: Final[Headers] = [
    (
        b"content-security-policy",
        f"default-src 'none'; style-src {stylesheet_digest()}; base-uri 'none'; frame-ancestors *".encode(),
    ),
    *PUBLIC_HEADERS[1:],
]
"""Header fields of an embedded chart: any site may frame it, and it has no script."""
EVENT_STREAM: Final[Headers] = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
PICTURES: Final = "/docs/pictures/"
_PICTURE_TYPES: Final = {"svg": b"image/svg+xml", "png": b"image/png"}
_ALONE: Final = (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; sandbox")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def asset_response(path: str) -> Response:
    """Raises NotFound."""
    if path.startswith(PICTURES):
        name = path.removeprefix(PICTURES)
        if (picture := pictures().get(name)) is None:
            raise NotFound("There is no such picture.")
        kind = (b"content-type", _PICTURE_TYPES[name.rpartition(".")[2]])
        return Response(200, [kind, (b"cache-control", b"public, max-age=300"), _ALONE], picture)
    asset = assets().get(path)
    if asset is None:
        raise NotFound("There is no such file.")
    media_type, content = asset
    headers = [
        (b"content-type", media_type),
        (b"cache-control", b"public, max-age=31536000, immutable"),
        (b"x-content-type-options", b"nosniff"),
    ]
    return Response(200, headers, content)


def chart_file(view: View, name: str, visit: Visit, uncut: int = 0) -> Written:
    """A single chart of a page, as a picture or as a table. Raises InvalidParameter.

    `uncut` is the full number of rows if the visitor sees only a part; the first line of the table says so.
    """
    chart = view.chart(name)
    kind = visit.request.query.get("format", "svg")
    if kind == "svg":
        body, media_type = inside(chart.picture(), visit.prefix).encode(), b"image/svg+xml"
    elif kind == "csv":
        text = io.StringIO()
        if uncut:
            text.write(f"# first {visit.call.grant.row_cap} of {uncut} rows\r\n")
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(chart.columns)
        writer.writerows([[_cell(value) for value in row] for row in chart.rows])
        body, media_type = text.getvalue().encode(), b"text/csv; charset=utf-8"
    else:
        raise InvalidParameter("format", "expected svg or csv")
    disposition = f'attachment; filename="{chart.name}.{kind}"'.encode()
    return Written(200, body, ((b"content-type", media_type), (b"content-disposition", disposition)), "")


def _cell(value: object) -> object:
    """Puts an apostrophe before text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


async def encoded(written: Written, headers: Headers, request: PageRequest) -> Response:
    """The reply for this client: a 304 if it already has the page, else compressed if accepted."""
    if written.tag:
        tag = f'W/"{written.tag}"'.encode()
        headers.append((b"etag", tag))
        if tag in request.headers.get(b"if-none-match", b""):
            return Response(304, headers, b"")
    encoding = choose_encoding(request.headers.get(b"accept-encoding", b""), len(written.body))
    if encoding is None:
        return Response(written.status, headers, written.body)
    body = written.encodings.get(encoding)
    if body is None:
        body = written.encodings[encoding] = await compressed(written.body, encoding)
    return Response(written.status, [*headers, (b"content-encoding", encoding.encode())], body)


_LARGEST_FORM: Final = limit("form of a page", 2048, "bytes", "413")
_FORM_SECONDS: Final = limit("time for a form", 10.0, "seconds", "408")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_LOCAL: Final = re.compile(r"/(?![/\\])[!-~]*", re.ASCII)
"""A path of this site for `Location`: "/company/X?as_of=2024-01-01", never "//elsewhere"."""


class ForeignForm(Problem):
    """403: another site may not set a visitor's key or sign anybody in."""

    status, slug, title = 403, "foreign-form", "Not from this site"


async def _forget_or_keep_key(
    service: Service, site: Site, request: PageRequest, scope: Scope, receive: Receive
) -> Response:
    """Store the key sent by the form of the key page, or delete it. Raises Unauthorized for a wrong key."""
    fields = await _read_own_form(request, receive)
    attributes = _attributes(site)
    if fields.get("action") == "forget":
        cookie = f"{request.key_cookie}=; {attributes}; Max-Age=0"
    else:
        key = fields.get("key", "").strip()
        if not key.isascii() or not key.isprintable() or any(c in key for c in ' ",;\\'):
            key = ""
        try:
            site.admit(await service.keys.authenticate(key))
        except Unauthorized as refusal:
            raise await _counted(service, scope, key, refusal) from None
        cookie = f"{request.key_cookie}={key}; {attributes}"
    headers = [*PAGE_HEADERS, (b"location", b"/key"), (b"set-cookie", cookie.encode())]
    return Response(303, headers)


async def _counted(service: Service, scope: Scope, secret: str, refusal: Unauthorized) -> Problem:
    """The refusal of a key or code, counted as a guess unless it is empty."""
    header = (b"x-api-key", secret.encode())
    return await service.unauthorized({**scope, "headers": [*scope["headers"], header]}, refusal)


async def _read_own_form(request: PageRequest, receive: Receive) -> dict[str, str]:
    """The fields of a form from one of our pages. Raises ForeignForm or BadRequest."""
    _check_origin(request)
    return read_form(await read_body(receive, _LARGEST_FORM, _FORM_SECONDS))


LINKS: Final = "/links"
"""The path that makes links for programs that cannot send a key."""
_MOST_LINKS: Final = limit("links of a key that are made on pages and by clients", 100, "links", "400")
_PER_MINUTE, _PER_MONTH = 60, 5_000


async def _make_link(
    service: Service, site: Site, request: PageRequest, scope: Scope, receive: Receive
) -> Response:
    """Make a link that opens only one path of the API, with the visitor's key, and show it once.

    A program gets it as JSON. On a page only the owner can make links; with a key in a header, any tier but
    sample. Raises Unauthorized, NotFound, BadRequest, InvalidParameter or RateLimited.
    """
    grant = await service.keys.authenticate(request.api_key or "")
    site.admit(grant)
    if grant.sample or not (grant.owner or b"x-api-key" in request.headers):
        raise NotFound("Links are made by the owner, or with a paid key in X-API-Key.")
    _, refusal = await service.quotas.count(grant)
    if refusal is not None:
        raise refusal
    fields = await _read_own_form(request, receive)
    address = fields.get("path", "").removeprefix(site.base_url)
    inside = day_of_path(address.partition("?")[0], service.today())
    if not (inside[1] if inside else address).startswith(PATHS) or not _LOCAL.fullmatch(address):
        raise InvalidParameter("path", f"expected one that begins with {', '.join(PATHS)}")
    try:
        opens, before = address_of_path(address)
    except ValueError as failure:
        raise InvalidParameter("path", str(failure)) from None
    links = [one for one in await service.keys.list() if one.opens and one.label.endswith(grant.key_id)]
    if sum(one.revoked_at is None for one in links) >= _MOST_LINKS:
        raise BadRequest(f"This key has {_MOST_LINKS} links: end some with `sankofa keys revoke`.")
    token = await service.keys.link(grant.key_id, opens, _PER_MINUTE, _PER_MONTH)
    context = {"address": site.base_url + before + token}
    if b"text/html" not in request.headers.get(b"accept", b""):
        return Response(201, [*SECRET_HEADERS, JSON], msgspec.json.encode(context))
    visit = Visit(request, site, service, {}, ())
    view = View("link.html", visit.language.text("Link"), context)
    return Response(201, [*SECRET_HEADERS, HTML], write_page(view, visit).encode())


async def _start_command(
    service: Service, site: Site, request: PageRequest, scope: Scope, receive: Receive
) -> Response:
    jobs = await _jobs(service, site, request)
    command = (await _read_own_form(request, receive)).get("command", "")
    if command not in COMMANDS:
        raise BadRequest(f"Expected command, one of {', '.join(COMMANDS)}.")
    await asyncio.to_thread(jobs.start, command)
    return Response(303, [*PAGE_HEADERS, (b"location", f"{OPERATOR}#log".encode())])


async def _stream_output(
    service: Service, site: Site, request: PageRequest, scope: Scope, receive: Receive
) -> Response:
    return Response(200, EVENT_STREAM, chunks=(await _jobs(service, site, request)).events())


async def _jobs(service: Service, site: Site, request: PageRequest) -> Jobs:
    """The commands of the owner. Raises Unauthorized, or NotFound for anybody else."""
    grant = await service.keys.authenticate(request.api_key or "")
    site.admit(grant)
    if not grant.owner:
        raise NotFound("This page is the owner's.")
    return Jobs(service.settings.home)


async def _sign_in(
    service: Service, site: Site, request: PageRequest, scope: Scope, receive: Receive
) -> Response:
    """Sign the owner's browser in with a one-time code. Raises ForeignForm or Unauthorized.

    A code from another site's page, or from a prefetch, is not used up.
    """
    if request.headers.get(b"sec-purpose") or request.headers.get(b"purpose"):
        raise ForeignForm("A prefetching browser is not signed in.")
    _check_origin(request)
    own = (urlsplit(site.base_url).hostname or "", *_LOOPBACK)
    if site.is_customers or urlsplit(f"//{request.host.decode('latin-1')}").hostname not in own:
        raise ForeignForm("Sign in on the service's own host (SANKOFA_BASE_URL).")
    code = request.query.get("code", "")
    try:
        key = await service.owner.redeem(code)
    except Unauthorized as refusal:
        raise await _counted(service, scope, code, refusal) from None
    following = request.query.get("next", "/")
    if not _LOCAL.fullmatch(following):
        following = "/"
    cookie = f"{request.key_cookie}={key}; {_attributes(site)}"
    headers = [*SECRET_HEADERS, (b"location", following.encode()), (b"set-cookie", cookie.encode())]
    return Response(303, headers, b"")


def _attributes(site: Site) -> str:
    """The attributes of the cookie that holds a key."""
    return "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if site.base_url.startswith("https:") else "")


def _check_origin(request: PageRequest) -> None:
    """Raises ForeignForm if the browser reports that another site sent the form."""
    site = request.headers.get(b"sec-fetch-site")
    origin = request.headers.get(b"origin", request.headers.get(b"referer"))
    if site is None and origin is not None:
        is_ours = origin.partition(b"://")[2].partition(b"/")[0] == request.host
    else:
        is_ours = site in (None, b"same-origin", b"none")
    if not is_ours:
        raise ForeignForm("This was sent from another site. Type or paste the address yourself.")


Action = Callable[[Service, Site, PageRequest, Scope, Receive], Awaitable[Response]]
ACTIONS: Final[Mapping[tuple[str, str], Action]] = {
    ("POST", "/key"): _forget_or_keep_key,
    ("POST", LINKS): _make_link,
    ("POST", OPERATOR): _start_command,
    ("GET", f"{OPERATOR}/events"): _stream_output,
    ("GET", SIGN_IN): _sign_in,
}
"""Requests that change something, or follow it; pages answer all others."""
