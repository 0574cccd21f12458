"""Lists what the service is installed with: a CycloneDX SBOM, and the licences with a check of each.

python tools/sbom.py            write build/sbom.cdx.json and docs/explanation/licences.md
python tools/sbom.py --check    exit 1 where a licence is not allowed, or that page is stale

The versions and digests are those of requirements/extras.txt (the runtime and its drivers) and
requirements/xbrl.txt (the reader of inline XBRL); the licences are
what the installed distributions declare.
"""

import importlib.metadata
import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any, Final, NamedTuple

_ROOT: Final = Path(__file__).resolve().parent.parent
SBOM: Final = _ROOT / "build" / "sbom.cdx.json"
PAGE: Final = _ROOT / "docs" / "explanation" / "licences.md"
_REQUIREMENT = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)(?:\s*;\s*([^\\]+?))?\s*\\$")
_DIGEST = re.compile(r"--hash=sha256:([0-9a-f]{64})")

PERMISSIVE: Final = frozenset(
    {
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "MIT",
        "MIT-0",
        "PSF-2.0",
        "0BSD",
        "ISC",
        "CC0-1.0",
        "CNRI-Python",
        "MIT-CMU",
        "Zlib",  # of what arelle brings: numpy, pillow, regex
    }
)
WEAK_COPYLEFT: Final = frozenset({"LGPL-2.1-only", "LGPL-2.1-or-later", "LGPL-3.0-only", "MPL-2.0"})
"""Allowed for a library that is installed unmodified beside the service and can be replaced."""
_SPELLINGS: Final = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "LGPL": "LGPL-2.1-or-later",
}
_ELSEWHERE: Final = {
    "async-timeout": "Python before 3.11.3",
    "httpx2-jsfetch": "emscripten",
    "pywin32": "win32",
    "tzdata": "win32",
}
"""Locked for platforms that the service does not run on, and not installed here."""


class Package(NamedTuple):
    name: str
    version: str
    digests: tuple[str, ...]
    licence: str
    """An SPDX expression; empty where it is not installed here."""


def packages() -> list[Package]:
    """Every locked distribution of the runtime and its drivers."""
    locked: list[Package] = []
    for name in ("extras.txt", "xbrl.txt"):
        for line in (_ROOT / "requirements" / name).read_text().splitlines():
            if match := _REQUIREMENT.match(line):
                locked.append(Package(match[1], match[2], (), _licence(match[1])))
            elif (digest := _DIGEST.search(line)) and locked:
                locked[-1] = locked[-1]._replace(digests=(*locked[-1].digests, digest[1]))
    return sorted({(package.name, package.version): package for package in locked}.values())


def refused(locked: list[Package]) -> list[str]:
    """The reasons for refusal, a line each."""
    lines = []
    for package in locked:
        if not package.digests:
            lines.append(f"{package.name}: locked without a digest")
        if not package.licence and package.name not in _ELSEWHERE:
            lines.append(f"{package.name}: no licence is declared")
        allowed = PERMISSIVE | WEAK_COPYLEFT
        ways = [way.split(" AND ") for way in package.licence.split(" OR ")]
        if package.licence and not any(allowed.issuperset(way) for way in ways):
            lines.append(f"{package.name}: {package.licence} is not allowed")
    return lines


def sbom(locked: list[Package]) -> dict[str, Any]:
    """A CycloneDX 1.6 document; the same packages give the same document."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    own = {
        "type": "application",
        "bom-ref": project["name"],
        "name": project["name"],
        "version": project["version"],
        "licenses": [{"license": {"id": project["license"]}}],
    }
    content = json.dumps([[*package] for package in locked])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": own},
        "components": [_component(package) for package in locked],
    }


def page(locked: list[Package]) -> str:
    """docs/explanation/licences.md."""
    why_none = {name: f"not installed: {where} only" for name, where in _ELSEWHERE.items()}
    rows = [f"| {p.name} | {p.version} | {why_none.get(p.name, p.licence)} |" for p in locked]
    return "\n".join(
        [
            "# Licences of what the service is installed with",
            "",
            "<!-- Written by tools/sbom.py (make sbom). -->",
            "",
            "The service is under Apache-2.0. Everything below is installed beside it, unmodified, from",
            "locked wheels: permissive licences, or LGPL and MPL of libraries that can be replaced.",
            "`make check` refuses any other.",
            "`make sbom` writes the same list with digests as CycloneDX JSON to `build/sbom.cdx.json`.",
            "",
            "| package | version | licence |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _component(package: Package) -> dict[str, Any]:
    purl = f"pkg:pypi/{package.name.lower()}@{package.version}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "purl": purl,
        "scope": "excluded" if package.name in _ELSEWHERE else "required",
        "externalReferences": [
            {
                "type": "distribution",
                "url": purl,
                "hashes": [{"alg": "SHA-256", "content": digest} for digest in package.digests],
            }
        ],
    }
    if package.licence:
        component["licenses"] = [{"expression": package.licence}]
    return component


def _licence(name: str) -> str:
    try:
        declared: Any = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
    if expression := declared.get("License-Expression"):
        return str(expression)
    classifiers = [line.split(" :: ") for line in declared.get_all("Classifier", ())]
    texts = [declared.get("License", "").strip()]
    texts += [kinds[-1] for kinds in classifiers if kinds[0] == "License"]
    spelled = [_SPELLINGS.get(text, text) for text in texts]
    known = (text for text in spelled if text in PERMISSIVE | WEAK_COPYLEFT)
    return next(known, "") or next((text.partition("\n")[0] for text in texts if text), "")


def main(arguments: list[str]) -> int:
    locked = packages()
    complaints = refused(locked)
    if "--check" in arguments:
        if not PAGE.exists() or PAGE.read_text() != page(locked):
            complaints.append(f"{PAGE.relative_to(_ROOT)} is stale: make sbom")
    else:
        SBOM.parent.mkdir(exist_ok=True)
        SBOM.write_text(json.dumps(sbom(locked), indent=1) + "\n")
        PAGE.write_text(page(locked))
    for line in complaints:
        print(line, file=sys.stderr)  # noqa: T201 - a command prints
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
