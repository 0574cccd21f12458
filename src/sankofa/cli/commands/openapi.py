"""The command that prints the API's description."""

import json

import click

from sankofa import settings
from sankofa.rest.openapi import describe


@click.command("openapi")
def print_description() -> None:
    """Print the OpenAPI description, as served at /openapi.json."""
    click.echo(json.dumps(describe(settings.load()), indent=2, ensure_ascii=False))
