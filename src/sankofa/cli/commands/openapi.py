"""The command that prints the API's description."""

import json
from datetime import UTC, datetime

import click

from sankofa import settings
from sankofa.rest.openapi import describe


@click.command("openapi")
def print_description() -> None:
    """Print the OpenAPI description, as served at /openapi.json."""
    click.echo(json.dumps(describe(settings.load(), datetime.now(UTC).date()), indent=2, ensure_ascii=False))
