"""`sankofa doctor`: what is wrong with this installation, and what to do about it.

It only reads: it generates no secret and creates no folder.
"""

import asyncio
import os
import platform
import pwd
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import click

from sankofa import __version__
from sankofa import settings as all_settings
from sankofa.cli.keys import opened_keys
from sankofa.cli.output import Finding, as_json, print_json, to_have_an_edition
from sankofa.cli.process import now
from sankofa.edition.read.edition_manager import open_edition
from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_folder import BUILDING
from sankofa.engines.keyvalue import KeyValue, open_keyvalue
from sankofa.engines.publication import Publication, signers_of
from sankofa.ledger import seals
from sankofa.model.errors import EditionError, OperatorError, SettingsError, StoreUnavailable
from sankofa.replication.follow import read_state
from sankofa.replication.stores import (
    editions_folder,
    followed_address,
    only_follows,
    open_store,
    shares_ledger,
)
from sankofa.settings import Settings
from sankofa.sources.registry import load_sources

_DAY = timedelta(days=1)


def store_findings(settings: Settings) -> Iterator[Finding]:
    yield from _key_value_stores(settings)
    if followed_address(settings):
        yield from _following(settings)
    if only_follows(settings):
        pass
    elif (folder := settings.datastore_folder()) and not (folder / "ledger.sqlite").exists():
        yield Finding("ledger", "warning", "there is none yet", to_have_an_edition(settings))
    else:
        yield from _ledger(settings)
    yield from _editions(settings)


def _key_value_stores(settings: Settings) -> Iterator[Finding]:
    async def opened() -> None:
        async with opened_keys(settings, create=False):
            pass

    async def counted() -> None:
        store = open_keyvalue(settings.keyvalue_url(settings.usagestore, "usage"), "usage store")
        try:
            await store.probe_counting()
        finally:
            await store.close()

    none_yet = "nothing is counted yet"
    stores = [("usage store", "USAGESTORE", settings.usagestore, "usage-counters", none_yet, counted)]
    if not settings.lacks_keys_secret():  # else reported with the secrets
        stores.insert(0, ("key store", "KEYSTORE", settings.keystore, "keys", "no key is issued yet", opened))
    for component, setting, url, file, none_yet, question in stores:
        if url == "embedded:" and not (settings.home / file).exists():
            yield Finding(component, "ok", none_yet)
            continue
        try:
            asyncio.run(question())
        except StoreUnavailable as failure:
            remedy = f"check that it answers, and check SANKOFA_{setting}"
            yield Finding(component, "error", failure.cause, remedy)
        except SettingsError as failure:
            yield Finding(component, "error", str(failure))
        else:
            yield Finding(component, "ok", "answers")


def _ledger(settings: Settings) -> Iterator[Finding]:
    if settings.lacks_gate_secret():
        return  # reported with the secrets
    try:
        with closing(open_store(settings).ledgers.open()) as session:
            ((captures, newest),) = session.query("SELECT count(*), max(observed_at) FROM capture")
            if captures and not settings.gate_secret and not (settings.home / "gate-secret").exists():
                remedy = "restore it from a backup, or set SANKOFA_GATE_SECRET"
                yield Finding("ledger", "error", "there is a ledger but no gate secret", remedy)
                return
            keyed = not captures or seals.is_keyed_with(session, settings.gate_key())
            checksums = "SELECT current_setting('data_checksums')"
            if settings.datastore_folder() is None and list(session.query(checksums)) != [("on",)]:
                message = "PostgreSQL has no page checksums: damage is found only when a row is read"
                yield Finding("datastore", "warning", message, "stop it and run: pg_checksums --enable")
    except OperatorError as failure:
        if settings.datastore_folder() is None and "permission denied" in str(failure):
            yield Finding("ledger", "ok", "this role cannot read it, but can serve editions")
        else:
            yield Finding("ledger", "error", str(failure), _remedy(settings, failure))
        return
    if not keyed:
        message = "the gate secret is not the one this ledger was created with"
        yield Finding("ledger", "error", message, "restore the right one from a backup")
    elif newest is not None and now() < datetime.fromisoformat(newest) - _DAY:
        yield Finding("clock", "error", f"behind the newest capture ({newest})", "set the clock")
    else:
        yield Finding("ledger", "ok", f"{captures} captures; `sankofa ledger verify` reads every row")


