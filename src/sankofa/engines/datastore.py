"""The datastore: one folder per edition under HOME, beside a ledger in SQLite or PostgreSQL.

Published editions never change. A signed note names the current edition and is replaced atomically, so
switching is one rename. CURRENT repeats its name in one line, for people, and for a HOME without a note.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from sankofa.engines.block_file import BLOCK_CACHE_BYTES, ByteCache
from sankofa.engines.checked_file import Damaged, FileStates
from sankofa.engines.edition_folder import EditionWriter, edition_contents
from sankofa.engines.edition_log import EditionLog
from sankofa.engines.edition_reader import (
    EditionReader,
    OpenParts,
    edition_errors,
    read_manifest,
    stored_files,
)
from sankofa.engines.ledger_store import LedgerStore, LockName, open_ledgers
from sankofa.engines.private_files import (
    locked,
    make_private_folder,
    open_private,
    operator_errors,
    replace_file,
)
from sankofa.engines.publication import (
    EDITION_ID,
    KEY_FILE,
    LIST,
    NOTE,
    WITHDRAWN,
    Manifest,
    Publication,
    PublishedList,
    read_list,
    read_publication,
    sign_publication,
    signers_of,
    signers_to_sign,
)
from sankofa.model.errors import EditionError, OperatorError, StoreUnavailable
from sankofa.model.signed_notes import NotTrusted, Signer, Verifier


class EditionList(NamedTuple):
    """The published edition ids, newest first, and the served id."""

    editions: tuple[str, ...]
    current: str | None


class Datastore:
    """The ledger and the editions of one HOME. Reading the list raises StoreUnavailable."""

    def __init__(
        self,
        home: Path,
        ledgers: LedgerStore,
        cache_bytes: int = BLOCK_CACHE_BYTES,
        trusted: tuple[Verifier, ...] = (),
        keys: Path | None = None,
    ) -> None:
        """Opens only editions signed by one of the `trusted` keys; without them, by the key in HOME.

        `keys` is HOME if the ledger and the editions are in another folder.
        """
        self.ledgers = ledgers
        self._home = home
        self._keys = keys or home
        self.editions = home / "editions"
        """The folder that has a folder for each edition."""
        self._pointer = self.editions / "CURRENT"
        self._published = self.editions / LIST
        self._note = self.editions / NOTE
        self._trusted = trusted
        self.log = EditionLog(self.editions)
        self._note_read: tuple[tuple[int, int, int], Publication] | None = None
        """The last note that was verified, and the inode, time and size of its file."""
        self._unsigned: dict[str, str] = {}
        """Seals of editions that this process built or pulled, to be signed."""
        self._states = FileStates()
        self._opened = OpenParts(self._states, ByteCache(cache_bytes, entry_bytes=512))

    def build(self) -> EditionWriter:
        with operator_errors(self.editions):
            make_private_folder(self._home)
            make_private_folder(self.editions)
            publication = self.publication()
            signed = None if publication is None else publication.editions
            return EditionWriter(self.editions, self._opened, signed, self.await_signature)

    def await_signature(self, edition: str, seal: str) -> None:
        """Lets this process open an edition that it pulled, before the signed note names it."""
        self._unsigned[edition] = seal

    def open(self, edition: str, *, check_all: bool = False) -> EditionReader:
        """Raises EditionError when it is corrupt, incomplete or gone.

        Its manifest must match the seal. `check_all` verifies every byte that this process has not verified
        before; otherwise it verifies as many as take a moment, and the rest when they are read.
        """
        folder = self.edition_folder(edition)
        self._states.forget_missing()
        return EditionReader(folder, self._opened, self._signed_seal(edition), check_all=check_all)

    def sealed_folder(self, edition: str) -> tuple[Path, str | None]:
        """Its folder and seal, with which another process opens it (`EditionReader`)."""
        return self.edition_folder(edition), self._signed_seal(edition)

    def manifest(self, edition: str) -> Manifest:
        """The sealed manifest; reads no other file. Raises EditionError."""
        folder = self.edition_folder(edition)
        with edition_errors(folder):
            return read_manifest(folder, self._signed_seal(edition))

    def _signed_seal(self, edition: str) -> str | None:
        """The signed digest of its manifest; None if nothing was signed here yet.

        Raises EditionError if no trusted key signed this edition.
        """
        if edition in self._unsigned:
            return self._unsigned[edition]
        try:
            publication = self.publication()
        except StoreUnavailable as failure:
            raise EditionError(f"edition {edition}: {failure.cause}") from failure
        if publication is None:
            return None
        if edition not in publication.editions:
            raise EditionError(f"edition {edition}: no trusted key signed it")
        return publication.editions[edition]

    def publication(self) -> Publication | None:
        """The signed note of this store; None if nothing is signed yet. Raises StoreUnavailable if no
        trusted key signed it."""
        try:
            status = self._note.stat()
            state = status.st_ino, status.st_mtime_ns, status.st_size
            if self._note_read is None or self._note_read[0] != state:
                content = self._note.read_bytes()
                self._note_read = state, read_publication(content, self._trusted_keys())
        except FileNotFoundError:
            if self._trusted and self._pointer.exists():
                raise StoreUnavailable("datastore", f"{NOTE}: missing: nothing here is signed") from None
            return None
        except (OSError, NotTrusted, OperatorError) as failure:
            raise StoreUnavailable("datastore", f"{NOTE}: {failure}") from failure
        return self._note_read[1]

    def _trusted_keys(self) -> tuple[Verifier, ...] | None:
        """The trusted keys; None if the first signer is trusted. Raises NotTrusted without any."""
        if keys := self._trusted or tuple(signer.verifier for signer in signers_of(self._keys)):
            return keys
        raise NotTrusted(f"{KEY_FILE} is missing in HOME: restore it from a backup")

    def refresh(self) -> None:
        """Pulls what the other machines of a shared store published; does nothing here."""

    def share_log(self) -> None:
        """Sends the log to the other machines of a shared store; does nothing here."""

    def is_shared(self) -> bool:
        """Whether the other machines of a shared store, if any, can read the current edition."""
        return True

    def signers(self) -> tuple[Signer, ...]:
        """The keys of this HOME, created if there are none. Raises OperatorError."""
        signers = signers_to_sign(self._keys, signed_before=self._note.exists())
        if self._trusted and not {signer.verifier for signer in signers}.intersection(self._trusted):
            raise OperatorError(
                f"SANKOFA_TRUSTED_KEYS: the key of this HOME is not among them: {signers[0].verifier.text}"
            )
        return signers

    def edition_folder(self, edition: str) -> Path:
        """Raises EditionError if it is not the name of an edition."""
        if not EDITION_ID.match(edition):
            raise EditionError(f"edition {edition!r}: not the name of an edition")
        return self.editions / edition

    def written_state(self, edition: str) -> str:
        """A text that changes with any write to the ledger or to this edition; opening a ledger does not
        change it.

        It is a digest of the ledger's state, and of the inodes, sizes and times of writing of the files.
        """
        folder = self.editions / edition
        digest = sha256(self.ledgers.written_state().encode())
        with operator_errors(folder):
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    known = path.stat()
                    digest.update(
                        f"{path.name} {known.st_ino} {known.st_size} {known.st_mtime_ns}\n".encode()
                    )
        return digest.hexdigest()

    def list_editions(self) -> EditionList:
        publication = self.publication()
        names = [
            p.parent.name for p in self.editions.glob("*/manifest.json") if EDITION_ID.match(p.parent.name)
        ]
        current = self._unsigned_pointer() if publication is None else self._current_of(publication)
        return EditionList(tuple(sorted(names, reverse=True)), current)

    def _current_of(self, publication: Publication) -> str:
        return publication.current

    def _unsigned_pointer(self) -> str | None:
        try:
            return self._pointer.read_text().strip() or None
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as failure:
            raise StoreUnavailable("datastore", f"{self._pointer.name}: {failure}") from failure

    @contextmanager
    def exclusive(self, lock_name: LockName, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Runs one command at a time on this store, across machines; others wait. `waiting` is called once if
        the lock is held. The lock ends with the process that holds it."""
        with self.ledgers.exclusive(lock_name, waiting):
            self.refresh()
            with self.locked_here(lock_name, waiting):
                yield

    @contextmanager
    def locked_here(self, lock_name: LockName, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """One process at a time on this HOME."""
        path = self._home / f".{lock_name}.lock"
        with ExitStack() as stack:
            with operator_errors(path):
                make_private_folder(self._home)
                stack.enter_context(locked(path, waiting=waiting))
            yield

    def set_current_and_prune(self, editions: Sequence[str], current: str) -> None:
        """Add `current` to the list of everything published, point at it in one atomic step, then remove
        every edition that is not listed."""
        signers = self.signers()
        stored = self.list_editions().editions
        removed = [name for name in stored if name not in editions and name != current]
        self.list_as_published(self.published() | {current})
        self._sign(signers, current, [name for name in stored if name not in removed])
        with operator_errors(self._pointer):
            replace_file(self._pointer, f"{current}\n".encode())
            for name in removed:
                shutil.rmtree(self.editions / name)

    def _sign(self, signers: Sequence[Signer], current: str, stored: Iterable[str]) -> None:
        """Sign the stored editions that were signed before or that this process built; all of them if nothing
        was signed before."""
        before = self.publication()
        editions = {}
        for name in stored:
            if name in self._unsigned:
                editions[name] = self._unsigned[name]
            elif before is None:
                with suppress(EditionError):  # it is damaged
                    editions[name] = edition_contents(self.editions / name).seal
            elif name in before.editions:
                editions[name] = before.editions[name]
        if current not in editions:
            raise EditionError(f"edition {current}: not there, or damaged")
        with operator_errors(self._note):
            _, note = sign_publication(
                signers,
                current=current,
                editions=editions,
                withdrawn=self.withdrawn(),
                published=self._published.read_bytes(),
                before=before,
                now=datetime.now(UTC),
            )
            replace_file(self._note, note)
        self._unsigned.clear()

    def list_as_published(self, editions: Collection[str]) -> None:
        """Adds missing editions to the list of `published` ones."""
        with operator_errors(self._published):
            make_private_folder(self.editions)
        self._append_to_list(sorted({*editions} - self.published_list().published))

    def published(self) -> frozenset[str]:
        """Every published edition, including the stored ones."""
        stored = self.list_editions()
        return self.published_list().published | {*stored.editions, *filter(None, [stored.current])}

    def withdraw(self, editions: Collection[str]) -> None:
        """Marks stored editions as withdrawn: they may not be served instead of a newer one."""
        self._append_to_list([f"{WITHDRAWN}{edition}" for edition in sorted({*editions} - self.withdrawn())])

    def withdrawn(self) -> frozenset[str]:
        return self.published_list().withdrawn

    def published_list(self) -> PublishedList:
        """The bytes of the list of every published edition."""
        try:
            return read_list(self._published.read_bytes())
        except FileNotFoundError:
            return PublishedList(frozenset(), frozenset())
        except OSError as failure:
            raise StoreUnavailable("datastore", f"{self._published.name}: {failure}") from failure

    def _append_to_list(self, lines: Iterable[str]) -> None:
        text = "".join(f"\n{line}" for line in lines)
        if text:
            # A line feed first: a full disk may have left the line before incomplete.
            with (
                operator_errors(self._published),
                open(self._published, "ab", buffering=0, opener=open_private) as stream,
            ):
                stream.write(text.encode() + b"\n")
                os.fsync(stream.fileno())

    async def ping(self) -> None:
        """Checks that the ledger answers, and that the current edition is present, sealed and not known to be
        damaged."""
        await self.ledgers.ping()
        current = self.list_editions().current
        if current is None:
            raise StoreUnavailable("datastore", "no edition is published")
        folder = self.editions / current
        try:
            for path, file in stored_files(folder, read_manifest(folder, self._signed_seal(current))):
                status = path.stat()
                if status.st_size != file.size:
                    raise ValueError(f"{path.name} has not {file.size} bytes")
                if damage := self._states.damage_of(status):
                    raise StoreUnavailable("datastore", f"edition {current}: {damage}")
        except (OSError, ValueError, KeyError, Damaged, EditionError) as failure:
            raise StoreUnavailable("datastore", str(failure)) from failure

    def close(self) -> None:
        self.ledgers.close()


def open_datastore(
    url: str,
    home: Path,
    ledger_schema: str,
    *,
    cache_bytes: int = BLOCK_CACHE_BYTES,
    trusted: tuple[Verifier, ...] = (),
) -> Datastore:
    """Editions in HOME (or in FOLDER, for `sqlite:FOLDER`), and the ledger that the URL names.

    The signing key is always in HOME. Opens only editions signed by a `trusted` key; without them, by the key
    in HOME.
    """
    scheme, _, rest = url.partition(":")
    folder = Path(rest) if scheme == "sqlite" and rest else home
    return Datastore(folder, open_ledgers(url, home, ledger_schema), cache_bytes, trusted, home)
