"""Replies of the pages: header fields, assets, charts alone, compression."""

import csv
import io
from typing import Final

import msgspec

from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.operations.answers import Headers, choose_encoding, compressed
from sankofa.web.documents import pictures
from sankofa.web.page_cache import Written
from sankofa.web.request import PageRequest
from sankofa.web.view import View
from sankofa.web.visit import Visit
from sankofa.web.writing import assets, stylesheet_digest

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
    (b"cache-control", b"private, no-cache"),
    (b"vary", b"Cookie, X-API-Key, Accept-Language, Accept-Encoding, Host"),
]
PUBLIC_HEADERS: Final[Headers] = [
    (name, b"public, max-age=300") if name == b"cache-control" else (name, value)
    for name, value in PAGE_HEADERS
]
"""Of a page that is the same for every visitor without a cookie."""
PICTURES: Final = "/docs/pictures/"
_PICTURE_TYPES: Final = {"svg": b"image/svg+xml", "png": b"image/png"}
_ALONE: Final = (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; sandbox")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class Reply(msgspec.Struct, frozen=True):
    """A reply whose body is in memory."""

    status: int
    headers: Headers
    body: bytes
    problem: str = ""
    """The slug of the problem it tells of."""


def asset_reply(path: str) -> Reply:
    """Raises NotFound."""
    if path.startswith(PICTURES):
        name = path.removeprefix(PICTURES)
        if (picture := pictures().get(name)) is None:
            raise NotFound("There is no such picture.")
        kind = (b"content-type", _PICTURE_TYPES[name.rpartition(".")[2]])
        return Reply(200, [kind, (b"cache-control", b"public, max-age=300"), _ALONE], picture)
    asset = assets().get(path)
    if asset is None:
        raise NotFound("There is no such file.")
    media_type, content = asset
    headers = [
        (b"content-type", media_type),
        (b"cache-control", b"public, max-age=31536000, immutable"),
        (b"x-content-type-options", b"nosniff"),
    ]
    return Reply(200, headers, content)


def chart_reply(view: View, name: str, visit: Visit) -> Written:
    """One chart of a page alone, as a picture or as a table. Raises InvalidParameter."""
    chart = next((chart for chart in view.charts if chart.name == name), None)
    if chart is None:
        raise InvalidParameter("chart", "this page has no such chart")
    kind = visit.request.query.get("format", "svg")
    if kind == "svg":
        body, media_type = chart.picture().encode(), b"image/svg+xml"
    elif kind == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(chart.columns)
        writer.writerows([[_cell(value) for value in row] for row in chart.rows])
        body, media_type = text.getvalue().encode(), b"text/csv; charset=utf-8"
    else:
        raise InvalidParameter("format", "expected svg or csv")
    disposition = f'attachment; filename="{chart.name}.{kind}"'.encode()
    return Written(200, body, ((b"content-type", media_type), (b"content-disposition", disposition)), "")


def _cell(value: object) -> object:
    """A text that a spreadsheet would take for a formula is written with an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


async def encoded(written: Written, headers: Headers, request: PageRequest) -> Reply:
    """As the client accepts it: not at all where it holds it already, or compressed."""
    if written.tag:
        tag = f'W/"{written.tag}"'.encode()
        headers.append((b"etag", tag))
        if tag in request.headers.get(b"if-none-match", b""):
            return Reply(304, headers, b"")
    encoding = choose_encoding(request.headers.get(b"accept-encoding", b""), len(written.body))
    if encoding is None:
        return Reply(written.status, headers, written.body)
    body = written.encodings.get(encoding)
    if body is None:
        body = written.encodings[encoding] = await compressed(written.body, encoding)
    return Reply(written.status, [*headers, (b"content-encoding", encoding.encode())], body)
