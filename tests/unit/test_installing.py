"""Locked wheels are installed by uv where it can be had, looking where pip would look."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_uv_looks_where_pip_is_told_to_look() -> None:
    told = {
        "PIP_INDEX_URL": "https://packages.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://one.example/simple https://two.example/simple",
        "PIP_FIND_LINKS": "/srv/wheels",
        "PIP_CONFIG_FILE": os.devnull,
    }
    script = "from tools import install; print(sorted(install._where_pip_looks().items()))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**{n: v for n, v in os.environ.items() if not n.startswith("PIP_")}, **told},
        capture_output=True,
        text=True,
        check=True,
    )
    for name, value in (
        ("UV_DEFAULT_INDEX", told["PIP_INDEX_URL"]),
        ("UV_INDEX", told["PIP_EXTRA_INDEX_URL"]),
        ("UV_FIND_LINKS", told["PIP_FIND_LINKS"]),
        ("UV_INDEX_STRATEGY", "unsafe-best-match"),
    ):
        assert str((name, value)) in done.stdout


def test_whatever_installs_takes_wheels_by_their_digests_alone() -> None:
    text = (ROOT / "tools" / "install.py").read_text()
    assert '"--require-hashes", "--only-binary", ":all:", "-r"' in text
    makefile = (ROOT / "Makefile").read_text()
    assert len(re.findall(r"\$\(INSTALL\) requirements/", makefile)) == 6
    locked = (ROOT / "requirements" / "installer.txt").read_text()
    assert re.match(r"uv==[0-9.]+ \\\n +--hash=sha256:[0-9a-f]{64}", locked)