def _remedy(settings: Settings, failure: OperatorError) -> str:
    """Advises a backup only for a damaged ledger: restoring over a sound one loses everything newer."""
    if isinstance(failure, SettingsError):
        return "see `sankofa settings`"
    if settings.datastore_folder() is None and not isinstance(failure, seals.LedgerDamaged):
        return "check that the server answers, and check SANKOFA_DATASTORE"
    if isinstance(failure.__cause__, OSError) or "unable to open" in str(failure):
        return "give the user who runs this read and write access to HOME"
    return "restore it from a backup: docs/how-to/operating.md, Damage"


def _following(settings: Settings) -> Iterator[Finding]:
    """A machine that shares a database need not follow continuously: each command checks by itself."""
    state = read_state(editions_folder(settings))
    shares = shares_ledger(settings)
    if shares and not state.looked_at:
        return
    if complaint := state.untrusted or state.failure if shares else state.complaint(now()):
        remedy = "check that SANKOFA_EDITIONS answers, and that `sankofa serve` or `sankofa follow` runs"
        if state.untrusted:
            remedy = "check SANKOFA_TRUSTED_KEYS and who can write there; see docs/how-to/operating.md"
        yield Finding("following", "error", complaint, remedy)
    elif state.remote_edition:
        yield Finding("following", "ok", f"edition {state.remote_edition} is current there")


def _editions(settings: Settings) -> Iterator[Finding]:
    message = "none is pulled yet" if only_follows(settings) else "none is published"
    none_yet = Finding("editions", "warning", message, to_have_an_edition(settings))
    if not editions_folder(settings).exists():
        yield none_yet
        return
    store: Datastore = open_store(settings)
    try:
        listed = store.list_editions()
        if listed.current is None:
            yield none_yet
        else:
            yield _signature(settings, store.publication())
        for edition in dict.fromkeys([*filter(None, [listed.current]), *listed.editions]):
            yield _checked(store, edition, current=edition == listed.current)
    except StoreUnavailable as failure:
        remedy = "check that the store answers, and check SANKOFA_DATASTORE"
        yield Finding("editions", "error", failure.cause, remedy)
    finally:
        store.close()
    if unfinished := len(list(editions_folder(settings).glob(f"{BUILDING}*"))):
        message = f"{unfinished} unfinished builds"
        yield Finding("editions", "ok", f"{message}; the next publish removes abandoned ones")


def _signature(settings: Settings, publication: Publication | None) -> Finding:
    """Whether somebody else could have made the current edition. The store refuses untrusted notes before
    this check."""
    if publication is None:
        remedy = "publish there, then `sankofa follow`" if only_follows(settings) else "run: sankofa publish"
        return Finding("signature", "warning", "an older version published: nothing is signed", remedy)
    names = ", ".join(publication.keys)
    if followed_address(settings) and not settings.trusted_keys and not signers_of(settings.home):
        message = f"the first key that was seen is trusted: {names}"
        remedy = "set SANKOFA_TRUSTED_KEYS to what `sankofa editions key` prints where editions are published"
        return Finding("signature", "warning", message, remedy)
    return Finding("signature", "ok", f"signed at {publication.written_at} by {names}")


def _checked(store: Datastore, edition: str, *, current: bool) -> Finding:
    """Checks the current edition fully, the others briefly."""
    try:
        open_edition(store, edition, check_all=current).close()
    except EditionError as failure:
        remedy = "run: sankofa publish" if current else "you cannot roll back to it"
        return Finding("editions", "error" if current else "warning", str(failure), remedy)
    return Finding("editions", "ok", f"{edition} is whole" + (", and current" if current else ""))


_LEAST_FREE: Final = 64 << 20
_FEW_INODES: Final = 1_000
_SECRETS: Final = ("gate-secret", "keys-secret", "cursor-secret")
_PRIVATE: Final = (*_SECRETS, "owner-key", "edition-key", "ledger.sqlite", "keys")
_DRIVERS: Final = ("granian", "msgspec", "psycopg", "redis", "hiredis")
_NO_EARLIER: Final = datetime(2024, 1, 1, tzinfo=UTC)


