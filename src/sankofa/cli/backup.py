"""`sankofa backup` and `restore`: one file with everything that cannot be rebuilt, for any engine.

The ledger is read in one snapshot and checked against its seals. Ingest can continue meanwhile. Editions
are left out: `publish` rebuilds them identically.
"""

import asyncio
import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final

import click
import msgspec

from sankofa import __version__
from sankofa.access.records import StoredRecord, read_records, write_records
from sankofa.cli.hooks import hooks_folder
from sankofa.cli.keys import opened_keys
from sankofa.cli.ledger import has_vault, open_ledger
from sankofa.cli.output import Advance, progress_bar
from sankofa.cli.process import now
from sankofa.engines.private_files import (
    UNPACKED_TIMES,
    make_private_folder,
    most_unpacked,
    open_private,
    zstd,
)
from sankofa.engines.publication import signers_of
from sankofa.ledger import seals
from sankofa.ledger.store import dump_rows, load_rows
from sankofa.model.days import instant
from sankofa.model.errors import OperatorError
from sankofa.model.limits import limit
from sankofa.model.signed_notes import NotTrusted, Signer, Verifier, sign_note, verified_text
from sankofa.replication.remote_log import PUSHED_TO
from sankofa.replication.stores import open_store
from sankofa.settings import Settings, load

FORMAT: Final = 1
_LISTING: Final = "manifest.json"
_BUFFER: Final = 1 << 20
_LARGEST_MEMBER: Final = limit("member of a backup", 2 << 30, "bytes", "nothing is restored")
_OPTIONS: Final[dict[int, int]] = {
    zstd.CompressionParameter.checksum_flag: 1,
    zstd.CompressionParameter.compression_level: 3,
}


class Member(msgspec.Struct, frozen=True):
    name: str
    size: int
    sha256: str
    rows: int = 0


class BackupListing(msgspec.Struct, frozen=True):
    format: int
    created_at: str
    version: str
    rows: int
    members: list[Member]
    signature: str = ""
    """A signed note over the digest of the members; empty if there was no key yet."""

    @property
    def signed_text(self) -> str:
        digest = hashlib.sha256(msgspec.json.encode(self.members)).hexdigest()
        return f"sankofa/backup/v1\n{self.created_at}\n{digest}\n"


class ArchiveWriter:
    """Adds members; `finish` writes the listing."""

    def __init__(self, stream: BinaryIO) -> None:
        self._file = zstd.ZstdFile(stream, "wb", options=_OPTIONS)
        self._members: list[Member] = []

    def add(self, name: str, content: bytes, rows: int = 0) -> None:
        self._members.append(Member(name, len(content), hashlib.sha256(content).hexdigest(), rows))
        self._write(name, content)

    def finish(self, created_at: str, version: str, signers: Sequence[Signer] = ()) -> BackupListing:
        rows = sum(member.rows for member in self._members)
        listing = BackupListing(FORMAT, created_at, version, rows, self._members)
        if signers:
            note = sign_note(listing.signed_text, signers).decode()
            listing = msgspec.structs.replace(listing, signature=note)
        self._write(_LISTING, msgspec.json.format(msgspec.json.encode(listing), indent=1))
        self._file.write(bytes(2 * tarfile.BLOCKSIZE))
        self._file.close()
        return listing

    def _write(self, name: str, content: bytes) -> None:
        """Our own stream: a tarfile stream left open by a full disk raises when it is garbage-collected."""
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(content), 0o600
        self._file.write(info.tobuf(tarfile.PAX_FORMAT))
        self._file.write(content)
        self._file.write(bytes(-len(content) % tarfile.BLOCKSIZE))


