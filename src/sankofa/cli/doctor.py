"""`sankofa doctor`: what is wrong with this installation, and what to do about it.

It looks and changes nothing: no secret is generated, no folder created.
"""

import os
import platform
import pwd
import shutil
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from sankofa import __version__
from sankofa import settings as all_settings
from sankofa.cli.clock import now
from sankofa.cli.doctor_stores import store_findings
from sankofa.cli.findings import Finding
from sankofa.model.errors import OperatorError, SettingsError, StoreUnavailable
from sankofa.settings import Settings
from sankofa.sources.registry import load_sources

_LEAST_FREE: Final = 64 << 20
_FEW_INODES: Final = 1_000
_SECRETS: Final = ("gate-secret", "keys-secret", "cursor-secret")
_PRIVATE: Final = (*_SECRETS, "edition-key", "ledger.sqlite", "keys")
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
        remedy = "set SANKOFA_HOME to the right folder, or begin one with: sankofa starter"
        yield Finding("permissions", "error", f"HOME ({home}) does not exist", remedy)
        return
    if not home.is_dir():
        yield Finding("permissions", "error", f"HOME ({home}) is no folder", "set SANKOFA_HOME to another")
        return
    findings = [*_owner(home), *_modes(home)]
    if os.statvfs(home).f_flag & os.ST_RDONLY or not os.access(home, os.W_OK | os.X_OK):
        message = f"HOME ({home}) cannot be written by {_user(os.geteuid())}"
        findings.append(Finding("permissions", "error", message, "run as its owner, or mount it writable"))
    yield from findings or [Finding("permissions", "ok", f"HOME ({home}) is {_user(os.geteuid())}'s alone")]


def _owner(home: Path) -> Iterator[Finding]:
    owner = home.stat().st_uid
    if owner != os.geteuid():
        message = f"HOME ({home}) belongs to {_user(owner)}, and this is {_user(os.geteuid())}"
        remedy = f"run commands as {_user(owner)}: what another user creates there, the service cannot use"
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
    shown = f"{free / 1e9:.1f} GB free"
    if free < _LEAST_FREE:
        yield Finding("disk", "error", shown, "make room: keys and quotas cannot be written on a full disk")
    elif free < needed:
        remedy = "make room, or keep fewer editions (SANKOFA_EDITIONS_KEPT)"
        yield Finding("disk", "warning", f"{shown}; the next publish needs {needed / 1e9:.1f} GB", remedy)
    elif inodes.f_files and inodes.f_favail < _FEW_INODES:
        yield Finding("disk", "warning", f"{inodes.f_favail} inodes free", "make room")
    else:
        yield Finding("disk", "ok", shown)


def _largest_edition(home: Path) -> int:
    sizes = [
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        for folder in (home / "editions").glob("[!.]*")
        if folder.is_dir()
    ]
    return max(sizes, default=0)


def _clock(settings: Settings) -> Iterator[Finding]:
    """Against what was captured and written last: a clock that is ahead cannot be told from a long pause."""
    moment = now()
    newest = _NO_EARLIER
    if settings.home.is_dir():
        times = [path.stat().st_mtime for path in settings.home.iterdir()]
        newest = max([newest, *(datetime.fromtimestamp(seconds, UTC) for seconds in times)])
    if moment < newest - timedelta(minutes=5):
        said, written = (f"{one:%Y-%m-%dT%H:%MZ}" for one in (moment, newest))
        message = f"the clock says {said}, and there is something of {written}"
        yield Finding("clock", "error", message, "set the clock: captures are dated by it for ever")
    else:
        yield Finding("clock", "ok", f"{moment:%Y-%m-%dT%H:%M:%SZ}")


def _secrets(settings: Settings) -> Iterator[Finding]:
    if settings.lacks_gate_secret():
        message = "gate-secret is missing beside a ledger"
        remedy = "put it back from a backup: nothing can be ingested or published without it"
        yield Finding("secrets", "error", message, remedy)
    if settings.lacks_keys_secret():
        remedy = "put it back from a backup, or every key is refused"
        yield Finding("secrets", "error", "keys-secret is missing beside the key records", remedy)
    present = [name for name in _SECRETS if (settings.home / name).exists()]
    for name in present:
        if not (settings.home / name).read_text(errors="replace").strip():
            yield Finding("secrets", "error", f"{name} is empty", "put it back from a backup")
    if not settings.keys_secret and settings.keystore.partition(":")[0] != "embedded":
        message = "SANKOFA_KEYS_SECRET is not set and the key store is shared"
        remedy = "set it before the first key is issued: without it records are not proof against a hand"
        yield Finding("secrets", "warning", message, remedy)
    yield Finding("secrets", "ok", f"in HOME: {', '.join(present) or 'none yet'}")


def _sources(settings: Settings) -> Iterator[Finding]:
    yield Finding("sources", "ok", f"{len(load_sources(settings.home))} registered")


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def explain_settings_error(failure: SettingsError) -> Finding:
    """A setting that cannot be read at all: nothing else can be looked at."""
    return Finding("settings", "error", str(failure), "see `sankofa settings`")


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
