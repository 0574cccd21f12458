"""Commands that tell what is set up: sources, settings."""

import click

from sankofa import settings
from sankofa.sources.registry import load_sources


@click.command("sources")
def list_sources() -> None:
    """What is registered."""
    for source in load_sources(settings.load().home).values():
        licence = source.license_class
        if not source.commercial_redistribution:
            licence += "  REFUSED: no commercial redistribution"
        click.echo(f"{source.id:<28}  {source.adapter:<20}  {source.sku or '-':<10}  {licence}")


@click.command("settings")
def show_settings() -> None:
    """Each setting with its value, where that came from and what it means; secrets masked."""
    for variable, value, origin, explanation in settings.explain():
        click.echo(f"{variable}={value}  ({origin})\n    {explanation}")
