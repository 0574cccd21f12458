"""Commands that print the configuration: sources, settings and the OpenAPI description."""

import json

import click

from sankofa import settings
from sankofa.cli.output import as_json, print_json, print_table
from sankofa.rest.openapi import describe
from sankofa.sources.registry import load_sources


@click.command("sources")
@as_json
def list_sources(as_json: bool) -> None:
    """What is registered."""
    sources = load_sources(settings.load().home).values()
    if as_json:
        print_json(list(sources))
        return
    lines = []
    for source in sources:
        licence = source.license_class
        if not source.commercial_redistribution:
            licence += "  REFUSED: no commercial redistribution"
        lines.append((source.id, source.adapter, source.sku or "-", licence))
    print_table(("source", "adapter", "dataset", "licence"), lines)


@click.command("settings")
def show_settings() -> None:
    """Each setting with its value, where that came from and what it means; secrets masked."""
    for variable, value, origin, explanation in settings.explain():
        click.echo(f"{variable}={value}  ({origin})\n    {explanation}")


@click.command("openapi")
def print_description() -> None:
    """Print the OpenAPI description, as served at /openapi.json."""
    click.echo(json.dumps(describe(settings.load()), indent=2, ensure_ascii=False))
