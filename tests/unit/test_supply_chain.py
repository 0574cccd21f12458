"""Every installed package is locked, licensed and checked."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tools import sbom

ROOT = Path(__file__).parents[2]


def test_every_package_is_locked_by_digest_and_under_an_allowed_licence() -> None:
    packages = sbom.packages()
    assert len(packages) > 30
    assert sbom.refused(packages) == []
    assert sbom.PAGE.read_text() == sbom.page(packages), "stale: make sbom"


def test_another_licence_or_none_is_refused_by_name() -> None:
    packages = [
        sbom.Package("copyleft", "1", ("0" * 64,), "AGPL-3.0-only"),
        sbom.Package("silent", "1", ("0" * 64,), ""),
        sbom.Package("loose", "1", (), "MIT"),
        sbom.Package("either", "1", ("0" * 64,), "GPL-2.0-only OR MIT"),
    ]
    assert [line.partition(":")[0] for line in sbom.refused(packages)] == ["copyleft", "silent", "loose"]


def test_the_sbom_names_every_package_with_its_digests_once_and_always_the_same() -> None:
    packages = sbom.packages()
    document = sbom.sbom(packages)
    assert document == sbom.sbom(packages)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    refs = [component["bom-ref"] for component in document["components"]]
    assert len(refs) == len(set(refs)) == len(packages)
    for component in document["components"]:
        assert re.fullmatch(r"pkg:pypi/[a-z0-9._-]+@\S+", component["purl"])
        assert component["externalReferences"][0]["hashes"]


def test_the_rules_of_bandit_are_on_and_every_exception_has_a_reason() -> None:
    """ruff's S rules are bandit's; `make check` runs them."""
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "S" in lint["select"]
    assert not [rule for rule in lint["ignore"] if rule.startswith("S") and not rule.startswith("SIM")]
    in_source = {p: rules for p, rules in lint["per-file-ignores"].items() if p.startswith("src")}
    assert {rule for rules in in_source.values() for rule in rules if rule.startswith("S")} == {"S608"}
    for path in (ROOT / "src").rglob("*.py"):
        for line in path.read_text().splitlines():
            if re.search(r"#\s*noqa", line):
                assert re.search(r"# noqa: [A-Z0-9, ]+ - \w", line), f"{path}: {line}"


def test_uv_uses_the_index_configured_for_pip() -> None:
    settings = {
        "PIP_INDEX_URL": "https://packages.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://one.example/simple https://two.example/simple",
        "PIP_FIND_LINKS": "/srv/wheels",
        "PIP_CONFIG_FILE": os.devnull,
    }
    script = "from tools import install; print(sorted(install._where_pip_looks().items()))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**{n: v for n, v in os.environ.items() if not n.startswith("PIP_")}, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    for name, value in (
        ("UV_DEFAULT_INDEX", settings["PIP_INDEX_URL"]),
        ("UV_INDEX", settings["PIP_EXTRA_INDEX_URL"]),
        ("UV_FIND_LINKS", settings["PIP_FIND_LINKS"]),
        ("UV_INDEX_STRATEGY", "unsafe-best-match"),
    ):
        assert str((name, value)) in done.stdout


def test_every_installation_uses_wheels_with_digests() -> None:
    text = (ROOT / "tools" / "install.py").read_text()
    assert '"--require-hashes", "--only-binary", ":all:", "-r"' in text
    makefile = (ROOT / "Makefile").read_text()
    assert len(re.findall(r"\$\(INSTALL\) requirements/", makefile)) == 6
    locked = (ROOT / "requirements" / "installer.txt").read_text()
    assert re.match(r"uv==[0-9.]+ \\\n +--hash=sha256:[0-9a-f]{64}", locked)
