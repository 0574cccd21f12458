"""The client installs without the service and loads little."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import httpx
import pytest

import sankofa.client
from tests.live import LiveServer
from tests.patience import until
from tests.services import REPOSITORY, free_port

LOADED = """
import json, sys
import sankofa.client
print(json.dumps(sorted(sys.modules)))
"""
SCRIPT = """
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


def test_importing_the_client_loads_neither_the_service_nor_frame_libraries() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    modules = json.loads(done.stdout)
    ours = {name for name in modules if name.partition(".")[0] == "sankofa"}
    assert {name for name in ours if name != "sankofa" and not name.startswith("sankofa.client")} == set()
    heavy = {"duckdb", "granian", "mcp", "msgspec", "numpy", "pandas", "polars", "pyarrow", "starlette"}
    assert heavy & {name.partition(".")[0] for name in modules} == set()


@pytest.mark.deep
def test_the_client_installs_alone_and_asks_a_real_server(
    server: LiveServer, sample_key: str, tmp_path: Path
) -> None:
    home = tmp_path / "env"
    client = "src/sankofa/client"
    packages = installed(home, requirements("httpx"), built(tmp_path, "clients/python", client))
    assert [path.name for path in (packages / "sankofa").iterdir()] == ["client"]
    done = subprocess.run(
        [home / "bin" / "python", "-c", SCRIPT, sample_key, server.url],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    answered, missing = done.stdout.splitlines()
    assert answered.startswith("25 DC8342E4A6CD9A7F25CAC383F4 ")
    assert answered.endswith(str(packages / "sankofa" / "client" / "__init__.py"))
    assert missing == "this needs pandas: pip install pandas"


def test_both_distributions_have_one_version() -> None:
    versions = {
        tomllib.loads((folder / "pyproject.toml").read_text())["project"]["version"]
        for folder in (REPOSITORY, DISTRIBUTION)
    }
    assert versions == {sankofa.client.__version__}


@pytest.mark.ci
def test_the_wheel_of_the_service_serves_with_only_its_requirements(sample_home: Path, tmp_path: Path):
    home, data = tmp_path / "env", tmp_path / "home"
    needed = requirements("sankofa") - {"sankofa"}
    wheel = built(tmp_path, ".", "pyproject.toml", "setup.py", "README.md", "LICENSE", "docs", "src")
    installed(home, needed, wheel)
    environment = {
        "SANKOFA_HOME": str(data),
        "SANKOFA_BASE_URL": "http://127.0.0.1",
        "PATH": os.environ["PATH"],
    }
    command = str(home / "bin" / "sankofa")
    shutil.copytree(sample_home, data)
    bundled = {
        name.split("/")[1] for name in zipfile.ZipFile(wheel).namelist() if name.startswith("sankofa/")
    }
    assert {"sample", "starter", "documentation", "web"} <= bundled
    port = free_port()
    serve = [command, "serve", "--port", str(port)]
    with subprocess.Popen(serve, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as server:
        try:
            until(lambda: answers(f"http://127.0.0.1:{port}/health"))
            page = httpx.get(f"http://127.0.0.1:{port}/companies").text
            status = httpx.get(f"http://127.0.0.1:{port}/v1/status").json()
        finally:
            server.terminate()
    assert "Kilimani Sample Cement" in page
    assert status["status"] == "ok"


def answers(address: str) -> bool:
    try:
        return httpx.get(address).status_code == 200
    except httpx.TransportError:
        return False


def built(folder: Path, where: str, *sources: str) -> Path:
    """The wheel of the distribution in this folder, built in a copy so that the checkout does not change."""
    for name in (where, *sources) if where != "." else sources:
        if (REPOSITORY / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
            shutil.copytree(REPOSITORY / name, folder / "copy" / name, ignore=ignored)
        else:
            (folder / "copy").mkdir(exist_ok=True)
            shutil.copyfile(REPOSITORY / name, folder / "copy" / name)
    build = ["wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir"]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *build]
    subprocess.run([*command, folder / "wheels", folder / "copy" / where], check=True, capture_output=True)
    (wheel,) = (folder / "wheels").glob("*.whl")
    return wheel


def installed(home: Path, needed: set[str], wheel: Path) -> Path:
    """A new environment with only these distributions and the wheel; returns its path."""
    venv.create(home, with_pip=False, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    for name in needed:
        link(name, packages)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    install = [*pip, "--python", str(home / "bin" / "python"), "install", "--no-index", str(wheel)]
    subprocess.run(install, check=True, cwd=home)  # pip checks that all its dependencies are present
    return packages


def requirements(name: str) -> set[str]:
    """The names of a distribution and of everything it requires."""
    names = {name}
    for line in importlib.metadata.requires(name) or ():
        if "extra ==" not in line:
            needed = re.split(r"[^A-Za-z0-9_.-]", line)[0].lower().replace("_", "-")
            try:
                names |= requirements(needed)
            except importlib.metadata.PackageNotFoundError:  # required by another Python only
                continue
    return names


def link(name: str, packages: Path) -> None:
    """Link each file of an installed distribution into the environment."""
    for file in importlib.metadata.files(name) or ():
        if not file.parts[0].startswith(".."):
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(file.locate())
