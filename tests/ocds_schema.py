"""What the schema of the Open Contracting Data Standard says against a release.

The rules are those of JSON Schema draft 4 with its formats; the keywords OCDS adds to them are about merging
and codelists. The schemas come out of a package on the registry that pip is set up for.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft4Validator, ValidationError

from tests.services import REPOSITORY, missing

REQUIREMENT = REPOSITORY / "requirements" / "ocds-schema.txt"
CACHE = REPOSITORY / "build" / "ocds-schema"
DOWNLOAD = """
-m pip download --quiet --require-hashes --no-deps --no-binary :all: --no-build-isolation --retries 1
""".split()
VERSIONS = {"1.0": "1__0__3", "1.1": "1__1__4"}


@dataclass(frozen=True)
class Error:
    """One rule broken at one place. Places in arrays are not told apart: cleaning may remove an entry."""

    path: str
    rule: str
    message: str = field(compare=False)


def validation_errors(data: dict[str, Any], version: str | None = None) -> Counter[Error]:
    """How often each rule is broken by a release, or by the releases of a package of releases or records.

    What cleaning broke is `validation_errors(cleaned) - validation_errors(original)`. The version is that of
    the package, else 1.1; a release has none of its own, so name it where the package says 1.0.
    """
    version = str(version or data.get("version"))
    validator = _validator(version if version in VERSIONS else "1.1")
    return Counter(_error(found) for release in _releases(data) for found in validator.iter_errors(release))


@cache
def _validator(version: str) -> Draft4Validator:
    return Draft4Validator(release_schema(version), format_checker=Draft4Validator.FORMAT_CHECKER)


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


def _releases(data: dict[str, Any]) -> Iterator[Any]:
    """The releases of a package, whatever they are; one that is only linked to is not there to be read."""
    if "records" in data:
        for record in _entries(data["records"]):
            if isinstance(record, dict):
                yield from _releases({"releases": record.get("releases")})
                if "compiledRelease" in record:
                    yield record["compiledRelease"]
    elif "releases" in data:
        for release in _entries(data["releases"]):
            if not (isinstance(release, dict) and "url" in release and "ocid" not in release):
                yield release
    else:
        yield data


def _entries(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _error(found: ValidationError) -> Error:
    path = "/".join(step for step in found.absolute_path if isinstance(step, str))
    rule = str(found.validator)
    if rule == "required":
        # The message names the field, and nothing else does.
        rule = found.message
    return Error(path, rule, found.message)