def examine(settings: Settings) -> list[Finding]:
    """Every check in turn; one that fails in an unexpected way is a finding itself."""
    findings: list[Finding] = []
    for name, check in _CHECKS.items():
        try:
            findings += check(settings)
        except StoreUnavailable as failure:
            findings.append(Finding(name, "error", f"{failure.component}: {failure.cause}"))
        except OperatorError as failure:
            findings.append(Finding(name, "error", str(failure)))
        except OSError as failure:
            reason = f"{failure.filename or 'HOME'}: {failure.strerror}"
            findings.append(Finding(name, "error", reason, "run this as the user who serves"))
    return findings


def _versions(_: Settings) -> Iterator[Finding]:
    installed = []
    for package in _DRIVERS:
        try:
            installed.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    engines = f"Python {platform.python_version()}"
    yield Finding("versions", "ok", f"sankofa {__version__}, {engines}, {', '.join(installed)}")


def _settings(_: Settings) -> Iterator[Finding]:
    unknown = all_settings.unknown()
    for variable in unknown:
        yield Finding("settings", "warning", f"{variable} sets nothing", "see `sankofa settings`")
    if not unknown:
        yield Finding("settings", "ok", "every variable is known")


def _permissions(settings: Settings) -> Iterator[Finding]:
    home = settings.home
    if not home.exists():
        remedy = "set SANKOFA_HOME to the right folder, or create one with: sankofa starter"
        yield Finding("permissions", "error", f"HOME ({home}) does not exist", remedy)
        return
    if not home.is_dir():
        yield Finding("permissions", "error", f"HOME ({home}) is not a folder", "set SANKOFA_HOME to another")
        return
    findings = [*_owner(home), *_modes(home)]
    if os.statvfs(home).f_flag & os.ST_RDONLY or not os.access(home, os.W_OK | os.X_OK):
        message = f"HOME ({home}) cannot be written by {_user(os.geteuid())}"
        findings.append(Finding("permissions", "error", message, "run as its owner, or mount it writable"))
    yield from findings or [Finding("permissions", "ok", f"only {_user(os.geteuid())} can use HOME ({home})")]


def _owner(home: Path) -> Iterator[Finding]:
    owner = home.stat().st_uid
    if owner != os.geteuid():
        message = f"HOME ({home}) belongs to {_user(owner)}, but the command runs as {_user(os.geteuid())}"
        remedy = f"run commands as {_user(owner)}: the service cannot use files that another user creates"
        yield Finding("permissions", "warning" if os.geteuid() == 0 else "error", message, remedy)
    others = sorted(path.name for path in home.iterdir() if path.lstat().st_uid != owner)
    if others:
        message = f"{', '.join(others[:5])} in HOME belong to another user than HOME"
        yield Finding("permissions", "error", message, f"chown -R {_user(owner)} {home}")


def _modes(home: Path) -> Iterator[Finding]:
    if home.stat().st_mode & 0o077:
        mode = stat.S_IMODE(home.stat().st_mode)
        yield Finding("permissions", "warning", f"HOME ({home}) has mode {mode:04o}", f"chmod 700 {home}")
    for name in _PRIVATE:
        path = home / name
        if path.exists() and path.stat().st_mode & 0o077:
            yield Finding("permissions", "error", f"{name} can be read by others", f"chmod 600 {path}")


def _disk(settings: Settings) -> Iterator[Finding]:
    home = settings.home
    while not home.exists():
        home = home.parent
    free, inodes = shutil.disk_usage(home).free, os.statvfs(home)
    needed = _largest_edition(settings.home) + _LEAST_FREE
    free_text = f"{free / 1e9:.1f} GB free"
    if free < _LEAST_FREE:
        yield Finding(
            "disk", "error", free_text, "make room: keys and quotas cannot be written on a full disk"
        )
    elif free < needed:
        remedy = "make room, or keep fewer editions (SANKOFA_EDITIONS_KEPT)"
        yield Finding("disk", "warning", f"{free_text}; the next publish needs {needed / 1e9:.1f} GB", remedy)
    elif inodes.f_files and inodes.f_favail < _FEW_INODES:
        yield Finding("disk", "warning", f"{inodes.f_favail} inodes free", "make room")
    else:
        yield Finding("disk", "ok", free_text)


def _largest_edition(home: Path) -> int:
    sizes = [
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        for folder in (home / "editions").glob("[!.]*")
        if folder.is_dir()
    ]
    return max(sizes, default=0)


