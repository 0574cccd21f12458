"""Commands that look after an installation."""

import sys

import click

from sankofa import settings
from sankofa.cli.doctor import examine, explain_settings_error
from sankofa.cli.findings import Finding
from sankofa.cli.listing import as_json, print_json
from sankofa.cli.upgrading import check_layouts
from sankofa.model.errors import SettingsError


@click.command()
@as_json
def doctor(as_json: bool) -> None:
    """What is wrong here and what to do about it; exit code 1 when something must be mended."""
    try:
        findings = examine(settings.load())
    except SettingsError as failure:
        findings = [explain_settings_error(failure)]
    _report(findings, as_json)


@click.command("upgrade-check")
@as_json
def upgrade_check(as_json: bool) -> None:
    """Whether this version can use what is in HOME as it is, and the command to run where it cannot."""
    _report(check_layouts(settings.load()), as_json)


def _report(findings: list[Finding], as_json: bool) -> None:
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            click.echo(finding.line())
    if any(finding.status == "error" for finding in findings):
        sys.exit(1)
