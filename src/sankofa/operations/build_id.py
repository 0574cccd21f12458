"""The version of the package and the commit it was built from, found without running git."""

import json
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Final

from sankofa import __version__

COMMIT_FILE: Final = "commit.txt"
"""Written into the package when a wheel is built (`setup.py`)."""
UNKNOWN: Final = "unknown"
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


@cache
def build_id() -> str:
    """The version and the commit, e.g. `sankofa-0.1.0+1b0f...`; read once."""
    return f"sankofa-{__version__}+{commit()}"


def commit() -> str:
    """As the wheel says, the installer, or the checkout; `unknown` where none of them does."""
    return _embedded() or _as_installed() or commit_of_checkout(Path(__file__).parents[3]) or UNKNOWN


def commit_of_checkout(root: Path) -> str:
    """The commit that is checked out in a folder; empty where it is no checkout."""
    git = root / ".git"
    try:
        if git.is_file():  # of a worktree or a submodule
            git = root / git.read_text("utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text("utf-8").strip()
        if not head.startswith("ref:"):
            return _checked(head)
        name = head.removeprefix("ref:").strip()
        shared = git / "commondir"
        common = git / shared.read_text("utf-8").strip() if shared.is_file() else git
        if (common / name).is_file():
            return _checked((common / name).read_text("utf-8"))
        packed = (common / "packed-refs").read_text("utf-8").splitlines()
        return next((_checked(line.split()[0]) for line in packed if line.endswith(f" {name}")), "")
    except (OSError, UnicodeDecodeError):
        return ""


def _embedded() -> str:
    file = files("sankofa").joinpath(COMMIT_FILE)
    return _checked(file.read_text("utf-8")) if file.is_file() else ""


def _as_installed() -> str:
    """The commit that an installer recorded when it fetched a repository (PEP 610)."""
    try:
        origin = json.loads(distribution("sankofa").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    fetched = origin.get("vcs_info", {}) if isinstance(origin, dict) else {}
    return _checked(str(fetched.get("commit_id", "")))


def _checked(text: str) -> str:
    text = text.strip()
    return text if _COMMIT.fullmatch(text) else ""
