"""Cursors: opaque, signed, bound to the filters they were issued for (contract: PAR-5)."""

import binascii
import hmac
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from sankofa.model.errors import InvalidParameter

_SIGNATURE = 16
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")
_encode = msgspec.msgpack.Encoder().encode


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The next position in a list: the edition, the filters, and the sort key of the last row."""

    edition: str
    filters: str
    after: tuple[int | str, ...]


_decode = msgspec.msgpack.Decoder(Position).decode


class Cursors:
    """Signs with the first secret and verifies with any, so that secrets can be rotated."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets = tuple(blake2b(secret).digest() for secret in secrets)  # as long as a key may be

    def issue(self, position: Position) -> str:
        body = _encode(position)
        return _text(_sign(self._secrets[0], body) + body)

    def read(self, cursor: str, filters: str) -> Position:
        """The position of a cursor. Raises InvalidParameter when it was altered or is of other filters."""
        try:
            raw = binascii.a2b_base64(cursor.encode("ascii").translate(_FROM_URL) + b"==")
        except ValueError:
            raise InvalidParameter("cursor", "not a cursor of this service") from None
        if not self._is_signed(raw[:_SIGNATURE], raw[_SIGNATURE:]):
            raise InvalidParameter("cursor", "not a cursor of this service, or altered")
        if _text(raw) != cursor:  # one position has one cursor: other letters that decode to it are none
            raise InvalidParameter("cursor", "altered")
        position = _decode(raw[_SIGNATURE:])
        if position.filters != filters:
            raise InvalidParameter("cursor", "issued for other filters; pass the ones of the first page")
        return position

    def _is_signed(self, signature: bytes, body: bytes) -> bool:
        """Accepts the current secret, and earlier ones while secrets are rotated."""
        newest, *others = self._secrets
        return hmac.compare_digest(signature, _sign(newest, body)) or any(
            hmac.compare_digest(signature, _sign(secret, body)) for secret in others
        )


IN_LOCKED_VIEWS: Final = Cursors((b"a locked view tells everybody the same",))
"""The same on every installation, so that two that know the same give the same bytes (contract: LOCK-5).

Anybody could make one, and would see nothing more by it: the view ends on its day, whatever the position."""


def _text(raw: bytes) -> str:
    """Base64 for addresses, without padding."""
    return binascii.b2a_base64(raw, newline=False).translate(_URL_SAFE).rstrip(b"=").decode()


def _sign(key: bytes, body: bytes) -> bytes:
    """A keyed hash, a tenth of the cost of an HMAC."""
    return blake2b(body, digest_size=_SIGNATURE, key=key).digest()
