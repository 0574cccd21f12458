"""Commands of the ledger and the vault; `matches` reviews which organisation each party is."""

import csv
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from sankofa.cli.output import as_json, print_json, print_table, progress_bar
from sankofa.cli.process import now
from sankofa.ledger.ingest import Summary, files_under, ingest
from sankofa.ledger.reader import CaptureInfo, without_cycle_collection
from sankofa.ledger.rereading import Replayed, VaultFiles, Withdrawn, replay, withdraw
from sankofa.ledger.store import Ledger, refuse_doubtful_clock
from sankofa.model.days import FOREVER, instant
from sankofa.model.errors import OperatorError
from sankofa.replication.stores import open_store, refuse_where_editions_are_followed
from sankofa.settings import Settings, load
from sankofa.sources.base import Limits
from sankofa.sources.registry import find_source, load_sources
from sankofa.sources.templates import REVIEW_COLUMNS, REVIEWS
from sankofa.vault.store import Received, Vault, Verified, Withdrew


def ingest_files(
    settings: Settings,
    source_id: str,
    paths: Iterable[Path],
    *,
    clock_is_right: bool = False,
    dry_run: bool = False,
) -> Summary:
    """Read files of a source into the ledger, with a progress bar on a terminal.

    With `dry_run` nothing is written: if there is no ledger yet, a temporary one is used.
    """
    source = find_source(settings.home, source_id)
    source.refuse_unless_redistributable()
    paths = list(paths)
    files = files_under(paths)
    in_home = list(settings.home.glob("*"))  # before this command changes any file
    witnesses = [path for path in (*in_home, *files) if not path.name.startswith("ledger.sqlite")]
    with ExitStack() as opened:
        used = settings
        if dry_run and not has_ledger(settings):
            folder = opened.enter_context(TemporaryDirectory(prefix="sankofa-try-"))
            used = replace(settings, home=Path(folder))
        ledger = opened.enter_context(open_ledger(used))
        progress = opened.enter_context(progress_bar(source_id, len(files)))
        opened.enter_context(without_cycle_collection())
        if not clock_is_right:
            refuse_doubtful_clock(now(), ledger.newest_capture(), witnesses)
        return ingest(
            ledger,
            source,
            files,
            rejects_folder=settings.home / "rejects",
            clock=now,
            started=lambda p: progress(p.name),
            limits=Limits.of(settings),
            folders=[path for path in paths if path.is_dir()],
            vault=None if dry_run else open_vault(settings),
            dry_run=dry_run,
        )


def open_vault(settings: Settings) -> Vault | None:
    """The vault; None if it is switched off. Removes files past their retention."""
    if settings.vault == "off":
        return None
    vault = Vault.of(settings)
    vault.drop_expired(now())
    return vault


def withdraw_files(
    settings: Settings, source_id: str, *, capture: int, file_name: str, everywhere: bool, reason: str
) -> Withdrawn:
    """Append a tombstone: the next edition is built as if the file had never been ingested."""
    vault = open_vault(settings)
    source = load_sources(settings.home).get(source_id)
    at = now()

    def journalled(number: int) -> None:
        if vault is not None:
            vault.record_withdrawal(
                Withdrew(instant(at), source_id, number, reason.strip(), capture, file_name, everywhere)
            )

    with open_ledger(settings) as ledger, without_cycle_collection():
        again = None
        if vault is not None and source is not None:
            again = VaultFiles(vault, source, Limits.of(settings))
        return withdraw(
            ledger,
            source_id,
            capture=capture,
            file_name=file_name,
            everywhere=everywhere,
            reason=reason,
            now=at,
            reads_again=again,
            appended=journalled,
        )


def has_ledger(settings: Settings) -> bool:
    """Whether there is a ledger, or a database server for it."""
    folder = settings.datastore_folder()
    return folder is None or (folder / "ledger.sqlite").is_file()


def open_ledger(settings: Settings, *, create: bool = True) -> closing[Ledger]:
    """The ledger of the settings.

    Without `create`, raises OperatorError if there is none.
    """
    refuse_where_editions_are_followed(settings)
    if not create and not has_ledger(settings):
        raise OperatorError(f"there is no ledger in HOME ({settings.home})")
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return closing(Ledger(open_store(settings), settings.gate_key(), now))


