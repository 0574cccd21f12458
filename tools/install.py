"""Installs locked wheels into the environment it runs in: `python tools/install.py requirements/runtime.txt`.

pip unpacks one wheel after the other, which is most of a first start; uv unpacks them in parallel. So pip
installs uv, by its digest like everything else, and uv the rest. Where uv cannot be had, or reaches nothing,
pip does it all: the same wheels by the same digests.
"""

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_INSTALLER = _ROOT / "requirements" / "installer.txt"
_LOCKED = ("--require-hashes", "--only-binary", ":all:", "-r")
# Modules are compiled when they are first imported: compiling all of them takes a third of the installation.
_PIP = (
    sys.executable,
    "-m",
    "pip",
    "install",
    "--quiet",
    "--no-compile",
    "--disable-pip-version-check",
    *_LOCKED,
)
_AS_UV_CALLS_THEM = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
}


def main() -> int:
    (wanted,) = sys.argv[1:]
    return 0 if _by_uv(wanted) else _run([*_PIP, wanted], os.environ)


def _by_uv(wanted: str) -> bool:
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists() and _run([*_PIP, str(_INSTALLER)], os.environ, quietly=True):
        return False
    command = [str(uv), "pip", "install", "--quiet", "--python", sys.executable, *_LOCKED, wanted]
    return not _run(command, {**os.environ, **_where_pip_looks()}, quietly=True)


def _where_pip_looks() -> dict[str, str]:
    """The configuration of pip, from file or environment, as options of uv."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    told = {
        "UV_HTTP_TIMEOUT": "60",
        "UV_SYSTEM_CERTS": "true",
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # any may have a file, as with pip: digests tell
    }
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        option = name.rpartition(".")[2]
        if variable := _AS_UV_CALLS_THEM.get(option):
            told[variable] = " ".join(value.strip("'\"").replace("\\n", " ").split())
    return told


def _run(
    command: list[str], environment: "os._Environ[str] | dict[str, str]", *, quietly: bool = False
) -> int:
    done = subprocess.run(  # noqa: S603 - our own command
        command, env=dict(environment), check=False, stderr=subprocess.DEVNULL if quietly else None
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
