"""The files under deploy/ are well formed and name only existing commands, settings and metrics.

The tests start none of Docker, systemd, Kubernetes, Prometheus or Grafana.
"""

import configparser
import json
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from sankofa.cli.main import main
from sankofa.cli.metrics import METRICS
from sankofa.operations.service import Service
from sankofa.rest.pages import open_pages
from sankofa.settings import PREFIX, Settings
from tests.every import every

REPOSITORY = Path(__file__).parents[2]
DEPLOY = REPOSITORY / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
UNITS = sorted((DEPLOY / "systemd").iterdir())

_SETTING = re.compile(rf"\b{PREFIX}[A-Z_]+\b")
_METRIC = re.compile(r"\bsankofa_[a-z_]+\b")
_AS_COLLECTED = re.compile(r"_(total|bucket|count|sum)\Z")


def metric_names() -> set[str]:
    return {_AS_COLLECTED.sub("", name) for name in METRICS}


def options_of(arguments: list[str]) -> None:
    """Parse a command line as the command would, without running it. Raises click.ClickException."""
    command: Any = main.get_command(click.Context(main), arguments[0])
    assert command is not None, f"no command {arguments[0]}"
    command.make_context(arguments[0], list(arguments[1:]))


@every("path", FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_named_setting_and_metric_exists(path: Path) -> None:
    text = path.read_text()
    existing = {PREFIX + field.name.upper() for field in fields(Settings)}
    assert set(_SETTING.findall(text)) <= existing
    if path.suffix in (".yml", ".json"):
        names = {_AS_COLLECTED.sub("", name) for name in _METRIC.findall(text)}
        assert names <= metric_names()


@every("path", UNITS, ids=lambda path: path.name)
def test_units_are_well_formed_and_start_existing_commands(path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(path.read_text())
    if path.suffix == ".timer":
        assert path.with_suffix(".service") in UNITS
        assert unit["Timer"]["OnCalendar"]
        return
    command = unit["Service"]["ExecStart"]
    assert unit["Service"]["User"] == "sankofa"
    arguments = command.partition("/bin/sankofa ")[2].replace('"', " ").replace("'", " ").split()
    options_of(arguments if arguments[0] != "backup" else ["backup", "file"])


def test_compose_starts_the_service_its_stores_and_a_proxy() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    assert {"api", "work", "postgres", "valkey", "proxy"} <= services.keys()
    options_of(services["work"]["command"])
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= services.keys(), name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).exists(), volume
    dockerfile = services["api"]["build"]["dockerfile"]
    assert (REPOSITORY / dockerfile).exists()
    needed = set(re.findall(r"\$\{([A-Z_]+):\?\}", (DEPLOY / "compose.yaml").read_text()))
    head = (DEPLOY / "compose.yaml").read_text().partition("\nname:")[0]
    assert [name for name in needed if name not in head] == []


def test_the_image_copies_existing_files_and_starts_the_service() -> None:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    for line in _copied():
        for source in line.split()[:-1]:
            assert (REPOSITORY / source).exists(), source
            assert f"!{source.partition('/')[0]}" in ignored
    (command,) = re.findall(r"^CMD (\[.+\])$", text, re.MULTILINE)
    options_of(json.loads(command))


def test_manifests_are_kubernetes_objects_that_fit_together() -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "sankofa.yaml").read_text()))
    by_kind = {document["kind"]: document for document in documents}
    for document in documents:
        assert document["apiVersion"]
        assert document["metadata"]["name"]
    pod = by_kind["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    options_of(container["args"])
    assert by_kind["Service"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    ports = {port["name"] for port in container["ports"]}
    assert by_kind["Service"]["spec"]["ports"][0]["targetPort"] in ports
    metrics = by_kind["ConfigMap"]["data"]["SANKOFA_METRICS_PORT"]
    assert metrics in {str(port["containerPort"]) for port in container["ports"]}
    assert container["startupProbe"]["httpGet"]["path"] == "/v1/status"
    assert container["readinessProbe"]["httpGet"]["path"] == "/health", "a shared store takes away no pod"
    job = by_kind["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    options_of(job["containers"][0]["args"])
    claim = job["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert claim == by_kind["PersistentVolumeClaim"]["metadata"]["name"]


def test_every_probed_path_answers(tmp_path: Path) -> None:
    pattern = re.compile(r"(?:health_uri |:8000|path: |uri )(/[a-z0-9/-]+)")
    paths = {path for file in FILES for path in pattern.findall(file.read_text())}
    assert paths == {"/health", "/v1/status", "/tls-permission"}
    assert paths <= open_pages(Service(Settings(home=tmp_path))).keys()


def _copied() -> list[str]:
    return re.findall(r"^COPY (?!--from)(.+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_systemd_accepts_the_units() -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", *UNITS], capture_output=True, text=True, check=False, timeout=60
    )
    complaints = [line for line in done.stderr.splitlines() if str(DEPLOY) in line or "sankofa" in line]
    assert [line for line in complaints if "/opt/sankofa/.venv/bin/sankofa is not exec" not in line] == []


def test_every_metric_is_in_the_table_of_the_operators_kit_and_no_other() -> None:
    page = (REPOSITORY / "docs" / "how-to" / "operations.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `sankofa_")]
    names = {_AS_COLLECTED.sub("", name) for row in rows for name in _METRIC.findall(row)}
    assert names == metric_names()


@every("name", ["how-to/operating.md", "how-to/operations.md"])
def test_every_setting_named_without_its_prefix_exists(name: str) -> None:
    text = (REPOSITORY / "docs" / name).read_text()
    names = set(re.findall(r"`([A-Z]+_[A-Z_]*[A-Z])(?:=[^`]*)?`", text))
    of_others = {"SSL_CERT_FILE", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_REGION"}
    existing = {field.name.upper() for field in fields(Settings)}
    assert {text.removeprefix(PREFIX) for text in names} - of_others <= existing


def test_the_dashboard_has_a_panel_for_every_metric() -> None:
    dashboard = json.loads((DEPLOY / "grafana" / "sankofa.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    in_panels = {_AS_COLLECTED.sub("", name) for text in expressions for name in _METRIC.findall(text)}
    of_followers = {"sankofa_following_up", "sankofa_following_refusals"}
    assert metric_names() - of_followers - {"sankofa_build_info"} == in_panels
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