@click.command("ingest")
@click.argument("source")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Exit non-zero when a row was rejected.")
@click.option(
    "--clock-is-right", is_flag=True, help="Accept the clock although it is far from the newest capture."
)
@click.option("--dry-run", is_flag=True, help="Read, check and count everything, and store nothing.")
def ingest_command(
    source: str, paths: tuple[Path, ...], strict: bool, clock_is_right: bool, dry_run: bool
) -> None:
    """Read files (plain, .gz, .zip, or folders of them) of a registered SOURCE into the ledger.

    Exits with 1 if a file has another format, or none of its rows was accepted.
    """
    summary = ingest_files(load(), source, paths, clock_is_right=clock_is_right, dry_run=dry_run)
    for reason in summary.reasons:
        click.echo(f"rejected: {reason}", err=True)
    for warning in summary.first_warnings:
        click.echo(f"Warning: {warning}", err=True)
    if summary.warnings:
        click.echo(f"{source}: warnings {summary.warnings}", err=True)
    empty = [f"{name}: it has no rows" for name in summary.empty]
    for failure in (*summary.failures, *empty):
        click.echo(f"Error: {failure}", err=True)
    for note in summary.notes:
        click.echo(note)
    click.echo(f"{summary.line()}{'; nothing was stored (--dry-run)' if dry_run else ''}")
    if summary.failures or empty or (strict and summary.counts.rejected):
        sys.exit(1)


@click.command("withdraw")
@click.argument("source")
@click.argument("file", required=False)
@click.option("--capture", type=click.IntRange(1), metavar="ID", help="One capture, by its number.")
@click.option("--file", "file_name", metavar="NAME", help="The file of this name; the same as FILE.")
@click.option("--everywhere", is_flag=True, help="Also withdraw the kept editions that hold it.")
@click.option("--reason", required=True, metavar="TEXT", help="The reason; only `publish` prints it.")
def withdraw_command(
    source: str, file: str | None, capture: int | None, file_name: str | None, everywhere: bool, reason: str
) -> None:
    """Build the next edition as if a SOURCE, or one FILE or capture of it, had never been ingested.

    If you withdraw one FILE, rows that another file of the source also has stay.
    """
    if sum(choice is not None for choice in (file, capture, file_name)) > 1:
        raise click.UsageError("FILE, --capture and --file exclude each other")
    withdrawn = withdraw_files(
        load(), source, capture=capture or 0, file_name=file or file_name or "",
        everywhere=everywhere, reason=reason,
    )  # fmt: skip
    for one in withdrawn.files:
        click.echo(f"withdrawn {source} capture {one.capture_id}: {one.file_name}")
    for name in withdrawn.not_read_again:
        click.echo(
            f"{name}: ingested later, and its bytes are not in the vault; rows that it shares with the "
            "withdrawn file are missing until you ingest it again",
            err=True,
        )
    also_withdrawn = "; it also withdraws the kept editions that hold it" if everywhere else ""
    click.echo(
        f"{source}: withdrawn {len(withdrawn.files)}, still valid {withdrawn.valid}; "
        f"`sankofa publish` builds the edition without it{also_withdrawn}"
    )


@click.group("ledger")
def ledger_commands() -> None:
    """Inspect and verify the ledger."""


@ledger_commands.command()
def verify() -> None:
    """Check that no row has changed since it was appended. If one has, name its capture and exit with 1."""
    with open_ledger(load(), create=False) as opened:
        checked = opened.verify()
    click.echo(f"captures {checked.captures}, rows {checked.rows}: none changed since it was appended")