def _clock(settings: Settings) -> Iterator[Finding]:
    """Compares the clock with the last capture and write. A fast clock looks the same as a long pause."""
    moment = now()
    newest = _NO_EARLIER
    if settings.home.is_dir():
        times = [path.stat().st_mtime for path in settings.home.iterdir()]
        newest = max([newest, *(datetime.fromtimestamp(seconds, UTC) for seconds in times)])
    if moment < newest - timedelta(minutes=5):
        shown_time, written = (f"{one:%Y-%m-%dT%H:%MZ}" for one in (moment, newest))
        message = f"the clock says {shown_time}, but there is data from {written}"
        yield Finding("clock", "error", message, "set the clock: it dates every capture")
    else:
        yield Finding("clock", "ok", f"{moment:%Y-%m-%dT%H:%M:%SZ}")


def _secrets(settings: Settings) -> Iterator[Finding]:
    if settings.lacks_gate_secret():
        message = "gate-secret is missing beside a ledger"
        remedy = "restore it from a backup: nothing can be ingested or published without it"
        yield Finding("secrets", "error", message, remedy)
    if settings.lacks_keys_secret():
        remedy = "restore it from a backup, or every key is refused"
        yield Finding("secrets", "error", "keys-secret is missing beside the key records", remedy)
    present = [name for name in _SECRETS if (settings.home / name).exists()]
    for name in present:
        if not (settings.home / name).read_text(errors="replace").strip():
            yield Finding("secrets", "error", f"{name} is empty", "restore it from a backup")
    if not settings.keys_secret and settings.keystore.partition(":")[0] != "embedded":
        message = "SANKOFA_KEYS_SECRET is not set, but the key store is shared"
        remedy = (
            "set it before you issue a key: without it, anyone with access to the store can alter records"
        )
        yield Finding("secrets", "warning", message, remedy)
    yield Finding("secrets", "ok", f"in HOME: {', '.join(present) or 'none yet'}")


def _sources(settings: Settings) -> Iterator[Finding]:
    yield Finding("sources", "ok", f"{len(load_sources(settings.home))} registered")


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


_CHECKS: Final[dict[str, Callable[[Settings], Iterator[Finding]]]] = {
    "versions": _versions,
    "settings": _settings,
    "permissions": _permissions,
    "disk": _disk,
    "clock": _clock,
    "secrets": _secrets,
    "sources": _sources,
    "stores": store_findings,
}


@click.command()
def status() -> None:
    """The dependency reads of /v1/status; exit code 1 when degraded. Creates nothing."""
    from sankofa.operations.service import following, probe

    current = all_settings.load()

    def opened(url: str, name: str, component: str) -> KeyValue:
        reserve = current.usage_reserve << 20 if name == "usage" else 0
        return open_keyvalue(current.keyvalue_url(url, name), component, reserve=reserve, create=False)

    async def look() -> dict[str, tuple[str | None, float]]:
        store = open_store(current)
        keystore = opened(current.keystore, "keys", "key store")
        usagestore = opened(current.usagestore, "usage", "usage store")
        try:
            checks = await probe(store, keystore, usagestore)
            if (followed := following(store, now())) is not None:
                checks["editions"] = (followed[1], 0.0)
            return checks
        finally:
            await keystore.close()
            await usagestore.close()
            store.close()

    checks = asyncio.run(look())
    for name, (failure, took) in checks.items():
        click.echo(f"{name:<10}  {'ok' if failure is None else 'FAILED: ' + failure}  {took:.1f} ms")
    if any(failure is not None for failure, _ in checks.values()):
        sys.exit(1)


@click.command()
@as_json
def doctor(as_json: bool) -> None:
    """Check this installation and say how to fix each fault. Exits with 1 if something must be fixed."""
    try:
        findings = examine(all_settings.load())
    except SettingsError as failure:
        findings = [Finding("settings", "error", str(failure), "see `sankofa settings`")]
    _report(findings, as_json)


@click.command("upgrade-check")
@as_json
def upgrade_check(as_json: bool) -> None:
    """Whether this version can use the existing stores; if not, the command to run."""
    _report([*store_findings(all_settings.load())], as_json)


def _report(findings: list[Finding], as_json: bool) -> None:
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            click.echo(finding.line())
    if any(finding.status == "error" for finding in findings):
        sys.exit(1)
