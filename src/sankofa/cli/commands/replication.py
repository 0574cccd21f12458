"""Commands that carry editions between machines."""

from datetime import timedelta

import click

from sankofa import settings
from sankofa.cli import replicating
from sankofa.cli.logs import configure


@click.command()
@click.argument("destination")
@click.option(
    "--keep-unused",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0),
    metavar="MINUTES",
    help="How long what no edition needs any more stays, for nodes that are pulling it.",
)
def push(destination: str, keep_unused: float) -> None:
    """Send the editions that are kept to DESTINATION, for nodes to follow: a folder that a web server serves,
    s3://bucket/path, gs:// or az://. Only what is missing there is sent."""
    pushed = replicating.push_editions(settings.load(), destination, timedelta(minutes=keep_unused))
    if pushed.replaced:
        click.echo(f"replaced what was there: {pushed.replaced}", err=True)
    if not pushed.changed and not pushed.files:
        click.echo(f"nothing changed: edition {pushed.current} is there")
        return
    click.echo(
        f"edition {pushed.current}: {pushed.files} files and {pushed.bytes} bytes sent, "
        f"{pushed.editions} editions there, {pushed.removed} files removed"
    )


@click.command()
@click.option("--once", is_flag=True, help="Pull what is current now, and end.")
def follow(once: bool) -> None:
    """Follow the editions at SANKOFA_EDITIONS into HOME. `sankofa serve` does so by itself."""
    current = settings.load()
    configure(current)
    state = replicating.follow_editions(current, once=once)
    if once:
        pulled = f"{state.pulled_files} files and {state.pulled_bytes} bytes pulled"
        click.echo(f"edition {state.remote_edition}: {pulled}")
        if state.refusal:
            raise click.ClickException(state.refusal)
