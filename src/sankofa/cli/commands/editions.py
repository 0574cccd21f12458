"""Commands on what is published."""

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from sankofa import settings
from sankofa.cli import publishing
from sankofa.cli.listing import as_json, print_json, print_table
from sankofa.edition.read.diff import COUNTED
from sankofa.replication.stores import open_store


@click.group(invoke_without_command=True)
@as_json
@click.pass_context
def editions(context: click.Context, as_json: bool) -> None:
    """What is published. One that is withdrawn is answered with 410: it holds what may no longer be shown."""
    if context.invoked_subcommand is not None:
        return
    store = open_store(settings.load())
    listed = store.list_editions()
    withdrawn = store.withdrawn() - {listed.current}
    if as_json:
        states = [(name, name == listed.current, name in withdrawn) for name in listed.editions]
        print_json([dict(zip(("edition", "current", "withdrawn"), state, strict=True)) for state in states])
        return
    lines = []
    for name in listed.editions:
        captured = datetime.strptime(name[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        state = "current" if name == listed.current else "withdrawn" if name in withdrawn else ""
        lines.append((name, f"{captured:%Y-%m-%d %H:%M}", state))
    print_table(("edition", "last capture (UTC)", "state"), lines)


@editions.command()
@click.argument("edition", metavar="ID")
def rollback(edition: str) -> None:
    """Go back to a kept edition."""
    publishing.roll_back(settings.load(), edition)
    click.echo(f"current edition is now {edition}")


@editions.command("key")
@click.option("--rotate", is_flag=True, help="Create a new key; it signs from now on, beside the old one.")
@click.option("--retire", is_flag=True, help="Stop signing with every key but the newest.")
@click.option(
    "--add",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Sign with the keys of FILE too: the edition-key of another publisher.",
)
def key(rotate: bool, retire: bool, add: Path | None) -> None:
    """Print the verifier key of this HOME (C2SP, Ed25519), for SANKOFA_TRUSTED_KEYS of the nodes."""
    click.echo(publishing.edition_key(settings.load(), rotate=rotate, retire=retire, add=add))


@editions.command("verify")
def verify() -> None:
    """Compare every kept edition with what a trusted key signed: the note, the manifests, and all files."""
    broken = 0
    for edition, complaint in publishing.verify_editions(settings.load()):
        click.echo(f"{edition}  {complaint or 'signed and whole'}")
        broken += complaint is not None
    if broken:
        raise click.ClickException(
            f"{broken} of them must not be served: `sankofa publish` builds them again"
        )


@editions.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
@click.option(
    "--examples", default=5, show_default=True, type=click.IntRange(0), help="Keys to show of each dataset."
)
def diff_editions(before: str, after: str, as_json: bool, examples: int) -> None:
    """What changed from edition A to edition B: rows added, changed, removed (withheld now, or no longer
    served), and of those added or changed the restated: figures that a later vintage replaced."""
    differences = publishing.difference(settings.load(), before, after, examples)
    if as_json:
        document = {"before": before, "after": after, "datasets": differences}
        click.echo(msgspec.json.encode(document).decode())
        return
    for dataset, difference in differences.items():
        counts = ", ".join(f"{name} {getattr(difference, name)}" for name in COUNTED)
        click.echo(f"{dataset}: {counts}")
        for example in difference.examples:
            click.echo(f"  {example['change']:<8}  {' | '.join(example['key'])}")
    if not differences:
        click.echo("no row differs")
