"""The chain of trust of editions: a signed note names manifests, and a manifest everything else.

The file `editions.note` is a signed note (`model.signed_notes`). It names the current edition, the kept
editions with their seals, the withdrawn ones, and the list of everything ever published. A seal is the
SHA-256 of a manifest's bytes, and the manifest has the digests of everything else. So one signature covers
all served data, and any changed byte is noticed.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from sankofa.engines.private_files import operator_errors, replace_file
from sankofa.model.errors import OperatorError
from sankofa.model.limits import limit
from sankofa.model.signed_notes import (
    NotTrusted,
    Signer,
    Verifier,
    new_signer,
    note_text,
    parse_signer,
    parse_verifier,
    sign_note,
    verified_text,
)

Manifest = Mapping[str, Any]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_FileName = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,120}\Z")]


class _File(msgspec.Struct):
    """A Parquet file: the members that decide where it is written. UNSET members are not written."""

    name: _FileName
    size_bytes: _Count
    sha256: Sha256


class _Part(msgspec.Struct):
    """Some keys of some kinds, and their blocks: from `first` on, up to the first key of the next part."""

    kinds: list[str]
    first: str
    content: str
    """A digest of its content."""
    sha256: Sha256 | UnsetType = UNSET
    size_bytes: _Count | UnsetType = UNSET


class _Manifest(msgspec.Struct):
    """The members of a manifest that lead to files. The signer vouches for the others."""

    edition: str
    content_sha256: str
    files: list[_File] = []
    parts: list[_Part] = []
    checksums_sha256: Sha256 | UnsetType = UNSET
    """Added by the writer: the digest of the digests of all pages."""


_decode = msgspec.json.Decoder(_Manifest).decode


def seal_manifest(manifest: Manifest) -> tuple[bytes, str]:
    """The bytes of a manifest and their seal. Raises ValueError for members that a reader would refuse."""
    content = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
    _decode(content)
    return content, hashlib.sha256(content).hexdigest()


def open_manifest(content: bytes, seal: str, edition: str) -> dict[str, Any]:
    """The manifest, if it has this seal and belongs to this edition. Raises ValueError."""
    if hashlib.sha256(content).hexdigest() != seal:
        raise ValueError("its manifest is damaged: it is not the one that was signed")
    if _decode(content).edition != edition:
        raise ValueError("its manifest is damaged: it is the manifest of another edition")
    manifest: dict[str, Any] = json.loads(content)
    return manifest


NOTE: Final = "editions.note"
NOTE_BYTES: Final = limit("signed note of a store", 64 << 10, "bytes", "it is not followed")
LIST: Final = "PUBLISHED"
KEY_FILE: Final = "edition-key"
_HEADING: Final = "sankofa/editions/v1\n"
WITHDRAWN: Final = "withdrawn "
EDITION_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}\Z")
_STAMP: Final = re.compile(r"(\d{8}T\d{6}Z)-")
_TOMORROW: Final = timedelta(days=1)

EditionId = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9-]{1,64}\Z")]


class Publication(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The text of the note."""

    sequence: _Count
    """Increases with every note of a publisher."""
    written_at: str
    current: EditionId
    editions: dict[EditionId, Sha256]
    """The SHA-256 of the manifest of each kept edition."""
    withdrawn: tuple[EditionId, ...]
    """Kept editions that may not be served instead of the current one."""
    published_sha256: Sha256
    published_size: _Count
    """The list of everything ever published, as a number of bytes."""
    keys: tuple[str, ...]
    """The current signers' verifier keys: a node that trusts one key learns the others."""

    def verifiers(self) -> tuple[Verifier, ...]:
        try:
            return tuple(parse_verifier(key) for key in self.keys)
        except ValueError as failure:
            raise NotTrusted(f"it names an invalid key: {failure}") from None

    def says_the_same(self, other: "Publication") -> bool:
        """Whether it differs only in the time of signing."""
        return msgspec.structs.replace(other, sequence=self.sequence, written_at=self.written_at) == self


class PublishedList(NamedTuple):
    """Every edition that was ever current, and which of them were withdrawn."""

    published: frozenset[str]
    withdrawn: frozenset[str]

    @property
    def text(self) -> bytes:
        lines = [*sorted(self.published), *(f"{WITHDRAWN}{edition}" for edition in sorted(self.withdrawn))]
        return "".join(f"{line}\n" for line in lines).encode()


def read_list(content: bytes) -> PublishedList:
    """Ignores a line that a full disk left incomplete."""
    lines = content.decode("ascii", errors="replace").split("\n")
    withdrawn = (line.removeprefix(WITHDRAWN) for line in lines if line.startswith(WITHDRAWN))
    return PublishedList(
        frozenset(filter(EDITION_ID.match, lines)), frozenset(filter(EDITION_ID.match, withdrawn))
    )


