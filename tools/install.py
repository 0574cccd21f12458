"""Installs locked wheels into the environment it runs in: `python tools/install.py requirements/runtime.txt`.

pip unpacks one wheel after the other, which is most of a first start; uv unpacks them in parallel. So pip
installs uv, by its digest like everything else, and uv the rest. If uv cannot be had, or reaches nothing,
pip does it all: the same wheels by the same digests. The environment gets the pip that Python comes with, by
unzipping its wheel: `ensurepip` takes five seconds of processor time for the same.

`python tools/install.py --editable` installs the checkout itself, which needs setuptools.
"""

import ensurepip
import importlib.util
import os
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

_ROOT = Path(__file__).resolve().parent.parent
_INSTALLER = _ROOT / "requirements" / "installer.txt"
_LOCKED = ("--require-hashes", "--only-binary", ":all:", "-r")
# Modules are compiled when they are first imported: compiling all of them takes a third of the installation.
_PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check")
_EDITABLE = ("--no-index", "--no-deps", "--no-build-isolation", "--editable", str(_ROOT))
_AS_UV_CALLS_THEM = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
}


def main() -> int:
    (target,) = sys.argv[1:]
    arguments = _EDITABLE if target == "--editable" else (*_LOCKED, target)
    unzipped = _unzip_pip()
    with ThreadPoolExecutor(1) as meanwhile:  # a start of pip takes half a second
        where = meanwhile.submit(_where_pip_looks if arguments is not _EDITABLE else dict)
        has_uv = Path(_uv()[0]).exists() or not _run([*_PIP, *_LOCKED, str(_INSTALLER)], quietly=True)
        if has_uv and unzipped:  # with the command `pip`
            _run([*_uv(), "--no-index", "--reinstall", str(unzipped)], quietly=True)
        if has_uv and not _run([*_uv(), *arguments], where.result(), quietly=True):
            return 0
    return _run([*_PIP, *arguments])


def _unzip_pip() -> Path | None:
    """The wheel that was unzipped, if the environment had no pip."""
    if importlib.util.find_spec("pip") is not None:
        return None
    bundled = Path(
        sysconfig.get_config_var("WHEEL_PKG_DIR") or Path(ensurepip.__file__).with_name("_bundled")
    )
    wheels = sorted(bundled.glob("pip-*.whl"))
    if not wheels:
        ensurepip.bootstrap(default_pip=True)
        return None
    with ZipFile(wheels[-1]) as wheel:
        wheel.extractall(sysconfig.get_path("purelib"))
    return wheels[-1]


def _uv() -> list[str]:
    uv = Path(sys.executable).with_name("uv")
    return [str(uv), "pip", "install", "--quiet", "--python", sys.executable]


def _where_pip_looks() -> dict[str, str]:
    """The configuration of pip, from file or environment, as options of uv."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
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
