"""Installs locked wheels into the environment it runs in: `python tools/install.py requirements/runtime.txt`.

pip unpacks one wheel after the other, which is most of a first start; uv unpacks them in parallel. So pip
installs uv, by its digest like everything else, and uv the rest. Where uv cannot be had, or reaches nothing,
pip does it all: the same wheels by the same digests. An environment without pip gets the one that Python
comes with; unpacking it first and then running it would take five seconds.

`python tools/install.py --editable` installs the checkout itself, which needs setuptools.
"""

import ensurepip
import importlib.util
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_INSTALLER = _ROOT / "requirements" / "installer.txt"
_LOCKED = ("--require-hashes", "--only-binary", ":all:", "-r")
# Modules are compiled when they are first imported: compiling all of them takes a third of the installation.
_QUIETLY = ("install", "--quiet", "--no-compile", "--disable-pip-version-check")
_EDITABLE = ("--no-index", "--no-deps", "--no-build-isolation", "--editable", str(_ROOT))
_AS_UV_CALLS_THEM = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
}


def main() -> int:
    (target,) = sys.argv[1:]
    arguments = _EDITABLE if target == "--editable" else (*_LOCKED, target)
    with ThreadPoolExecutor(1) as meanwhile:  # a start of pip takes half a second
        where = meanwhile.submit(_where_pip_looks if arguments is not _EDITABLE else dict)
        if not _has_pip() and _run([*_pip(), *_QUIETLY, *_LOCKED, str(_INSTALLER)], quietly=True):
            _ensure_pip()  # no pip outside, or an old one
            where = meanwhile.submit(_where_pip_looks)
        if _has_uv() or not _run([*_pip(), *_QUIETLY, *_LOCKED, str(_INSTALLER)], quietly=True):
            _ensure_pip()
            if not _run([*_uv(), *arguments], where.result(), quietly=True):
                return 0
    return _run([*_pip(), *_QUIETLY, *arguments])


def _pip() -> list[str]:
    """The pip of the environment, or of the Python that created it."""
    if _has_pip():
        return [sys.executable, "-m", "pip"]
    outside = getattr(sys, "_base_executable", sys.executable)
    return [outside, "-m", "pip", "--python", sys.executable]


def _has_pip() -> bool:
    importlib.invalidate_caches()
    return importlib.util.find_spec("pip") is not None


def _ensure_pip() -> None:
    if _has_pip():
        return
    bundled = sorted(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
    if not (_has_uv() and bundled and not _run([*_uv(), "--no-index", str(bundled[-1])], quietly=True)):
        ensurepip.bootstrap()


def _has_uv() -> bool:
    return Path(_uv()[0]).exists()


def _uv() -> list[str]:
    uv = Path(sys.executable).with_name("uv")
    return [str(uv), "pip", "install", "--quiet", "--python", sys.executable]


def _where_pip_looks() -> dict[str, str]:
    """The configuration of pip, from file or environment, as options of uv."""
    listed = subprocess.run(  # noqa: S603 - our own command
        [*_pip(), "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    options = {
        "UV_HTTP_TIMEOUT": "60",
        "UV_SYSTEM_CERTS": "true",
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # each may have a file, as with pip, because digests decide
    }
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        option = name.rpartition(".")[2]
        if variable := _AS_UV_CALLS_THEM.get(option):
            options[variable] = " ".join(value.strip("'\"").replace("\\n", " ").split())
    return options


def _run(command: list[str], settings: dict[str, str] | None = None, *, quietly: bool = False) -> int:
    return subprocess.run(  # noqa: S603 - our own command
        command,
        env={**os.environ, **(settings or {})},
        check=False,
        stderr=subprocess.DEVNULL if quietly else None,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
