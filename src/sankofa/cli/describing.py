"""Read-only commands: sources, settings, openapi, show and verify."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import click
import httpx

from sankofa.access.records import Cursors
from sankofa.access.tiers import grant
from sankofa.cli.output import as_json, print_json, print_table, to_have_an_edition
from sankofa.cli.process import now
from sankofa.client.proofs import PROOF, stamped_at, verify, verify_digest
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.edition_manager import open_edition
from sankofa.engines.publication import signers_of
from sankofa.model.errors import OperatorError, Problem
from sankofa.model.line_items import LINE_ITEMS, STATEMENT_KINDS
from sankofa.operations.contract import Call
from sankofa.operations.locked import ask_rows
from sankofa.replication.stores import open_fresh_store
from sankofa.rest.openapi import describe
from sankofa.settings import explain, load
from sankofa.sources.registry import load_sources
from sankofa.web.data import StatementTable, arrange, for_reading, unit_beside
from sankofa.web.languages import language


@contextmanager
def operator_call() -> Iterator[Call]:
    """A call to the current edition with full access. Raises OperatorError if there is none."""
    current = load()
    store = open_fresh_store(current)
    edition_id = store.list_editions().current
    if edition_id is None:
        raise OperatorError(f"no edition is published ({to_have_an_edition(current)})")
    with closing(store), closing(open_edition(store, edition_id)) as edition:
        everything = grant(current, "operator", "professional", None, None)
        yield Call(edition, everything, now().date(), Cursors((b"unused",)), _no_pages)


async def _no_pages(_: str) -> Edition:
    raise OperatorError("this command asks for no pages")


@click.command("sources")
@as_json
def list_sources(as_json: bool) -> None:
    """The registered sources, metrics and panels."""
    sources = load_sources(load().home).values()
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
    """Each setting with its value, origin and meaning; secrets masked."""
    for variable, value, origin, explanation in explain():
        click.echo(f"{variable}={value}  ({origin})\n    {explanation}")


@click.command("openapi")
def print_description() -> None:
    """Print the OpenAPI description, as served at /openapi.json."""
    click.echo(json.dumps(describe(load()), indent=2, ensure_ascii=False))


_WORDS = {1: "", 1_000: ", in thousands", 1_000_000: ", in millions"}


@click.command("show")
@click.argument("company")
@click.option(
    "--as-of", type=click.DateTime(["%Y-%m-%d"]), help="Day of the statement as known then; default: today."
)
@click.option("--kind", type=click.Choice(STATEMENT_KINDS), default="income", show_default=True)
@click.option("--period-type", default="FY", show_default=True, help="FY, H1, Q3, ...")
@as_json
def show(company: str, as_of: datetime | None, kind: str, period_type: str, as_json: bool) -> None:
    """Print a statement of COMPANY, by service_id, name, ticker or LEI, as it was known on a day."""
    day = as_of.date() if as_of else now().date()
    try:
        name, rows = asyncio.run(_statement(company, day, kind, period_type))
    except Problem as problem:
        raise OperatorError(problem.detail) from problem
    if as_json:
        print_json(rows)
        return
    _print(name, day, arrange(rows, LINE_ITEMS, "year"))


async def _statement(
    company: str, day: date, kind: str, period_type: str
) -> tuple[str, list[dict[str, Any]]]:
    """The name of the company, and the rows of its statement."""
    with operator_call() as call:
        matches = await ask_rows(call, "search_entities", {"query": company})
        if not matches:
            raise OperatorError(f"no company {company!r} is known in edition {call.edition.id}")
        best = matches[0]
        arguments = {"service_id": best["service_id"], "as_of": day.isoformat()}
        arguments |= {"kind": kind, "period_type": period_type}
        rows = await ask_rows(call, "get_statement", arguments)
        return best["legal_name"] or best["service_id"], rows


def _print(name: str, day: date, table: StatementTable) -> None:
    english = language("en")
    title = f"{name}, as known on {day}"
    if not table.lines:
        click.echo(f"{title}: nothing")
        return
    unit = (table.currency or "") + _WORDS[table.scale]
    headings = ["line item", *(f"{kind} {end}" for end, kind in table.periods)]
    lines = []
    for item, cells in table.lines:
        line = [item.replace("_", " ")]
        for row in cells:
            words = []
            if row is not None:
                words = [english.figure(for_reading(row, table.scale)), unit_beside(row, table)]
            line.append(" ".join(filter(None, [*words, "restated" if row and row["restated"] else ""])))
        lines.append(line)
    click.echo(f"{title} ({unit})")
    print_table(headings, lines, figures=True)


_SECONDS = 30.0
_PARQUET = ".parquet"


@click.command("verify")
@click.argument("answer", metavar="FILE|URL")
@click.option("--key", metavar="VKEY", help="Verifier key of the publisher (`sankofa editions key`).")
@click.option(
    "--since",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="An older checkpoint, or an answer with one: the log may only have grown since.",
)
@click.option(
    "--roots",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Trusted certificates (PEM): one of them must have stamped the checkpoint (RFC 3161).",
)
@click.option(
    "--timestamp",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The stamp. Without it /log/checkpoint.tsr is fetched from the host of the URL.",
)
@click.option("--api-key", envvar="SANKOFA_API_KEY", metavar="KEY", help="Key to fetch the URL with.")
def verify_command(
    answer: str,
    key: str | None,
    since: Path | None,
    roots: Path | None,
    timestamp: Path | None,
    api_key: str | None,
) -> None:
    """Check the rows of an answer that was asked with proof=true, offline, against the log of editions.

    The proof of FILE.parquet is FILE.parquet.proof beside it; that of a URL is fetched from URL.proof.
    Without --key, the keys of SANKOFA_TRUSTED_KEYS count, and then the key of HOME.
    """
    settings = load()
    trusted = settings.verifier_keys() or tuple(one.verifier for one in signers_of(settings.home))
    keys = key or ",".join(one.text for one in trusted)
    if not keys:
        raise click.UsageError("no key is trusted here: name one with --key")
    is_url = answer.startswith(("https://", "http://"))
    if roots is not None and timestamp is None and not is_url:
        raise click.UsageError("name the stamp of the checkpoint with --timestamp")
    when = ""
    try:
        if is_url:
            edition, proof = _verified(httpx.URL(answer), api_key, keys, since)
        else:
            edition = verify(Path(answer), keys, since=since)
            proof = Path(f"{answer}{PROOF}" if answer.endswith(_PARQUET) else answer).read_bytes()
        if roots is not None:
            stamp = timestamp.read_bytes() if timestamp is not None else _fetched_stamp(httpx.URL(answer))
            when = f" and was stamped at {stamped_at(proof, stamp, roots.read_bytes()):%Y-%m-%dT%H:%M:%SZ}"
    except (OSError, httpx.HTTPError) as failure:
        raise OperatorError(f"{Path(answer).name}: {failure}") from failure
    except ValueError as wrong:
        raise click.ClickException(str(wrong)) from None
    click.echo(f"every row is in edition {edition}, which is in the signed log{when}")


def _verified(url: httpx.URL, api_key: str | None, keys: str, since: Path | None) -> tuple[str, bytes]:
    """The answer at an address and its proof. Raises ValueError, OperatorError or httpx.HTTPError."""
    headers = {"X-API-Key": api_key} if api_key else {}
    with httpx.Client(headers=headers, timeout=_SECONDS, follow_redirects=False) as client:
        if not url.path.endswith(_PARQUET):
            content = _fetched(client, url)
            return verify(content, keys, since=since), content
        proof = _fetched(client, url.copy_with(path=url.path + PROOF))
        digest = sha256()
        with client.stream("GET", url) as reply:
            _refuse_unless_ok(reply)
            for chunk in reply.iter_bytes():
                digest.update(chunk)
    return verify_digest(digest.hexdigest(), proof, keys, since=since), proof


def _fetched_stamp(url: httpx.URL) -> bytes:
    with httpx.Client(timeout=_SECONDS, follow_redirects=False) as client:
        return _fetched(client, url.copy_with(path="/log/checkpoint.tsr", query=None))


def _fetched(client: httpx.Client, url: httpx.URL) -> bytes:
    reply = client.get(url)
    _refuse_unless_ok(reply)
    return reply.content


def _refuse_unless_ok(reply: httpx.Response) -> None:
    if reply.status_code != httpx.codes.OK:
        raise OperatorError(f"{reply.url}: answered {reply.status_code}")
