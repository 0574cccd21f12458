"""The visitor's key: a cookie for the browser's session, which the pages read and the API never does.

See docs/decisions/keys-and-domains.md.
"""

import asyncio
from typing import Final

from starlette.types import Receive, Scope

from sankofa.access.domains import Site
from sankofa.model.errors import BadRequest, Problem, Unauthorized
from sankofa.model.limits import limit
from sankofa.operations.service import Service
from sankofa.web.request import PageRequest, read_form
from sankofa.web.responses import PAGE_HEADERS, Reply

_LARGEST_FORM: Final = limit("form of a page", 2048, "bytes", "400")
_FORM_SECONDS: Final = limit("time for a form", 10.0, "seconds", "400")
_SAME: Final = (b"same-origin", b"none")


class ForeignForm(Problem):
    """403: a form on another site may not set the key of a visitor."""

    status, slug, title = 403, "foreign-form", "Not from this site"


async def forget_or_keep_key(
    service: Service, site: Site, request: PageRequest, scope: Scope, receive: Receive
) -> Reply:
    """Keep the key that the form of the key page sends, or forget it. Raises Unauthorized for a wrong one."""
    _check_origin(request)
    try:
        async with asyncio.timeout(_FORM_SECONDS):
            fields = read_form(await _body(receive))
    except TimeoutError:
        raise BadRequest(f"The form did not arrive within {_FORM_SECONDS:.0f} seconds.") from None
    attributes = "Path=/; HttpOnly; SameSite=Strict" + (
        "; Secure" if site.base_url.startswith("https:") else ""
    )
    if fields.get("action") == "forget":
        cookie = f"{request.key_cookie}=; {attributes}; Max-Age=0"
    else:
        key = fields.get("key", "").strip()
        if not key.isascii() or not key.isprintable() or any(c in key for c in ' ",;\\'):
            key = ""
        try:
            grant = await service.keys.authenticate(key)
        except Unauthorized as refusal:
            if not key:
                raise
            given = {**scope, "headers": [*scope["headers"], (b"x-api-key", key.encode())]}
            raise await service.unauthorized(given, refusal) from None
        site.admit(grant)
        cookie = f"{request.key_cookie}={key}; {attributes}"
    headers = [*PAGE_HEADERS, (b"location", b"/key"), (b"set-cookie", cookie.encode())]
    return Reply(303, headers, b"")


def _check_origin(request: PageRequest) -> None:
    """Raises ForeignForm where the browser says that another site sent the form."""
    site = request.headers.get(b"sec-fetch-site")
    if site is not None:
        if site not in _SAME:
            raise ForeignForm("The form was sent from another site.")
        return
    origin = request.headers.get(b"origin")
    if origin is not None and origin.partition(b"://")[2] != request.host:
        raise ForeignForm("The form was sent from another site.")


async def _body(receive: Receive) -> bytes:
    body: bytes = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if len(body) > _LARGEST_FORM:
            raise BadRequest("The form is larger than any of ours.")
        if not message.get("more_body") or message["type"] == "http.disconnect":
            return body
