"""The files under deploy/ are well formed, and name only commands, settings and metrics that there are.

No engine that runs them is started here: not Docker, systemd, Kubernetes, Prometheus or Grafana.
"""

import configparser
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from sankofa.cli.main import main
from sankofa.cli.metrics import Requests, WorkerCounts
from sankofa.cli.metrics_server import (
    _ingest_metrics,
    _request_metrics,
    _state_metrics,
    _worker_metrics,
)
from sankofa.settings import PREFIX, Settings

REPOSITORY = Path(__file__).parents[2]
DEPLOY = REPOSITORY / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
UNITS = sorted((DEPLOY / "systemd").iterdir())

_SETTING = re.compile(rf"\b{PREFIX}[A-Z_]+\b")
_METRIC = re.compile(r"\bsankofa_[a-z_]+\b")
_AS_COLLECTED = re.compile(r"_(total|bucket|count|sum)\Z")


def metric_names() -> set[str]:
    counts = WorkerCounts({"get_screen": {200: Requests()}}, {}, {}, {})
    families = [*_request_metrics(counts), *_state_metrics([]), *_worker_metrics([]), *_ingest_metrics({})]
    return {family.name for family in families}


def options_of(arguments: list[str]) -> None:
    """Parse a command line as the command would, without running it. Raises click.ClickException."""
    if arguments[0] == "collect" and "collect" not in main.list_commands(click.Context(main)):
        return  # it comes with collecting, and is checked from then on
    command: Any = main.get_command(click.Context(main), arguments[0])
    assert command is not None, f"no command {arguments[0]}"
    command.make_context(arguments[0], list(arguments[1:]))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_setting_and_metric_that_is_named_is_there(path: Path) -> None:
    text = path.read_text()
    known = {PREFIX + field.name.upper() for field in fields(Settings)}
    assert set(_SETTING.findall(text)) <= known
    if path.suffix in (".yml", ".json"):
        named = {_AS_COLLECTED.sub("", name) for name in _METRIC.findall(text)}
        assert named <= metric_names()


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_are_well_formed_and_start_commands_that_there_are(path: Path) -> None:
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


def test_the_image_is_made_of_files_that_there_are_and_starts_the_service() -> None:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE):
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
    assert container["readinessProbe"]["httpGet"]["path"] == "/v1/status"
    job = by_kind["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    options_of(job["containers"][0]["args"])
    claim = job["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert claim == by_kind["PersistentVolumeClaim"]["metadata"]["name"]


def test_the_dashboard_has_a_panel_for_every_metric() -> None:
    dashboard = json.loads((DEPLOY / "grafana" / "sankofa.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    shown = {_AS_COLLECTED.sub("", name) for text in expressions for name in _METRIC.findall(text)}
    assert metric_names() == shown
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_alerts_are_rules_of_prometheus() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    for rule in rules["groups"][0]["rules"]:
        assert rule["alert"]
        assert rule["expr"]
        assert rule["annotations"]["summary"]
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    assert scraped["rule_files"] == ["alerts.yml"]
