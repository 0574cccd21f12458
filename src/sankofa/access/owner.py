"""Addresses that grant access by themselves: the owner's sign-in, and links.

The owner of an installation has a key without quotas, in a file of HOME that only they can read, and one-time
codes that sign a browser in. The key store holds the hashes of the codes.

A link contains a limited key for one question or one dialect. `/link/TOKEN/<root>/...` is for clients that
take only a base address, `?link=TOKEN` for one path with its parameters. This module removes the token from
the address before any surface sees it.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode

import msgspec

from sankofa.access.keys import Keys
from sankofa.access.records import DamagedRecord, Records, SealedRecords
from sankofa.engines.private_files import make_private_folder, replace_file
from sankofa.model.errors import Unauthorized
from sankofa.model.limits import limit

SIGN_IN: Final = "/sign-in"
_FILE: Final = "owner-key"
_NAME: Final = "sign-in"
_MOST_CODES: Final = 8
"""Codes that can be valid at the same time; a new code replaces the oldest."""
_SECONDS: Final = limit("sign-in code of the owner", 600, "seconds", "401")
_REFUSED: Final = "This sign-in address was used already, or is too old. Run `sankofa open` for a new one."


class _Code(msgspec.Struct, frozen=True):
    hash: str
    key_id: str
    expires: float
    """In seconds since 1970."""


class _Codes(msgspec.Struct, frozen=True):
    codes: tuple[_Code, ...] = ()


class Owner:
    def __init__(self, home: Path, keys: Keys, records: SealedRecords, clock: Callable[[], datetime]) -> None:
        self._path = home / _FILE
        self._keys = keys
        self._records = Records(records, "", _Codes, lambda _: _NAME)
        self._clock = clock

    async def new_code(self) -> str:
        """A code for one sign-in. Issues the owner's key if it is missing or revoked."""
        key_id = await self._key_id()
        if key_id is None:
            make_private_folder(self._path.parent)
            key = await self._keys.create("professional", "owner", owner=True)
            replace_file(self._path, f"{key}\n".encode())
            key_id = (await self._keys.authenticate(key)).key_id
        code = secrets.token_urlsafe(32)
        new = _Code(_hash(code), key_id, self._clock().timestamp() + _SECONDS)

        def with_new(codes: _Codes) -> _Codes:
            return _Codes((*self._valid(codes)[-_MOST_CODES + 1 :], new))

        if await self._change(with_new) is None:
            await self._records.put(_Codes((new,)))
        return code

    async def redeem(self, code: str) -> str:
        """Exchange a code for the owner's key; the code is then used up. Raises Unauthorized."""
        digest, key_id = _hash(code), await self._key_id()

        def used_up(codes: _Codes) -> _Codes:
            match = [one for one in self._valid(codes) if one.hash == digest and one.key_id == key_id]
            if not match:
                raise Unauthorized(_REFUSED)
            return _Codes(tuple(one for one in self._valid(codes) if one not in match))

        if await self._change(used_up) is None:
            raise Unauthorized(_REFUSED)
        return self._key()

    async def _change(self, changed: Callable[[_Codes], _Codes]) -> _Codes | None:
        """Replace the stored codes; None if there is no undamaged record."""
        with suppress(DamagedRecord):
            return await self._records.change(_NAME, changed)
        return None

    def _valid(self, codes: _Codes) -> list[_Code]:
        now = self._clock().timestamp()
        return [code for code in codes.codes if code.expires > now]

    async def _key_id(self) -> str | None:
        """The id of the key in HOME, if it is valid and the owner's."""
        try:
            grant = await self._keys.authenticate(self._key())
        except (FileNotFoundError, Unauthorized):
            return None
        return grant.key_id if grant.owner else None

    def _key(self) -> str:
        return self._path.read_text(encoding="latin-1").strip()


def _hash(code: str) -> str:
    return hashlib.blake2b(code.encode(), digest_size=32).hexdigest()


LINK: Final = "sankofa.link"
"""The member of an ASGI scope with the target of its link. The token itself is in the header fields, like
a key."""
A_DIALECT: Final = "dialect:"
"""The beginning of a dialect target, before the dialect's name."""
FOLDER: Final = "/link/"
IS_FULL_KEY: Final = re.compile(r"sk_[A-Za-z0-9_-]+\Z")
"""A key as `sankofa keys create` prints it, such as `sk_Zm9v`."""
PATHS: Final = ("/v1/", "/feeds/", "/open/")
"""Prefixes of the paths that a link can open, besides those of dialects."""
_PARAMETER: Final = re.compile(rb"(?:^|&)link=([^&]*)")
"""The link in a query, such as `limit=5&link=lk_Zm9v`."""


Scope = MutableMapping[str, Any]


def is_link(text: str) -> bool:
    return text.startswith("lk_")


def one_path(path: str, query: str) -> str:
    """The target of a link to one path: the path with its parameters, in any order."""
    pairs = sorted(parse_qsl(query, keep_blank_values=True))
    return f"path:{path}" + (f"?{urlencode(pairs)}" if pairs else "")


def address_of_path(address: str) -> tuple[str, str]:
    """The target of a link to an address, and the address up to the token. Raises ValueError."""
    path, _, query = address.partition("?")
    if any(name == "link" for name, _value in parse_qsl(query, keep_blank_values=True)):
        raise ValueError("the address has a link already")
    return one_path(unquote(path), query), f"{path}?{query}{'&' if query else ''}link="


def token_in_path(scope: Scope) -> Scope:
    """The scope of the path after `/link/TOKEN`."""
    token, slash, inside = scope["path"].removeprefix(FOLDER).partition("/")
    raw = (scope.get("raw_path") or b"")[len(FOLDER) + len(token) :]
    path = f"/{inside}" if slash else "/"
    return _opened(
        {**scope, "path": path, "raw_path": raw or b"/"}, token.encode("latin-1", "replace"), A_DIALECT
    )


def token_in_query(scope: Scope) -> Scope:
    """The scope without `link=TOKEN`; unchanged if its query has none."""
    query: bytes = scope["query_string"]
    tokens = _PARAMETER.findall(query)
    if len(tokens) != 1:
        return scope
    rest = _PARAMETER.sub(b"", query).removeprefix(b"&")
    opens = one_path(scope["path"], rest.decode("latin-1"))
    return _opened({**scope, "query_string": rest}, tokens[0], opens)


def _opened(scope: Scope, token: bytes, opens: str) -> Scope:
    return {**scope, "headers": [*scope["headers"], (b"x-api-key", token)], LINK: opens}
