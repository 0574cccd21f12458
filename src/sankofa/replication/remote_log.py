"""The log of editions elsewhere: in a store that was pushed to, or on a node under `/log/`.

A publisher restored from an older backup would sign a different past than its readers saw. So `push` records
where it sent the log, backups include those addresses, and `publish` checks them first.

Others attest the checkpoints of the log.

Witnesses cosign them: each attests that the log only grew since its last check. C2SP specifies the request in
tlog-witness (`add-checkpoint`) and the signature in tlog-cosignature (`cosignature/v1`). An authority stamps
them (RFC 3161): it attests that the log existed at a time. Peers that are silent or answer something else are
left out; the next publish asks again.
"""

import hashlib
import logging
import struct
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_log import (
    CHECKPOINT,
    ENTRIES,
    LARGEST_LOG,
    NO_ENTRIES,
    LoggedErasure,
    LogTree,
    bundle_paths,
    checked_log,
    checkpoint_head,
)
from sankofa.engines.object_store import ObjectError, ObjectMissing, ObjectSource, open_source
from sankofa.engines.private_files import operator_errors, replace_file
from sankofa.engines.publication import NOTE_BYTES
from sankofa.model.errors import OperatorError, SettingsError
from sankofa.model.limits import limit
from sankofa.model.signed_notes import (
    NotTrusted,
    Verifier,
    consistency_path,
    root_of,
    sign_note,
    verified_text,
)
from sankofa.settings import listed

_witness_log = logging.getLogger("sankofa.witnesses")
_SECONDS: Final = limit("time for an answer of a witness", 5.0, "seconds", "its cosignature is left out")
_BYTES: Final = limit("answer of a witness", 16 << 10, "bytes", "its cosignature is left out")
_COSIGNATURE: Final = b"\x04"
_STAMP: Final = struct.Struct(">Q")
_SIGNATURE_BYTES: Final = 64
_DASH: Final = "\N{EM DASH} "
_Answer = TypeVar("_Answer")


class Witness(NamedTuple):
    """A witness's address and key."""

    address: str
    name: str
    public: bytes

    @property
    def hash(self) -> bytes:
        return hashlib.sha256(self.name.encode() + b"\n" + _COSIGNATURE + self.public).digest()[:4]

    def cosignature(self, note: str, lines: str) -> str:
        """The witness's cosignature line in a note; empty if there is none."""
        text, own = note.partition("\n\n")[0] + "\n", _DASH + self.name
        for line in lines.splitlines():
            before, _, encoded = line.rpartition(" ")
            try:
                content = b64decode(encoded, validate=True)
            except ValueError:
                continue
            own_hash, stamp, signature = content[:4], content[4:12], content[12:]
            if before != own or own_hash != self.hash or len(signature) != _SIGNATURE_BYTES:
                continue
            signed = f"cosignature/v1\ntime {_STAMP.unpack(stamp)[0]}\n{text}".encode()
            if Verifier(self.name, self.public).signed(signed, signature):
                return f"{own} {b64encode(content).decode()}\n"  # base64 as in notes
        return ""


def parse_witnesses(text: str) -> tuple[Witness, ...]:
    """The witnesses of SANKOFA_LOG_WITNESSES. Raises SettingsError."""
    witnesses = []
    for part in listed(text):
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
                f"SANKOFA_LOG_WITNESSES: {part!r} is not a witness: expected https://ADDRESS NAME+HASH+BASE64"
                " with a key for cosignatures (its first byte is 4)"
            )
        witnesses.append(witness)
    return tuple(witnesses)


def cosigned(note: bytes, leaves: Sequence[bytes], witnesses: Sequence[Witness]) -> bytes:
    """The checkpoint of a log with all cosignatures received from witnesses."""
    text = note.decode()
    missing = [witness for witness in witnesses if not witness.cosignature(text, text)]
    if not missing:
        return note
    with ThreadPoolExecutor(len(missing), thread_name_prefix="witness") as threads:
        lines = threads.map(lambda witness: _cosignature(witness, text, leaves), missing)
        return note + "".join(lines).encode()


def _cosignature(witness: Witness, note: str, leaves: Sequence[bytes]) -> str:
    def posted() -> tuple[int, str]:
        status, answer = _post(witness, note, leaves, 0)
        if status == HTTPStatus.CONFLICT:  # the body is the log size that the witness knows
            status, answer = _post(witness, note, leaves, int(answer))
        return status, answer

    try:
        status, answer = _within(_SECONDS, posted)
        if status == HTTPStatus.OK and (line := witness.cosignature(note, answer)):
            return line
        failure = f"answered {status}" if status != HTTPStatus.OK else "sent no cosignature of its key"
    except (ValueError, TimeoutError) as error:
        failure = str(error) or type(error).__name__
    _witness_log.warning("no cosignature of %s for the log: %s", witness.name, failure)
    return ""