@contextmanager
def new_archive(path: Path) -> Iterator[ArchiveWriter]:
    """A new file that only its owner can read. It appears once it is complete. Raises OperatorError."""
    if path.exists():
        raise OperatorError(f"{path}: already exists; name another file")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "xb", opener=open_private) as stream:
            yield ArchiveWriter(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(partial, path)  # unlike a rename, never replaces a file created meanwhile
    except FileExistsError:
        raise OperatorError(f"{path}: already exists; name another file") from None
    except OSError as failure:
        raise OperatorError(f"{path}: cannot be written: {failure.strerror}") from failure
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


class _Bounded:
    """A stream that raises an error after a number of bytes."""

    def __init__(self, file: zstd.ZstdFile, most: int) -> None:
        self._file = file
        self._bytes_left = most

    def read(self, size: int) -> bytes:
        content = self._file.read(size)
        self._bytes_left -= len(content)
        if self._bytes_left < 0:
            raise ValueError(f"it unpacks to more than {UNPACKED_TIMES} times its size")
        return content


class ArchiveReader:
    """A backup on disk. Call `verify` first: it reads and checks everything."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def verify(self, trusted: Sequence[Verifier] = ()) -> BackupListing:
        """Compare every member with its digest, and the signature with these keys, if there are any.

        Raises OperatorError.
        """
        read: list[tuple[str, int, str]] = []
        listing: bytes | None = None
        for name, content in self._content():
            if listing is not None:
                raise self._damaged("it has data after its listing")
            if name == _LISTING:
                listing = content
            else:
                read.append((name, len(content), hashlib.sha256(content).hexdigest()))
        if listing is None:
            raise self._damaged("its listing is missing")
        try:
            known: dict[str, Any] = msgspec.json.decode(listing)
            if known.get("format") != FORMAT:
                raise OperatorError(f"{self._path}: a backup of format {known.get('format')}, not {FORMAT}")
            listed = msgspec.json.decode(listing, type=BackupListing)
        except (msgspec.DecodeError, UnicodeDecodeError, AttributeError) as failure:
            raise self._damaged("its listing cannot be read") from failure
        if read != [(member.name, member.size, member.sha256) for member in listed.members]:
            raise self._damaged("a part was altered")
        if trusted:
            try:
                if verified_text(listed.signature.encode(), trusted) != listed.signed_text:
                    raise NotTrusted("its signature belongs to another backup")
            except NotTrusted as failure:
                raise OperatorError(f"{self._path}: refused by SANKOFA_TRUSTED_KEYS: {failure}") from None
        return listed

    def members(self) -> Iterator[tuple[str, bytes]]:
        """Every member but the listing: its name and its content."""
        return ((name, content) for name, content in self._content() if name != _LISTING)

    def _content(self) -> Iterator[tuple[str, bytes]]:
        try:
            with self._path.open("rb") as stream, zstd.ZstdFile(stream) as unpacked:
                most = most_unpacked(self._path.stat().st_size)
                file: Any = _Bounded(unpacked, most)
                with tarfile.open(fileobj=file, mode="r|", bufsize=_BUFFER) as tar:
                    for info in tar:
                        fits = info.isreg() and info.size <= min(most, _LARGEST_MEMBER)
                        extracted = tar.extractfile(info) if fits else None
                        if extracted is None:
                            raise self._damaged("a part is not a file")
                        yield info.name, extracted.read()
                while file.read(_BUFFER):  # to the end: the stream's checksum comes last
                    pass
        except (tarfile.TarError, zstd.ZstdError, EOFError, ValueError) as failure:
            raise self._damaged(str(failure) or type(failure).__name__) from failure
        except OSError as failure:
            raise OperatorError(f"{self._path}: cannot be read: {failure.strerror}") from failure

    def _damaged(self, reason: str) -> OperatorError:
        return OperatorError(f"{self._path}: not a whole backup of Sankofa: {reason}; nothing was restored")


_SECRETS: Final = {
    "gate-secret": "gate_secret",
    "cursor-secret": "cursor_secret",
    "keys-secret": "keys_secret",
}
_FILES: Final = ("sources.toml", PUSHED_TO)
_STAGING: Final = ".restoring-"
_MEMBER: Final = re.compile(
    r"sources\.toml|pushed-to|keys\.jsonl|published\.json|log|secrets/[a-z0-9-]+-(?:secret|key)|ledger/[a-z_]+/[0-9]+\.jsonl"
    r"|hooks/[0-9a-f]+\.(?:json|cursor)"
)
"""The members of a backup; no name leads outside the target folder."""


def _inside(folder: Path, name: str) -> Path:
    """The path of a member, symbolic links resolved. Raises OperatorError if it is outside the folder."""
    path = (folder / name).resolve()
    if not name or path == folder.resolve() or not path.is_relative_to(folder.resolve()):
        raise OperatorError(f"the backup has a member outside HOME ({name!r}); nothing was restored")
    return path


def _small_files(settings: Settings) -> Iterator[tuple[str, bytes]]:
    """The current secrets, wherever they come from, and the files in HOME that cannot be rebuilt."""
    for name, setting in _SECRETS.items():
        if value := getattr(settings, setting):
            yield f"secrets/{name}", f"{value}\n".encode()
    for path in sorted(settings.home.iterdir()):
        is_secret = path.name.endswith(("-secret", "-key"))
        if is_secret and path.is_file() and not getattr(settings, _SECRETS.get(path.name, ""), ""):
            yield f"secrets/{path.name}", path.read_bytes()
    for name in _FILES:
        if (settings.home / name).is_file():
            yield name, (settings.home / name).read_bytes()
    for path in sorted(hooks_folder(settings).glob("*")):
        if _MEMBER.fullmatch(name := f"hooks/{path.name}"):
            yield name, path.read_bytes()


async def _read_records(settings: Settings) -> tuple[list[StoredRecord], list[str]]:
    async with opened_keys(settings) as (_, _, records):
        return await read_records(records)


async def _write_records(settings: Settings, copied: list[StoredRecord]) -> None:
    async with opened_keys(settings) as (_, _, records):
        if any(":" in name for name in await records.names("")):
            raise OperatorError("the key store holds records already; restore needs an empty one")
        await write_records(records, copied)


def _refuse_unless_empty(settings: Settings) -> None:
    home = settings.home
    for leftover in home.glob(f"{_STAGING}*"):  # left by a restore that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    present = sorted(p.name for p in home.iterdir() if p.name != "lost+found") if home.is_dir() else []
    if present or (home.exists() and not home.is_dir()):
        what = f"{present[0]} is in it" if present else "it is not a folder"
        raise OperatorError(f"HOME ({home}) is not empty: {what}; restore needs an empty one")


@contextmanager
def _staging_folder(home: Path) -> Iterator[Path]:
    """A folder inside HOME. Its content is moved up at the end, the ledger last."""
    created = not home.exists()
    folder = home / f"{_STAGING}{os.getpid()}"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        yield folder
        for path in sorted(folder.iterdir(), key=lambda p: p.name.startswith("ledger")):
            path.rename(home / path.name)
        folder.rmdir()
    except BaseException as failure:
        shutil.rmtree(folder, ignore_errors=True)
        if created:
            with suppress(OSError):
                home.rmdir()
        if isinstance(failure, OSError):
            raise OperatorError(f"HOME ({home}): {failure.strerror}") from failure
        raise


def _write_small_files(settings: Settings, small: dict[str, bytes]) -> None:
    for name, content in small.items():
        kind, _, file = name.rpartition("/")
        setting = getattr(settings, _SECRETS.get(file, ""), "")
        if kind == "secrets" and file == "gate-secret" and setting and setting != content.decode().strip():
            raise OperatorError("SANKOFA_GATE_SECRET: not the backup's secret; unset it, or set that one")
        if name in _FILES or kind == "hooks" or (kind == "secrets" and not setting):
            folder = hooks_folder(settings) if kind == "hooks" else settings.home
            make_private_folder(folder)
            with open(_inside(folder, file), "xb", opener=open_private) as stream:
                stream.write(content)
                os.fsync(stream.fileno())


def _restore_stores(
    settings: Settings, small: dict[str, bytes], chunks: Iterator[tuple[str, bytes]], progress: Advance
) -> tuple[int, int]:
    """One transaction for the ledger, with the keys written last: all or nothing."""
    lines = [line for line in small.get("keys.jsonl", b"").split(b"\n") if line]
    pairs = [msgspec.json.decode(line, type=tuple[str, str]) for line in lines]
    records = [StoredRecord(name, body.encode()) for name, body in pairs]
    store = open_store(settings)
    with closing(store.ledgers.open()) as session, session.transaction():
        if any(session.query("SELECT 1 FROM capture")):
            raise OperatorError("the datastore holds a ledger already; restore needs an empty one")
        for name, content in chunks:
            table = name.split("/")[1]
            progress(table, load_rows(session, table, content))
        checked = seals.verify(session, settings.gate_key())
        asyncio.run(_write_records(settings, records))
    lists = msgspec.json.decode(small.get("published.json", b"{}"), type=dict[str, list[str]])
    store.list_as_published(lists.get("published", ()))
    store.withdraw(lists.get("withdrawn", ()))
    if log := small.get("log"):
        store.log.take(log)
    return checked.captures, len(records)


_FILE = click.argument("file", type=click.Path(path_type=Path))


@click.command("backup")
@_FILE
def backup_command(file: Path) -> None:
    """Save ledger, log, keys, secrets, hooks and sources in a new FILE, while serving and ingesting go on.

    The file opens everything: keep it as safe as HOME. Editions are not in it; `publish` builds them again.
    """
    current = load()
    with open_ledger(current, create=False) as ledger:  # upgrades a ledger of an older version
        rows = sum(holding.rows for holding in ledger.holdings().values())
    records, damaged = asyncio.run(_read_records(current))
    store = open_store(current)
    with progress_bar("backup", rows) as progress, new_archive(file) as archive:
        for name, content in _small_files(current):
            archive.add(name, content)
        archive.add("keys.jsonl", b"\n".join(msgspec.json.encode((n, b.decode())) for n, b in records))
        published = {"published": sorted(store.published()), "withdrawn": sorted(store.withdrawn())}
        archive.add("published.json", msgspec.json.encode(published))
        archive.add("log", store.log.tree().bundle())
        with closing(store.ledgers.open()) as session, session.snapshot():
            seals.verify(session, current.gate_key())
            for number, (table, count, lines) in enumerate(dump_rows(session)):
                archive.add(f"ledger/{table}/{number:06}.jsonl", lines, count)
                progress(table, count)
        listing = archive.finish(instant(now()), __version__, signers_of(current.home))
    for line in damaged:
        click.echo(f"left out: {line}", err=True)
    click.echo(f"saved {listing.rows} rows of the ledger, keys, secrets and sources in {file}")
    if has_vault(current):
        click.echo("the vault is not in it: copy HOME/vault")


@click.command("restore")
@_FILE
def restore_command(file: Path) -> None:
    """Restore a backup into an empty HOME. `sankofa publish` then builds the same edition as before.

    If editions were published after the backup, `publish` copies their log from where `sankofa push` sent it.
    If none was pushed, copy the log from a node first: `sankofa editions take-log https://HOST`.
    """
    current = load()
    archive = ArchiveReader(file)
    _refuse_unless_empty(current)
    listing = archive.verify(current.verifier_keys())
    for member in listing.members:
        if not _MEMBER.fullmatch(member.name):
            raise OperatorError(f"{file}: no backup of Sankofa has {member.name!r}; nothing was restored")
    with _staging_folder(current.home) as folder, progress_bar("restore", None) as progress:
        staged = replace(current, home=folder)
        small: dict[str, bytes] = {}
        chunks: Iterator[tuple[str, bytes]] = iter(())
        members = archive.members()
        for name, content in members:
            if name.startswith("ledger/"):
                chunks = chain([(name, content)], members)
                break
            small[name] = content
        _write_small_files(staged, small)
        captures, records = _restore_stores(staged, small, chunks, progress)
    summary = f"{listing.rows} rows of {captures} captures, {records} key records"
    click.echo(f"restored {summary}, as saved at {listing.created_at}; now run: sankofa publish")
