"""The log of editions as another place has it: a store that was pushed to, or a node under `/log/`.

A publisher that was restored from an older backup would sign another past than the one its readers saw. So
`push` notes where it sent the log, a backup has those addresses, and `publish` looks there first.
"""

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Final
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
from sankofa.engines.witnesses import Witness, sizes_seen
from sankofa.model.errors import OperatorError, SettingsError
from sankofa.model.signed_notes import NotTrusted, Verifier, root_of, sign_note, verified_text

_log = logging.getLogger("sankofa.log")
PUSHED_TO: Final = "pushed-to"
"""In HOME: the addresses that the log was pushed to, a line for each."""
_ANSWER_SECONDS: Final = 5.0
"""How long `publish` waits for each of them, unless HOME was restored."""
_TAKE: Final = "`sankofa editions take-log ADDRESS` takes over the log of a store or of a node"
_ANOTHER: Final = (
    "the log there has {} entries, and the log here does not begin with them: HOME was restored from an "
    f"older backup, and published before it knew. {_TAKE}; what only HOME has goes behind it"
)


def read_log(
    source: ObjectSource, trusted: Sequence[Verifier], before: LogTree, checkpoint: bytes
) -> LogTree:
    """The log behind a checkpoint. Raises NotTrusted or ObjectError, ObjectMissing if there is none."""
    try:
        content = source.read(ENTRIES, LARGEST_LOG)
    except ObjectMissing:  # a node has bundles of entries
        size = checkpoint_head(verified_text(checkpoint, trusted))[0]
        content = b"".join(source.read(path, LARGEST_LOG) for path in bundle_paths(size))
    return checked_log(content, checkpoint, trusted, before)


def refuse_contradiction(here: LogTree, source: ObjectSource, trusted: Sequence[Verifier]) -> None:
    """Raises OperatorError if a trusted key signed the log there, and the one here begins otherwise."""
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
    """Take over the log there if it has entries that are missing here; their number.

    Entries that only this store has stay behind them. The place is asked without the lock to switch;
    `patience` is how many seconds it may take to show its checkpoint. Raises OperatorError if one log is no
    beginning of the other, unless `replacing`; ObjectError or NotTrusted.
    """
    trusted = [signer.verifier for signer in store.signers()]
    checkpoint = _read_within(patience, source, CHECKPOINT)
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
        for entry in there.decoded():
            if isinstance(entry, LoggedErasure):
                store.withdraw(entry.editions)
            else:
                store.list_as_published([entry.edition])
    return len(known - {*here.entries})


def _read_within(seconds: float | None, source: ObjectSource, path: str) -> bytes:
    """Read a small object. Raises ObjectError if it takes longer, whatever the store itself allows."""
    if seconds is None:
        return source.read(path, NOTE_BYTES)
    answer: Future[bytes] = Future()

    def ask() -> None:
        try:
            answer.set_result(source.read(path, NOTE_BYTES))
        except BaseException as failure:
            answer.set_exception(failure)

    threading.Thread(target=ask, name="checkpoint", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        raise ObjectError(f"{path}: no answer in {seconds:.0f} s") from None


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
    """Before something is published: take over the log of each place that it was pushed to.

    A HOME that was restored, and signed nothing yet, publishes only once all of them answered and no witness
    saw a longer log. Raises OperatorError.
    """
    is_restored = bool(store.log.tree().entries) and store.log.checkpoint() is None
    for address in pushed_to(home):
        shown = urlsplit(address)._replace(netloc=urlsplit(address).netloc.rpartition("@")[2]).geturl()
        try:
            with closing(open_source(address)) as source:
                if count := take_log(store, source, patience=None if is_restored else _ANSWER_SECONDS):
                    _log.warning("took over %d entries of the log at %s", count, shown)
        except (ObjectError, SettingsError, NotTrusted) as failure:
            if is_restored and not isinstance(failure, ObjectMissing):
                raise OperatorError(
                    f"{shown}: {failure}. HOME was restored from a backup, and the log was pushed there: "
                    f"publish when it can be read again, or remove that line from {PUSHED_TO} in HOME"
                ) from failure
            if is_restored or not isinstance(failure, ObjectMissing):
                _log.warning("the log at %s could not be compared: %s", shown, failure)
        except OperatorError as failure:
            raise OperatorError(f"{shown}: {failure}") from failure
    if is_restored and store.log.checkpoint() is None and witnesses:
        signers, tree = store.signers(), store.log.tree()
        note = sign_note(tree.text(signers[0].verifier.name), signers).decode()
        for name, size in sizes_seen(note, tree.leaves, witnesses).items():
            if size > len(tree.leaves):
                raise OperatorError(
                    f"the witness {name} saw a log of {size} entries, and the one in HOME has "
                    f"{len(tree.leaves)}: it was restored from an older backup. {_TAKE}"
                )