@ledger_commands.command()
@click.argument("source", required=False)
@as_json
def captures(source: str | None, as_json: bool) -> None:
    """List files that are not withdrawn, of one SOURCE or all: number, source, instant, file, SHA-256."""
    current = load()
    captured: dict[int, CaptureInfo] = {}
    unchanged: dict[int, CaptureInfo] = {}
    if has_ledger(current):
        with open_ledger(current, create=False) as opened:
            valid = opened.without(())
            captured, unchanged = valid.captures(), valid.unchanged_files()
    listed = [
        {
            "capture": number,
            "source": capture.source_id,
            "observed_at": capture.observed_at,
            "file": capture.file_name,
            "sha256": capture.content_sha256,
            "unchanged": number in unchanged,
        }
        for number, capture in sorted((captured | unchanged).items())
        if source in (None, capture.source_id)
    ]
    if as_json:
        print_json(listed)
        return
    headings = ("capture", "source", "observed_at", "file")
    lines = [
        (*(str(row[name]) for name in headings), "unchanged" if row["unchanged"] else "") for row in listed
    ]
    print_table((*headings, ""), lines)


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
    help="Unresolved parties; parties resolved by a similar name; parties that were confirmed or refused.",
)
@as_json
def review(country: str | None, state: str, as_json: bool) -> None:
    """List parties, each with the organisations that it may be, the most alike first."""
    country_code = (country or "").upper()
    listed = [p for p in _pairs(load()) if p.state == state and country_code in ("", p.country)]
    listed.sort(key=lambda pair: (-pair.score, pair.party, pair.service_id))
    if as_json:
        print_json([pair._asdict() for pair in listed])
        return
    lines = [[*map(str, pair[:3]), f"{pair.score:.2f}", *map(str, pair[4:-1])] for pair in listed]
    print_table(_Pair._fields[:-1], lines)


def _decision(name: str, verdict: str, summary: str) -> None:
    @matches.command(name, help=summary)
    @click.argument("match")
    @click.argument("service_id")
    def command(match: str, service_id: str) -> None:
        settings = load()
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
                csv.writer(stream).writerows([REVIEW_COLUMNS, (match, service_id, verdict, decided_at)])
            ingest_files(settings, REVIEWS, [path])
        click.echo(
            f"match {match} with {service_id}: {verdict}; `sankofa publish` builds the edition with it"
        )


_decision("confirm", "confirmed", "Confirm that a party is this organisation.")
_decision("refuse", "refused", "Record that a party is not this organisation.")
_decision("undo", "open", "Undo a decision about a party and an organisation.")


def _pairs(settings: Settings) -> Iterator[_Pair]:
    """Every party that no identifier resolves, with the organisations of similar names.

    Only parties that pass the gate: persons are left out, whatever was decided before.
    """
    # A build takes as long to import as everything that `ingest` needs.
    from sankofa.edition.write.context import BuildContext
    from sankofa.ledger.matching import PartyMatcher

    with open_ledger(settings, create=False) as ledger:
        context = BuildContext(ledger, load_sources(settings.home))
        if not context.captures:
            return
        threshold = settings.match_threshold / 100
        names = {entity.service_id: entity.legal_name or "" for entity in context.entities}
        matcher = PartyMatcher(context.entities, context.captures, threshold=threshold)
        listed: set[tuple[str, str]] = set()
        for party in context.parties:
            question = matcher.ask(party.name, party.country, party.identifiers)
            match = question.on(FOREVER - 1) if party.org_evidence is not None else None
            if match is None or match.method in ("lei", "identifier", "name"):
                continue
            key = context.reviews.key(party.name, party.country)
            for score, service_id in question.candidates():
                if (key, service_id) in listed:
                    continue
                listed.add((key, service_id))
                verdict = context.reviews.verdict(party.name, party.country, service_id)
                state = "decided" if verdict != "open" else "resolved" if match.service_id else "waiting"
                yield _Pair(
                    key, party.name, party.country, score, service_id, names[service_id], verdict, state
                )


_NAMED_AT_MOST = 10


class ReplayOutcome(NamedTuple):
    replayed: Replayed
    differences: list[str]
    """The differences from the ledger in HOME, if there is one."""
    result: str


def has_vault(settings: Settings) -> bool:
    return (settings.home / "vault" / "journal.jsonl").exists()


def replay_vault(settings: Settings, into: Path | None) -> ReplayOutcome:
    """Rebuild the ledger into a folder, into the empty ledger of HOME, or separately for a comparison."""
    vault = Vault.of(settings)
    vault.drop_expired(now())
    if not vault.events():
        raise OperatorError(f"there is no vault in HOME ({settings.home})")
    if into is not None:
        with _new_home(settings, into) as ledger:
            return ReplayOutcome(_replay(settings, vault, ledger), [], f"rebuilt in {into}")
    with open_ledger(settings) as ledger:
        if not ledger.position():
            return ReplayOutcome(_replay(settings, vault, ledger), [], "the ledger of HOME is rebuilt")
        with (
            TemporaryDirectory(prefix=".replay-", dir=settings.home) as folder,
            _new_home(settings, Path(folder) / "home") as rebuilt,
        ):
            replayed = _replay(settings, vault, rebuilt, until=ledger.position())
            replayed = replayed._replace(missing=_missing(vault, ledger, replayed.missing))
            differences = _differences(ledger, rebuilt, replayed)
    same = "differs from the ledger of HOME" if differences else "equal to the ledger of HOME"
    if replayed.missing and not differences:
        same += ", as far as its bytes are in the vault"
    return ReplayOutcome(replayed, differences, same)


