"""Links: addresses that carry a small key of their own, good for one question or one dialect.

`/link/TOKEN/<root>/...` is for clients that take only a base address, `?link=TOKEN` for one path with its
parameters. The token is taken out of the address here, before any surface sees it.
"""

import re
from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode

LINK: Final = "sankofa.link"
"""The member of an ASGI scope with what its link is asked to open. The token itself is among the header
fields, as a key would be."""
A_DIALECT: Final = "dialect:"
"""What a link in a path is asked to open, before the name of the dialect."""
FOLDER: Final = "/link/"
IS_FULL_KEY: Final = re.compile(r"sk_[A-Za-z0-9_-]+\Z")
"""What `sankofa keys create` prints, such as `sk_Zm9v`."""
PATHS: Final = ("/v1/", "/feeds/", "/open/")
"""How the paths begin that a link can open, besides those of dialects."""
_PARAMETER: Final = re.compile(rb"(?:^|&)link=([^&]*)")
"""The link in a query, such as `limit=5&link=lk_Zm9v`."""


Scope = MutableMapping[str, Any]


def is_link(text: str) -> bool:
    """Whether a text is written as a link key."""
    return text.startswith("lk_")


def one_path(path: str, query: str) -> str:
    """What a link to one path opens: the path with its parameters, in any order."""
    pairs = sorted(parse_qsl(query, keep_blank_values=True))
    return f"path:{path}" + (f"?{urlencode(pairs)}" if pairs else "")


def address_of_path(address: str) -> tuple[str, str]:
    """What a link to an address opens, and the address before its token. Raises ValueError."""
    path, _, query = address.partition("?")
    if any(name == "link" for name, _value in parse_qsl(query, keep_blank_values=True)):
        raise ValueError("the address has a link already")
    return one_path(unquote(path), query), f"{path}?{query}{'&' if query else ''}link="


def token_in_path(scope: Scope) -> Scope:
    """The scope of the path behind `/link/TOKEN`."""
    token, slash, inside = scope["path"].removeprefix(FOLDER).partition("/")
    raw = (scope.get("raw_path") or b"")[len(FOLDER) + len(token) :]
    path = f"/{inside}" if slash else "/"
    return _opened(
        {**scope, "path": path, "raw_path": raw or b"/"}, token.encode("latin-1", "replace"), A_DIALECT
    )


def token_in_query(scope: Scope) -> Scope:
    """The scope without `link=TOKEN`; itself where its query has none."""
    query: bytes = scope["query_string"]
    tokens = _PARAMETER.findall(query)
    if len(tokens) != 1:
        return scope
    rest = _PARAMETER.sub(b"", query).removeprefix(b"&")
    opens = one_path(scope["path"], rest.decode("latin-1"))
    return _opened({**scope, "query_string": rest}, tokens[0], opens)


def _opened(scope: Scope, token: bytes, opens: str) -> Scope:
    return {**scope, "headers": [*scope["headers"], (b"x-api-key", token)], LINK: opens}
