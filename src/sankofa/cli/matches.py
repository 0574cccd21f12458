"""`sankofa matches`: parties of tenders that may be known organisations, confirmed or refused by hand.

A decision is a file of the source `match-reviews`: appended, sealed and kept like any other, and undone by a
later one. It has a keyed hash of the party's name, never the name. See contract: ENT-10.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from sankofa import settings as environment
from sankofa.cli.ledger import ingest_files, open_ledger
from sankofa.cli.output import as_json, print_json, print_table
from sankofa.cli.process import now
from sankofa.edition.write.context import BuildContext
from sankofa.ledger.parties import PartyMatcher
from sankofa.model.errors import OperatorError
from sankofa.settings import Settings
from sankofa.sources.match_reviews import COLUMNS, SOURCE
from sankofa.sources.registry import load_sources


class _Pair(NamedTuple):
    """A party and an organisation that it may be."""

    match: str
    party: str
    country: str
    score: float
    service_id: str
    legal_name: str
    verdict: str
    state: str


@click.group("matches")
def matches() -> None:
    """Review which known organisations the parties of tenders may be."""


@matches.command()
@click.option("--country", metavar="CC", help="Only the parties of this country.")
@click.option(
    "--state",
    type=click.Choice(("waiting", "resolved", "decided")),
    default="waiting",
    show_default=True,
    help="Parties of nobody; those that a similar name resolved; those that were confirmed or refused.",
)
@as_json
def review(country: str | None, state: str, as_json: bool) -> None:
    """List parties, each with the organisations that it may be, the most alike first."""
    wanted = (country or "").upper()
    listed = [p for p in _pairs(environment.load()) if p.state == state and wanted in ("", p.country)]
    listed.sort(key=lambda pair: (-pair.score, pair.party, pair.service_id))
    if as_json:
        print_json([pair._asdict() for pair in listed])
        return
    print_table(
        ("match", "party", "country", "score", "service_id", "legal_name", "verdict"),
        [
            (p.match, p.party, p.country, f"{p.score:.2f}", p.service_id, p.legal_name, p.verdict)
            for p in listed
        ],
    )


def _decision(name: str, verdict: str, summary: str) -> None:
    @matches.command(name, help=summary)
    @click.argument("match")
    @click.argument("service_id")
    def command(match: str, service_id: str) -> None:
        settings = environment.load()
        service_id = service_id.upper()
        known = {(pair.match, pair.service_id): pair for pair in _pairs(settings)}
        pair = known.get((match, service_id))
        if pair is None:
            raise OperatorError(f"no match {match} with {service_id}: see `sankofa matches review`")
        if pair.verdict == verdict:
            click.echo(f"match {match} with {service_id} is {verdict} already")
            return
        with TemporaryDirectory(prefix="sankofa-matches-") as folder:
            decided_at = now().isoformat(timespec="microseconds")
            path = Path(folder) / f"{match}-{verdict}.csv"
            with path.open("w", encoding="utf-8", newline="") as stream:
                csv.writer(stream).writerows([COLUMNS, (match, service_id, verdict, decided_at)])
            ingest_files(settings, SOURCE, [path])
        click.echo(
            f"match {match} with {service_id}: {verdict}; `sankofa publish` builds the edition with it"
        )


_decision("confirm", "confirmed", "Say that a party is this organisation.")
_decision("refuse", "refused", "Say that a party is not this organisation.")
_decision("undo", "open", "Take back what was said of a party and an organisation.")


def _pairs(settings: Settings) -> Iterator[_Pair]:
    """Every party without an identifier that leads somewhere, with the organisations of a similar name.

    Only parties that the gate lets through: a person is no party here, whatever was decided before.
    """
    with open_ledger(settings, create=False) as ledger:
        context = BuildContext(ledger, load_sources(settings.home))
        if not context.captures:
            return
        threshold = settings.match_threshold / 100
        names = {entity.service_id: entity.legal_name or "" for entity in context.entities}
        matcher = PartyMatcher(context.entities, threshold=threshold)
        seen: set[tuple[str, str]] = set()
        for party in context.parties:
            asked = party.name, party.country, party.identifiers
            match = matcher.match(*asked) if party.org_evidence is not None else None
            if match is None or match.method in ("lei", "identifier", "name"):
                continue
            key = context.reviews.key(party.name, party.country)
            for score, service_id in matcher.candidates(*asked):
                if (key, service_id) in seen:
                    continue
                seen.add((key, service_id))
                verdict = context.reviews.verdict(party.name, party.country, service_id)
                state = "decided" if verdict != "open" else "resolved" if match.service_id else "waiting"
                yield _Pair(
                    key, party.name, party.country, score, service_id, names[service_id], verdict, state
                )