def sign_publication(
    signers: Sequence[Signer],
    *,
    current: str,
    editions: dict[str, str],
    withdrawn: frozenset[str],
    published: bytes,
    before: Publication | None,
    now: datetime,
) -> tuple[Publication, bytes]:
    """The new publication and its signed note.

    The sequence continues from `before` and is at least the Unix time in milliseconds. So a publisher
    restored from a backup does not go back, even if it had published several times within a second.
    """
    publication = Publication(
        max(before.sequence + 1 if before else 0, int(now.timestamp() * 1000)),
        now.astimezone(UTC).isoformat(timespec="microseconds"),
        current,
        dict(sorted(editions.items())),
        tuple(sorted(withdrawn.intersection(editions) - {current})),
        sha256(published).hexdigest(),
        len(published),
        tuple(signer.verifier.text for signer in signers),
    )
    text = msgspec.json.encode(publication, order="deterministic").decode()
    return publication, sign_note(f"{_HEADING}{text}\n", signers)


def read_publication(content: bytes, trusted: Sequence[Verifier] | None) -> Publication:
    """The publication that a trusted key signed. With None the keys that the note names are trusted.

    Raises NotTrusted.
    """
    if trusted is None:
        trusted = _decoded(note_text(content)).verifiers()
    return _decoded(verified_text(content, trusted))


def _decoded(text: str) -> Publication:
    if not text.startswith(_HEADING):
        raise NotTrusted("it is a note about something else")
    try:
        publication = msgspec.json.decode(text.removeprefix(_HEADING), type=Publication)
    except (msgspec.DecodeError, UnicodeDecodeError) as failure:
        raise NotTrusted(f"this version cannot read it: {failure}") from None
    if publication.current not in publication.editions:
        raise NotTrusted("its current edition is not in its list")
    return publication


def refuse_unless_later(publication: Publication, before: Publication | None, now: datetime) -> None:
    """Raises NotTrusted for a signed note that should not be followed."""
    stamp = _STAMP.match(publication.current)
    times = {"it": publication.written_at, "its current edition": stamp[1] if stamp else "19700101T000000Z"}
    for name, text in times.items():
        try:
            moment = datetime.fromisoformat(text)
            beyond = moment.tzinfo is None or moment > now + _TOMORROW
        except ValueError:
            beyond = True
        if beyond:
            raise NotTrusted(f"{name} is dated {text}, which is later than tomorrow")
    if publication.current in publication.withdrawn:
        raise NotTrusted(f"it names {publication.current} as current and as withdrawn")
    if before is not None and publication.sequence < before.sequence:
        raise NotTrusted("it is older than one seen before: a rollback, or a cache on the way")
    if before is not None and publication.sequence == before.sequence and publication != before:
        raise NotTrusted("it contradicts another of the same sequence: a fork")


def checked_list(publication: Publication, content: bytes, before: PublishedList | None) -> PublishedList:
    """The list that the note names, from a file that may be longer. Raises NotTrusted."""
    content = content[: publication.published_size]
    if sha256(content).hexdigest() != publication.published_sha256:
        raise NotTrusted(f"{LIST} is not the list that was signed")
    known = read_list(content)
    if publication.current not in known.published:
        raise NotTrusted(f"{LIST} leaves out the current edition: a gap")
    if before is not None and (missing := before.published - known.published):
        raise NotTrusted(f"{LIST} leaves out {min(missing)}, which was published before: a gap or a fork")
    if before is not None and (missing := before.withdrawn - known.withdrawn):
        raise NotTrusted(f"{LIST} leaves out that {min(missing)} was withdrawn: a gap or a fork")
    return known


def signers_of(home: Path) -> tuple[Signer, ...]:
    """The keys in HOME in signing order; may be none yet. Raises OperatorError."""
    return read_signers(home / KEY_FILE)


def read_signers(path: Path) -> tuple[Signer, ...]:
    """The signing keys in a file, one per line; none without the file. Raises OperatorError."""
    try:
        with operator_errors(path):
            lines = path.read_text("ascii").split()
    except OperatorError as failure:
        if isinstance(failure.__cause__, FileNotFoundError):
            return ()
        raise
    except UnicodeDecodeError:
        lines = []
    try:
        signers = tuple(parse_signer(line) for line in lines)
    except ValueError:
        signers = ()
    if not signers:
        raise OperatorError(f"{path}: not a signing key; restore it from a backup")
    return signers


def signers_to_sign(home: Path, *, signed_before: bool) -> tuple[Signer, ...]:
    """As `signers_of`; the first publication creates a key.

    Raises OperatorError if the key is missing beside signed editions: nodes would refuse a new key.
    """
    if not (signers := signers_of(home)):
        if signed_before:
            raise OperatorError(
                f"{KEY_FILE} in HOME: missing beside signed editions; restore it from a backup, or "
                "start over with `sankofa editions key --rotate` and tell the nodes"
            )
        signers = (new_signer(f"sankofa-{secrets.token_hex(4)}"),)
        write_signers(home, signers)
    return signers


def write_signers(home: Path, signers: Sequence[Signer]) -> None:
    with operator_errors(home / KEY_FILE):
        replace_file(home / KEY_FILE, "".join(f"{signer.text}\n" for signer in signers).encode())
