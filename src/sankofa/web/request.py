"""A visitor's request: query, cookies, language, and the page it is for."""

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from sankofa.model.errors import BadRequest, InvalidParameter
from sankofa.model.limits import limit
from sankofa.operations.service import check_request
from sankofa.web.languages import LANGUAGES, preferred

_KEY_COOKIE: Final = "sankofa_key"
LANGUAGE_COOKIE: Final = "sankofa_lang"
_MOST_FIELDS: Final = limit("fields of a form", 64, "fields", "400")


class PageRequest(msgspec.Struct, frozen=True):
    """What of a request the pages act on."""

    method: str
    path: str
    query: dict[str, str]
    host: bytes
    cookies: dict[str, str]
    language: str
    headers: dict[bytes, bytes]
    key_cookie: str = ""
    """The name of the cookie that holds the visitor's key; empty until the site is known."""

    @property
    def api_key(self) -> str | None:
        """The key the visitor sent: in a header, as REST takes it, or in the cookie of the key page."""
        header = self.headers.get(b"x-api-key")
        return header.decode("latin-1") if header is not None else self.cookies.get(self.key_cookie)


def key_cookie(base_url: str) -> str:
    """On https a name that browsers take from this very host only, over https only (RFC 6265bis)."""
    return f"__Host-{_KEY_COOKIE}" if base_url.startswith("https:") else _KEY_COOKIE


def read_request(scope: Mapping[str, Any]) -> PageRequest:
    """Raises BadRequest, InvalidParameter, UriTooLong or HeadersTooLarge."""
    check_request(scope)
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        headers[name] = headers[name] + b"; " + value if name in headers and name == b"cookie" else value
    query = read_form(scope["query_string"])
    cookies = _cookies(headers.get(b"cookie", b""))
    asked = query.get("lang")
    if asked is not None and asked not in LANGUAGES:
        raise InvalidParameter("lang", f"expected one of {', '.join(LANGUAGES)}")
    chosen = asked or cookies.get(LANGUAGE_COOKIE, "")
    if chosen not in LANGUAGES:
        chosen = preferred(headers.get(b"accept-language", b"").decode("latin-1"))
    return PageRequest(scope["method"], scope["path"], query, headers[b"host"], cookies, chosen, headers)


def read_form(text: bytes) -> dict[str, str]:
    """The fields of a form; those left empty are left out.

    Raises InvalidParameter for one given twice, BadRequest for what is no form.
    """
    try:
        pairs = parse_qsl(text.decode("ascii"), errors="strict", max_num_fields=_MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        raise BadRequest(f"The query is not valid UTF-8, or has more than {_MOST_FIELDS} fields.") from None
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields:
            raise InvalidParameter(name[:64], "given more than once")
        fields[name] = value
    return fields


def _cookies(header: bytes) -> dict[str, str]:
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load(header.decode("latin-1"))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in jar.items()}