def _missing(vault: Vault, ledger: Ledger, missing: dict[str, int]) -> dict[str, int]:
    """Files without stored bytes, by source; includes files ingested before there was a vault."""
    journalled = {(e.source, e.sha256) for e in vault.events() if isinstance(e, Received)}
    counted = Counter(missing)
    for capture in ledger.without(()).captures().values():
        if (capture.source_id, capture.content_sha256) not in journalled:
            counted[capture.source_id] += 1
    return dict(sorted(counted.items()))


def _replay(settings: Settings, vault: Vault, ledger: Ledger, until: int | None = None) -> Replayed:
    events = len(vault.events())
    with progress_bar("replay", events) as started, without_cycle_collection():
        return replay(vault, ledger, load_sources(settings.home), Limits.of(settings), started, until=until)


def _new_home(settings: Settings, folder: Path) -> closing[Ledger]:
    """A ledger on files, with the gate secret and the sources of this HOME."""
    if folder.exists() and any(folder.iterdir()):
        raise OperatorError(f"{folder}: is not empty")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("gate-secret", "sources.toml"):
        if (settings.home / name).exists():
            shutil.copyfile(settings.home / name, folder / name)  # with the permissions of a new file
    own = replace(settings, home=folder, datastore="sqlite:")
    return closing(Ledger(open_store(own), settings.gate_key(), now))


def _differences(ledger: Ledger, rebuilt: Ledger, replayed: Replayed) -> list[str]:
    """The captures whose rows differ. Sources that could not be rebuilt are not compared."""
    passed_over = set(replayed.missing)
    stored, again = ledger.contents(), rebuilt.contents()
    differences = []
    for number in sorted(stored.keys() | again.keys()):
        source = (stored.get(number) or again[number]).source_id
        if source not in passed_over and stored.get(number) != again.get(number):
            differences.append(f"capture {number} of {source}: differs from the vault")
    if len(differences) > _NAMED_AT_MOST:
        differences[_NAMED_AT_MOST:] = [f"and {len(differences) - _NAMED_AT_MOST} more"]
    return differences


@click.group()
def vault() -> None:
    """Verify the stored source files, and rebuild the ledger from them."""


@vault.command("verify")
def verify_command() -> None:
    """Check every stored byte. If a file differs from what was ingested, name it and exit with 1."""
    settings = load()
    verified = Verified(0, 0, 0, 0, 0, [])
    if has_vault(settings):
        vault = Vault.of(settings)
        vault.drop_expired(now())
        verified = vault.verify()
    for fault in verified.faults:
        click.echo(f"damaged: {fault}", err=True)
    notes = [f"events {verified.events}, files {verified.objects}, bytes {verified.size}"]
    if verified.hash_only:
        notes.append(f"{verified.hash_only} kept as hashes only")
    if verified.unreadable:
        notes.append(f"{verified.unreadable} encrypted, compared as stored (SANKOFA_VAULT_KEY is not set)")
    result = f"damaged {len(verified.faults)}" if verified.faults else "none changed since it was ingested"
    click.echo(f"{', '.join(notes)}: {result}")
    if verified.faults:
        sys.exit(1)


@vault.command("replay")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Create a new HOME there, on files; without it, fill the empty ledger of HOME.",
)
def replay_command(into: Path | None) -> None:
    """Rebuild the ledger from the vault alone.

    If HOME already has a ledger, the rebuilt one is only compared with it; exit code 1 if they differ.
    """
    outcome = replay_vault(load(), into)
    for source, files in outcome.replayed.missing.items():
        click.echo(f"not rebuilt: {source}: {files} files whose bytes are not in the vault")
    for failure in (*outcome.replayed.failures, *outcome.differences):
        click.echo(f"Error: {failure}", err=True)
    click.echo(f"captures {outcome.replayed.captures}: {outcome.result}")
    if outcome.replayed.failures or outcome.differences:
        sys.exit(1)
