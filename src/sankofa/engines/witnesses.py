"""Others attest the checkpoints of the log.

Witnesses cosign them: each one attests that the log only grew since it last looked. As C2SP specifies it: the
request in tlog-witness (`add-checkpoint`), the signature in tlog-cosignature (`cosignature/v1`). An authority
stamps them (RFC 3161): it attests that the log was there at a time. One that is silent, or answers
something else, is left out; the next publish asks again.
"""

import hashlib
import logging
import struct
import time
from base64 import b64decode, b64encode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, NamedTuple

import httpx

from sankofa.model.errors import SettingsError
from sankofa.model.limits import limit
from sankofa.model.signed_notes import Verifier, consistency_path

_log = logging.getLogger("sankofa.witnesses")
_SECONDS: Final = limit("time for an answer of a witness", 5.0, "seconds", "its cosignature is left out")
_BYTES: Final = limit("answer of a witness", 16 << 10, "bytes", "its cosignature is left out")
_COSIGNATURE: Final = b"\x04"
_STAMP: Final = struct.Struct(">Q")
_SIGNATURE_BYTES: Final = 64
_DASH: Final = "\N{EM DASH} "


class Witness(NamedTuple):
    """Where a witness is asked, and its key."""

    address: str
    name: str
    public: bytes

    @property
    def hash(self) -> bytes:
        return hashlib.sha256(self.name.encode() + b"\n" + _COSIGNATURE + self.public).digest()[:4]

    def cosignature(self, note: str, lines: str) -> str:
        """The line with its cosignature of a note; empty if there is none."""
        text = note.partition("\n\n")[0] + "\n"
        for line in lines.splitlines():
            name, _, encoded = line.removeprefix(_DASH).partition(" ")
            try:
                content = b64decode(encoded, validate=True)
            except ValueError:
                continue
            own_hash, stamp, signature = content[:4], content[4:12], content[12:]
            if name != self.name or own_hash != self.hash or len(signature) != _SIGNATURE_BYTES:
                continue
            signed = f"cosignature/v1\ntime {_STAMP.unpack(stamp)[0]}\n{text}".encode()
            if Verifier(name, self.public).signed(signed, signature):
                return f"{line}\n"
        return ""


def parse_witnesses(text: str) -> tuple[Witness, ...]:
    """The witnesses of SANKOFA_LOG_WITNESSES. Raises SettingsError."""
    witnesses = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        address, _, key = part.partition(" ")
        name, own_hash, encoded = (*key.strip().split("+", 2), "", "")[:3]
        try:
            content = b64decode(encoded, validate=True)
        except ValueError:
            content = b""
        witness = Witness(address.rstrip("/"), name, content[1:])
        is_key = content[:1] == _COSIGNATURE and len(content) == 33 and witness.hash.hex() == own_hash
        if not is_key or not address.startswith(("https://", "http://")):
            raise SettingsError(
                f"SANKOFA_LOG_WITNESSES: {part!r} is no witness: expected https://ADDRESS NAME+HASH+BASE64 "
                "with a key for cosignatures (its first byte is 4)"
            )
        witnesses.append(witness)
    return tuple(witnesses)


def cosigned(note: bytes, leaves: Sequence[bytes], witnesses: Sequence[Witness]) -> bytes:
    """The checkpoint of a log with the cosignature of each witness that gave one."""
    text = note.decode()
    missing = [witness for witness in witnesses if not witness.cosignature(text, text)]
    if not missing:
        return note
    with ThreadPoolExecutor(len(missing), thread_name_prefix="witness") as threads:
        lines = threads.map(lambda witness: _asked(witness, text, leaves), missing)
        return note + "".join(lines).encode()


def sizes_seen(note: str, leaves: Sequence[bytes], witnesses: Sequence[Witness]) -> dict[str, int]:
    """The size of the log that each witness saw, where it saw another than this one and says so."""
    sizes = {}
    for witness in witnesses:
        with suppress(httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError):
            status, answer = _post(witness, note, leaves, len(leaves))
            if status == httpx.codes.CONFLICT:
                sizes[witness.name] = int(answer)
    return sizes


def _asked(witness: Witness, note: str, leaves: Sequence[bytes]) -> str:
    try:
        status, answer = _post(witness, note, leaves, 0)
        if status == httpx.codes.CONFLICT:  # it tells the size that it knows
            status, answer = _post(witness, note, leaves, int(answer))
        if status == httpx.codes.OK and (line := witness.cosignature(note, answer)):
            return line
        failure = f"answered {status}" if status != httpx.codes.OK else "sent no cosignature of its key"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError) as error:
        failure = str(error) or type(error).__name__
    _log.warning("the log is without the cosignature of %s: %s", witness.name, failure)
    return ""


def _post(witness: Witness, note: str, leaves: Sequence[bytes], size: int) -> tuple[int, str]:
    """Status and body. Raises httpx.HTTPError, TimeoutError, or ValueError for a body that is too long."""
    path = "".join(f"{b64encode(one).decode()}\n" for one in consistency_path(leaves, size))
    status, body = _sent(f"{witness.address}/add-checkpoint", f"old {size}\n{path}\n{note}".encode(), {})
    return status, body.decode()


def _sent(url: str, content: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    until = time.monotonic() + _SECONDS
    body = b""
    with httpx.stream(
        "POST", url, content=content, headers=headers, timeout=_SECONDS, follow_redirects=False
    ) as reply:
        for chunk in reply.iter_raw(1024):
            body += chunk
            if len(body) > _BYTES:
                raise ValueError(f"it answered with more than {_BYTES} bytes")
            if time.monotonic() > until:
                raise TimeoutError(f"no whole answer within {_SECONDS:.0f} s")
    return reply.status_code, body


def stamped(text: str, address: str) -> bytes | None:
    """The stamp of an authority on the text of a checkpoint; None if it gave none. Raises SettingsError."""
    try:
        from rfc3161_client import HashAlgorithm, TimestampRequestBuilder, decode_timestamp_response
    except ImportError:
        raise SettingsError(
            "SANKOFA_LOG_TIMESTAMP_URL: needs a library: make setup EXTRAS=1, or install sankofa[timestamps]"
        ) from None
    request = TimestampRequestBuilder().data(text.encode()).hash_algorithm(HashAlgorithm.SHA256).build()
    try:
        status, answer = _sent(address, request.as_bytes(), {"content-type": "application/timestamp-query"})
        if status != httpx.codes.OK:
            raise ValueError(f"answered {status}")
        stamp = decode_timestamp_response(answer)
        if stamp.status != 0 or stamp.tst_info.nonce != request.nonce or not is_stamp_of(answer, text):
            raise ValueError(f"sent no stamp of this log: status {stamp.status}, {stamp.status_string}")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError) as error:
        _log.warning("the log is without the stamp of %s: %s", address, str(error) or type(error).__name__)
        return None
    return answer


def is_stamp_of(stamp: bytes, text: str) -> bool:
    """Whether a stamp names the digest of the text; `sankofa verify --roots` tells who made it."""
    return hashlib.sha256(text.encode()).digest() in stamp