def _post(witness: Witness, note: str, leaves: Sequence[bytes], size: int) -> tuple[int, str]:
    """Status and body. Raises ValueError if there is none, or the body is too long."""
    path = "".join(f"{b64encode(one).decode()}\n" for one in consistency_path(leaves, size))
    status, body = _sent(f"{witness.address}/add-checkpoint", f"old {size}\n{path}\n{note}".encode(), {})
    return status, body.decode()


def _within(seconds: float | None, ask: Callable[[], _Answer]) -> _Answer:
    """The answer of a peer. Raises TimeoutError if the whole answer takes longer."""
    answer: Future[_Answer] = Future()

    def perform() -> None:
        try:
            answer.set_result(ask())
        except BaseException as failure:
            answer.set_exception(failure)

    threading.Thread(target=perform, name="peer", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        raise TimeoutError(f"no answer in {seconds or 0:.0f} s") from None


def _sent(url: str, content: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    import httpx  # a fifth of the time in which a command starts, and most commands ask nobody

    body = b""
    try:
        with httpx.stream(
            "POST", url, content=content, headers=headers, timeout=_SECONDS, follow_redirects=False
        ) as reply:
            for chunk in reply.iter_raw(1024):
                body += chunk
                if len(body) > _BYTES:
                    raise ValueError(f"it answered with more than {_BYTES} bytes")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ValueError(str(error) or type(error).__name__) from error
    return reply.status_code, body


def stamped(text: str, address: str) -> bytes | None:
    """An authority's stamp on the text of a checkpoint; None if refused. Raises SettingsError."""
    try:
        from rfc3161_client import HashAlgorithm, TimestampRequestBuilder, decode_timestamp_response
    except ImportError:
        raise SettingsError(
            "SANKOFA_LOG_TIMESTAMP_URL: needs a library: make setup EXTRAS=1, or install sankofa[timestamps]"
        ) from None
    request = TimestampRequestBuilder().data(text.encode()).hash_algorithm(HashAlgorithm.SHA256).build()
    try:
        headers = {"content-type": "application/timestamp-query"}
        status, answer = _within(_SECONDS, lambda: _sent(address, request.as_bytes(), headers))
        if status != HTTPStatus.OK:
            raise ValueError(f"answered {status}")
        stamp = decode_timestamp_response(answer)
        info, digest = stamp.tst_info if stamp.status == 0 else None, hashlib.sha256(text.encode()).digest()
        if info is None or info.nonce != request.nonce or info.message_imprint.message != digest:
            raise ValueError(f"sent no stamp of this log: status {stamp.status}, {stamp.status_string}")
    except (ValueError, TimeoutError) as error:
        _witness_log.warning("no stamp of %s for the log: %s", address, str(error) or type(error).__name__)
        return None
    return answer


_log = logging.getLogger("sankofa.log")
PUSHED_TO: Final = "pushed-to"
"""In HOME: the addresses that the log was pushed to, a line for each."""
_ANSWER_SECONDS: Final = 5.0
"""How long `publish` waits for each store, unless HOME was restored."""
_TAKE: Final = "`sankofa editions take-log ADDRESS` fetches the log of a store or of a node"
_ANOTHER: Final = (
    "the log there has {} entries, but the log here does not begin with them: HOME was restored from an "
    f"older backup, and published before that was known. {_TAKE}; entries that only HOME has follow after it"
)


def read_log(
    source: ObjectSource, trusted: Sequence[Verifier], before: LogTree, checkpoint: bytes
) -> LogTree:
    """The log of a checkpoint. Raises NotTrusted or ObjectError, ObjectMissing if there is none."""
    try:
        content = source.read(ENTRIES, LARGEST_LOG)
    except ObjectMissing:  # a node has bundles of entries
        size = checkpoint_head(verified_text(checkpoint, trusted))[0]
        content = b"".join(source.read(path, LARGEST_LOG) for path in bundle_paths(size))
    return checked_log(content, checkpoint, trusted, before)


def refuse_contradiction(here: LogTree, source: ObjectSource, trusted: Sequence[Verifier]) -> None:
    """Raises OperatorError if a trusted key signed the remote log, and the local one begins differently."""
    try:
        text = verified_text(source.read(CHECKPOINT, NOTE_BYTES), trusted)
        if not _begins_with(here, text):
            raise OperatorError(_ANOTHER.format(checkpoint_head(text)[0]))
    except (NotTrusted, ObjectMissing):
        return


def _begins_with(here: LogTree, checkpoint: str) -> bool:
    size, root = checkpoint_head(checkpoint)
    return size <= len(here.leaves) and root_of(here.leaves[:size]) == root


def take_log(
    store: Datastore, source: ObjectSource, *, replacing: bool = False, patience: float | None = None
) -> int:
    """Fetches the remote log if it has entries that are missing here; returns their number.

    Entries that only this store has follow after them. The checkpoint is read within `patience` seconds,
    without the lock for switching. Raises OperatorError if neither log begins with the other, unless
    `replacing`; ObjectError or NotTrusted.
    """
    trusted = [signer.verifier for signer in store.signers()]
    try:
        checkpoint = _within(patience, lambda: source.read(CHECKPOINT, NOTE_BYTES))
    except TimeoutError as late:
        raise ObjectError(f"{CHECKPOINT}: {late}") from None
    if _begins_with(store.log.tree(), verified_text(checkpoint, trusted)):
        return 0
    there = read_log(source, trusted, NO_ENTRIES, checkpoint)
    with store.exclusive("switch"):
        here = store.log.tree()
        if here.leaves[: len(there.leaves)] == there.leaves:
            return 0  # another command took them over meanwhile
        if not replacing and there.leaves[: len(here.leaves)] != here.leaves:
            raise OperatorError(_ANOTHER.format(len(there.leaves)))
        known = frozenset(there.entries)
        own = [entry for entry in here.entries if entry not in known]
        store.log.take(LogTree((*there.entries, *own), ()).bundle(), checkpoint)
        for entry in there.decoded:
            if isinstance(entry, LoggedErasure):
                store.withdraw(entry.editions)
            else:
                store.list_as_published([entry.edition])
    return len(known - {*here.entries})


def pushed_to(home: Path) -> list[str]:
    path = home / PUSHED_TO
    with operator_errors(path):
        return path.read_text().splitlines() if path.exists() else []


def note_pushed_to(home: Path, address: str) -> None:
    if not urlsplit(address).scheme:
        address = str(Path(address).resolve())
    if address not in (known := pushed_to(home)):
        with operator_errors(home / PUSHED_TO):
            replace_file(home / PUSHED_TO, "".join(f"{line}\n" for line in (*known, address)).encode())


def take_pushed_logs(store: Datastore, home: Path, witnesses: Sequence[Witness]) -> None:
    """Before a publication: fetches the log from each store that it was pushed to.

    A restored HOME that has signed nothing yet publishes only after all stores answered and no witness saw a
    longer log. Raises OperatorError.
    """
    is_restored = bool(store.log.tree().entries) and store.log.checkpoint() is None
    for address in pushed_to(home):
        shown = urlsplit(address)._replace(netloc=urlsplit(address).netloc.rpartition("@")[2]).geturl()
        try:
            with closing(open_source(address)) as source:
                if count := take_log(store, source, patience=None if is_restored else _ANSWER_SECONDS):
                    _log.warning("fetched %d entries of the log at %s", count, shown)
        except (ObjectError, SettingsError, NotTrusted) as failure:
            if is_restored and not isinstance(failure, ObjectMissing):
                raise OperatorError(
                    f"{shown}: {failure}. HOME was restored from a backup, and the log was pushed there: "
                    f"publish once it can be read again, or remove that line from {PUSHED_TO} in HOME"
                ) from failure
            if is_restored or not isinstance(failure, ObjectMissing):
                _log.warning("the log at %s could not be compared: %s", shown, failure)
        except OperatorError as failure:
            raise OperatorError(f"{shown}: {failure}") from failure
    if is_restored and store.log.checkpoint() is None and witnesses:
        signers, tree = store.signers(), store.log.tree()
        note = sign_note(tree.text(signers[0].verifier.name), signers).decode()
        here = len(tree.leaves)
        for witness in witnesses:
            size = 0
            with suppress(ValueError, TimeoutError):
                status, answer = _within(_SECONDS, partial(_post, witness, note, tree.leaves, here))
                size = int(answer) if status == HTTPStatus.CONFLICT else 0  # the witness saw another log
            if size > here:
                raise OperatorError(
                    f"the witness {witness.name} saw a log of {size} entries, but the log in HOME has "
                    f"{here}: HOME was restored from an older backup. {_TAKE}"
                )
