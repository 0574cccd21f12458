"""The client is light, and can be installed without the service."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

import sankofa.client
from tests.live import LiveServer
from tests.services import REPOSITORY

LOADED = """
import json, sys
import sankofa.client
print(json.dumps(sorted(sys.modules)))
"""
ASKED = """
import sys
import sankofa.client
from sankofa.client import Client, MissingLibrary
with Client(sys.argv[1], sys.argv[2]) as client:
    answer = client.columns.get_fundamentals("DC8342E4A6CD9A7F25CAC383F4", as_of="2024-12-31")
    print(answer.count, answer.rows[0]["service_id"], sankofa.client.__file__)
    try:
        answer.to_pandas()
    except MissingLibrary as failure:
        print(failure)
"""
DISTRIBUTION = REPOSITORY / "clients" / "python"


def test_importing_it_loads_nothing_of_the_service_and_no_frames() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    modules = json.loads(done.stdout)
    ours = {name for name in modules if name.partition(".")[0] == "sankofa"}
    assert {name for name in ours if name != "sankofa" and not name.startswith("sankofa.client")} == set()
    heavy = {
        "duckdb",
        "granian",
        "mcp",
        "msgspec",
        "numpy",
        "pandas",
        "polars",
        "pyarrow",
        "starlette",
    }
    assert heavy & {name.partition(".")[0] for name in modules} == set()


@pytest.mark.deep
def test_the_client_alone_is_installed_and_asks_a_real_server(
    server: LiveServer, sample_key: str, tmp_path: Path
) -> None:
    home = tmp_path / "env"
    venv.create(home, with_pip=False, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    for needed in requirements("httpx"):
        copy(needed, packages)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheel = built(tmp_path)
    install = [*pip, "--python", str(home / "bin" / "python"), "install", "--no-index", str(wheel)]
    subprocess.run(install, check=True, cwd=tmp_path)  # its dependencies are looked for, and all there
    assert [path.name for path in (packages / "sankofa").iterdir()] == ["client"]
    done = subprocess.run(
        [home / "bin" / "python", "-c", ASKED, sample_key, server.url],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    told, missing = done.stdout.splitlines()
    assert told.startswith("25 DC8342E4A6CD9A7F25CAC383F4 ")
    assert told.endswith(str(packages / "sankofa" / "client" / "__init__.py"))
    assert missing == "this needs pandas: pip install pandas"


def test_both_distributions_have_one_version() -> None:
    versions = {
        tomllib.loads((folder / "pyproject.toml").read_text())["project"]["version"]
        for folder in (REPOSITORY, DISTRIBUTION)
    }
    assert versions == {sankofa.client.__version__}


def built(folder: Path) -> Path:
    """The wheel, built in a copy: the checkout stays as it is."""
    shutil.copytree(DISTRIBUTION, folder / "clients" / "python")
    shutil.copytree(REPOSITORY / "src" / "sankofa" / "client", folder / "src" / "sankofa" / "client")
    build = ["wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir"]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *build]
    subprocess.run(
        [*command, folder / "wheels", folder / "clients" / "python"], check=True, capture_output=True
    )
    (wheel,) = (folder / "wheels").glob("sankofa_client-*.whl")
    return wheel


def requirements(name: str) -> set[str]:
    """A distribution and everything it needs, by name."""
    found = {name}
    for line in importlib.metadata.requires(name) or ():
        if "extra ==" not in line:
            needed = re.split(r"[^A-Za-z0-9_.-]", line)[0]
            try:
                found |= requirements(needed)
            except importlib.metadata.PackageNotFoundError:  # for another Python
                continue
    return found


def copy(name: str, packages: Path) -> None:
    """Install what is installed here over there, file by file."""
    for file in importlib.metadata.files(name) or ():
        if not file.parts[0].startswith(".."):
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), target)
