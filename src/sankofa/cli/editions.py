"""`sankofa editions`: list, compare, verify and sign editions, and go back to an earlier one."""

import asyncio
import hashlib
import shutil
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import click
import msgspec

from sankofa.cli.ledger import open_ledger
from sankofa.cli.output import as_json, print_json, print_table
from sankofa.edition.format.keys import (
    holds_withdrawn,
    last_capture,
    ledger_position,
    may_hold,
    may_name_a_person,
)
from sankofa.edition.read.changes import COUNTED, FEEDS, Feed, diff
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.edition_manager import open_edition
from sankofa.edition.read.row_proofs import RowTree, decode_row_trees, hashed, hashing, row_tree, state_of
from sankofa.edition.write.context import described, left_out_of
from sankofa.edition.write.derived_parts import code_digest
from sankofa.edition.write.publish import publish, tightened_since
from sankofa.edition.write.worker_processes import Job, WorkerProcesses
from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_log import NO_ENTRIES, LoggedEdition, LoggedErasure, checked_log, row_trees_path
from sankofa.engines.object_store import ObjectError, open_source
from sankofa.engines.private_files import make_private_folder, operator_errors, replace_file
from sankofa.engines.publication import (
    KEY_FILE,
    NOTE,
    read_signers,
    signers_of,
    signers_to_sign,
    write_signers,
)
from sankofa.engines.record_file import RecordFile, pack_record
from sankofa.model.days import instant
from sankofa.model.errors import EditionError, OperatorError, SettingsError, StoreUnavailable
from sankofa.model.signed_notes import NotTrusted, new_signer, note_text
from sankofa.operations.contract import KNOWN_BY
from sankofa.replication.remote_log import cosigned, parse_witnesses, stamped, take_log
from sankofa.replication.stores import (
    editions_folder,
    open_fresh_store,
    open_store,
    refuse_where_editions_are_followed,
)
from sankofa.settings import Settings, load
from sankofa.sources.registry import load_sources

_TREE: Final = "tree"
_STATE: Final = "state"


class EditionLogWriter:
    """See `edition.write.publish.LogWriter`."""

    def __init__(
        self, settings: Settings, store: Datastore, processes: WorkerProcesses | None = None
    ) -> None:
        """`processes` hash rows in parallel if they run already."""
        self._settings = settings
        self._store = store
        self._processes = processes

    def hash_rows(self, edition: str) -> None:
        path = row_trees_path(self._store.edition_folder(edition))
        if path.exists():
            return
        secret = self._settings.row_secret(create=True) or b""
        folder = self._settings.home / "derived" / "leaves"
        with operator_errors(path):
            make_private_folder(path.parent)
            make_private_folder(folder)
            of_code = hashlib.blake2b(code_digest(), key=secret, digest_size=8).hexdigest()
            trees = self._trees(edition, secret, folder, of_code)
            for leftover in folder.glob("*"):
                if not leftover.name.endswith(of_code):
                    leftover.unlink()
            replace_file(path, msgspec.msgpack.encode(trees))

    def _trees(self, name: str, secret: bytes, folder: Path, suffix: str) -> dict[str, RowTree]:
        trees: dict[str, bytes] = {}
        states: dict[str, bytes] = {}
        stored = RecordFile(folder / f"trees.{suffix}")
        with closing(open_edition(self._store, name)) as edition, stored.writing():
            for feed in sorted(FEEDS, key=lambda feed: -edition.manifest["rows"].get(feed.kind, 0)):
                states[feed.dataset] = state = _state(stored, edition, feed)
                if state and (known := stored.carry(feed.dataset, state)):
                    trees[feed.dataset] = known.part(_TREE)
            alone = partial(hashed, edition, secret, folder, suffix)
            anew = [dataset for dataset in states if dataset not in trees]
            if self._processes is None:
                results: Iterable[tuple[str, bytes]] = map(alone, anew)
            else:
                job: Job = partial(hashing, *self._store.sealed_folder(name), secret, folder, suffix)
                results = self._processes.derive(job, alone, anew, lambda dataset: 0, at_once=1)
            for dataset, tree in results:
                trees[dataset] = tree
                stored.put(dataset, states[dataset], pack_record({_TREE: tree}))
        return {feed.dataset: msgspec.msgpack.decode(trees[feed.dataset], type=RowTree) for feed in FEEDS}

    def update(self, *, attest: bool = True) -> None:
        store = self._store
        if (publication := store.publication()) is None:
            return
        logged = store.log.tree().decoded
        witnesses = parse_witnesses(self._settings.log_witnesses) if attest else ()
        entries: list[LoggedEdition | LoggedErasure] = []
        current = publication.current
        if current not in {entry.edition for entry in logged if isinstance(entry, LoggedEdition)}:
            with suppress(
                EditionError, OSError, msgspec.DecodeError
            ):  # a damaged edition must be published again
                self.hash_rows(current)
                trees = decode_row_trees(row_trees_path(store.edition_folder(current)).read_bytes())
                rows = {name: _logged_rows(tree) for name, tree in trees.items()}
                at = publication.written_at.removesuffix("+00:00") + "Z"
                entries.append(LoggedEdition(current, at, publication.editions[current], rows))
        erased = {name for entry in logged if isinstance(entry, LoggedErasure) for name in entry.editions}
        if new := sorted(store.withdrawn() - erased - {current}):
            entries.append(LoggedErasure(instant(datetime.now(UTC)), new))
        with store.exclusive("switch"):
            if store.publication() != publication or store.log.tree().decoded != logged:
                return  # another command changed them and updates the log
            signers = store.signers()
            store.log.append(entries, signers, lambda note, leaves: cosigned(note, leaves, witnesses))
            if attest:
                self._stamp()
            store.log.list_row_trees(store.list_editions().editions, signers)
        if entries or witnesses or self._settings.log_timestamp_url:
            store.share_log()

    def _stamp(self) -> None:
        """Ask the authority to stamp a checkpoint that has no stamp."""
        log, address = self._store.log, self._settings.log_timestamp_url
        checkpoint = log.checkpoint()
        if not address or checkpoint is None or log.stamp() is not None:
            return
        if (stamp := stamped(note_text(checkpoint), address)) is not None:
            log.take_stamp(stamp)


def _state(stored: RecordFile, edition: Edition, feed: Feed) -> bytes:
    """`state_of`, as the last publication computed it if the parts are the same."""
    name = f"{feed.dataset} state"
    parts = hashlib.blake2b(digest_size=16)
    for part in edition.manifest["parts"]:
        if feed.kind in part["kinds"]:
            parts.update(part["sha256"].encode())
    if known := stored.carry(name, parts.digest()):
        return known.part(_STATE)
    state = asyncio.run(state_of(edition, feed))
    stored.put(name, parts.digest(), pack_record({_STATE: state}))
    return state


def _logged_rows(tree: RowTree) -> dict[str, Any]:
    """The part of an entry about the rows of a dataset."""
    return {"count": tree.count, "root": b64encode(tree.root).decode()}


_FOLDER = ".rebuilding-"


def _rebuild(
    settings: Settings, entry: LoggedEdition, secret: bytes, into: Path | None
) -> tuple[dict[str, dict[str, Any]], dict[str, int]]:
    """Builds a logged edition again, and keeps it in a HOME of its own if one is given.

    Returns the rows of each dataset as an entry has them, and how many withdrawals and people recognised
    since then it leaves out.
    """
    position = ledger_position(entry.edition)
    with _folder(settings.home, into) as folder, open_ledger(settings, create=False) as ledger:
        left_out = {
            "withdrawals": sum(one.number > position for one in ledger.withdrawals()),
            "persons": sum(number > position for (number,) in ledger.rows("SELECT capture_id FROM withheld")),
        }
        ledger.go_back_to(position)
        own = replace(settings, home=folder, datastore="sqlite:", editions="", trusted_keys="")
        facts = {"edition": entry.edition, "published_at": entry.published_at, "left_out": left_out}
        with closing(open_store(own)) as built:
            manifest = publish(
                built,
                ledger,
                0,
                sources=load_sources(settings.home),
                despite_floors=True,
                match_threshold=settings.match_threshold / 100,
                extras={"rebuilt": facts},
            )
            trees = asyncio.run(_trees(built, manifest["edition"], secret))
    return {name: _logged_rows(trees[name]) for name in entry.rows}, left_out


def _secret(settings: Settings, store: Datastore, edition: str) -> bytes:
    """The key of its salts: the edition's own if it is stored, else that of HOME."""
    path = row_trees_path(store.edition_folder(edition))
    trees = decode_row_trees(path.read_bytes()) if path.exists() else {}
    stored = next((tree.secret for tree in trees.values()), b"")
    if not (secret := stored or settings.row_secret()):
        raise OperatorError("row-secret in HOME: missing; restore it from a backup")
    return secret


async def _trees(store: Datastore, name: str, secret: bytes) -> dict[str, RowTree]:
    with closing(open_edition(store, name)) as edition:
        return {feed.dataset: await row_tree(edition, feed, secret) for feed in FEEDS}


@contextmanager
def _folder(home: Path, into: Path | None) -> Iterator[Path]:
    """The folder to keep, or a private one in HOME. Folders left by killed commands are removed."""
    for leftover in home.glob(f"{_FOLDER}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    if into is not None:
        make_private_folder(into)
        yield into
        return
    folder = Path(mkdtemp(prefix=_FOLDER, dir=home))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def verify_editions(settings: Settings) -> Iterator[tuple[str, str | None]]:
    """Each kept edition, and what is wrong with it. Raises OperatorError if nothing is signed."""
    with closing(open_fresh_store(settings)) as store:
        try:
            if store.publication() is None:
                raise OperatorError("nothing is signed here yet: run `sankofa publish`")
            listed = store.list_editions()
        except StoreUnavailable as failure:
            raise OperatorError(failure.cause) from failure
        for edition in listed.editions:
            try:
                store.open(edition, check_all=True).close()
            except EditionError as failure:
                yield edition, str(failure).removeprefix(f"edition {edition}: ")
            else:
                yield edition, None
        if listed.current not in listed.editions:
            yield str(listed.current), "is current, but missing"
        yield "log", _wrong_with_log(store)


def _wrong_with_log(store: Datastore) -> str | None:
    """How the log differs from the signed log or from the kept editions; None if it does not."""
    publication, checkpoint = store.publication(), store.log.checkpoint()
    if publication is None or (checkpoint is None and not store.log.tree().entries):
        return None  # published by an older version
    try:
        tree = checked_log(store.log.tree().bundle(), checkpoint or b"", publication.verifiers(), NO_ENTRIES)
        logged = [entry for entry in tree.decoded if not isinstance(entry, LoggedErasure)]
        names = [entry.edition for entry in logged]
        for edition in publication.editions:  # older versions hashed no rows and wrote no log
            if edition not in names and row_trees_path(store.edition_folder(edition)).exists():
                return f"it lacks edition {edition}"
        for entry in logged:
            if entry.edition not in publication.editions:
                continue
            if publication.editions[entry.edition] != entry.manifest_sha256:
                return f"its manifest of {entry.edition} differs"
            path = row_trees_path(store.edition_folder(entry.edition))
            trees = decode_row_trees(path.read_bytes()) if path.exists() else {}
            for dataset, own in trees.items():
                if _logged_rows(own) != entry.rows[dataset]:
                    return f"the hashes of {dataset} of {entry.edition} differ"
    except (NotTrusted, StoreUnavailable, OSError, KeyError, msgspec.DecodeError) as failure:
        return str(failure)
    return None


def _withdrawn(settings: Settings, store: Datastore) -> dict[str, str]:
    """Editions with rows that may no longer be redistributed or were withdrawn everywhere, with reasons."""
    sources = load_sources(settings.home)
    permitted = {name for name, source in sources.items() if source.commercial_redistribution}
    with open_ledger(settings) as ledger:
        left_out = [omission.source for omission in left_out_of(ledger, sources)]
        withdrawals = [described(withdrawal) for withdrawal in ledger.withdrawals()]
    withdrawn = {}
    for name in store.list_editions().editions:
        with suppress(EditionError), closing(open_edition(store, name)) as edition:
            refused = set(edition.manifest.get("sources", left_out)) - permitted
            if may_hold(edition.manifest, refused):
                withdrawn[name] = (
                    f"it holds data that may no longer be redistributed: {', '.join(sorted(refused))}"
                )
            elif holds_withdrawn(name, edition.manifest, withdrawals):
                withdrawn[name] = "it holds data that was withdrawn everywhere"
            elif named := tightened_since(store, name, sources):
                withdrawn[name] = (
                    f"some of its rows need a key today, but did not then: {', '.join(sorted(named))}"
                )
    return withdrawn


def _person_captures(store: Datastore) -> Iterator[int]:
    """For each readable edition, its last capture that proved a party to be a natural person."""
    for name in store.list_editions().editions:
        with suppress(EditionError), closing(open_edition(store, name)) as edition:
            yield edition.last_person_capture


@click.group(invoke_without_command=True)
@as_json
@click.pass_context
def editions(context: click.Context, as_json: bool) -> None:
    """List the published editions. Requests for a withdrawn one get 410: its data may no longer be shown."""
    if context.invoked_subcommand is not None:
        return
    store = open_fresh_store(load())
    listed = store.list_editions()
    withdrawn = store.withdrawn() - {listed.current}
    if as_json:
        states = [(name, name == listed.current, name in withdrawn) for name in listed.editions]
        print_json([dict(zip(("edition", "current", "withdrawn"), state, strict=True)) for state in states])
        return
    lines = []
    for name in listed.editions:
        state = "current" if name == listed.current else "withdrawn" if name in withdrawn else ""
        lines.append((name, f"{last_capture(name):%Y-%m-%d %H:%M}", state))
    print_table(("edition", "last capture (UTC)", "state"), lines)


@editions.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
@click.option(
    "--examples", default=5, show_default=True, type=click.IntRange(0), help="Keys to show of each dataset."
)
def diff_editions(before: str, after: str, as_json: bool, examples: int) -> None:
    """Compare edition A with edition B: rows added, changed, removed (withheld now, or no longer served), and
    restated (figures that a later vintage replaced)."""
    store = open_fresh_store(load())
    stored = store.list_editions().editions
    for edition in (before, after):
        if edition not in stored:
            raise EditionError(f"no edition {edition!r} is kept: see `sankofa editions`")
    opened = closing(open_edition(store, before)), closing(open_edition(store, after))
    with closing(store), opened[0] as old, opened[1] as new:
        differences = asyncio.run(diff(old, new, examples))
    if as_json:
        document = {"before": before, "after": after, "datasets": differences}
        click.echo(msgspec.json.encode(document).decode())
        return
    for dataset, changed in differences.items():
        counts = ", ".join(f"{name} {getattr(changed, name)}" for name in COUNTED)
        click.echo(f"{dataset}: {counts}")
        for example in changed.examples:
            click.echo(f"  {example['change']:<8}  {' | '.join(example['key'])}")
    if not differences:
        click.echo("no row differs")


@editions.command()
@click.argument("edition", metavar="ID")
def rollback(edition: str) -> None:
    """Go back to a kept edition."""
    settings = load()
    refuse_where_editions_are_followed(settings)
    store = open_store(settings)
    log = EditionLogWriter(settings, store)
    log.update()
    with store.exclusive("switch"):  # so that no publisher removes it
        if edition not in store.list_editions().editions:
            raise EditionError(f"no edition {edition!r} is kept: see `sankofa editions`")
        if any(may_name_a_person(edition, capture) for capture in _person_captures(store)):
            raise EditionError(
                f"{edition} is withdrawn: it may name somebody later proven to be a natural person"
            )
        withdrawn = _withdrawn(settings, store)
        if edition in withdrawn:
            raise EditionError(f"{edition} is withdrawn: {withdrawn[edition]}")
        # Check the list, too: the newer edition that withdrew it may be damaged or gone by now.
        if edition in store.withdrawn() - {store.list_editions().current}:
            raise EditionError(
                f"{edition} is withdrawn by a later edition: it may name a natural person, or hold data that "
                "may not be redistributed; `sankofa publish` builds one without it"
            )
        open_edition(store, edition, check_all=True).close()
        # Withdrawn editions are removed: an older edition cannot know what a newer one left out.
        store.set_current_and_prune(
            [name for name in store.list_editions().editions if name not in withdrawn], edition
        )
    log.update()
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
    settings = load()
    refuse_where_editions_are_followed(settings)
    signers = signers_of(settings.home)
    if not signers and not rotate:
        raise OperatorError(f"HOME has no {KEY_FILE} yet: the first `sankofa publish` creates it")
    if add is not None:
        if not (added := read_signers(add)):
            raise OperatorError(f"{add}: no such file")
        signers = tuple(dict.fromkeys((*signers, *added)))
    if rotate or retire or add is not None:  # a change of keys is signed at once
        store = open_store(settings)
        if rotate and signers:
            signers = (new_signer(signers[0].verifier.name), *signers)
        elif rotate:  # the key was lost: its signatures no longer count
            (editions_folder(settings) / NOTE).unlink(missing_ok=True)
            signers = signers_to_sign(settings.home, signed_before=False)
        write_signers(settings.home, signers[:1] if retire else signers)
        with store.exclusive("switch"):
            listed = store.list_editions()
            if listed.current is not None:
                store.set_current_and_prune(listed.editions, listed.current)
        EditionLogWriter(settings, store).update()
    click.echo(signers[0].verifier.text)


@editions.command("verify")
def verify() -> None:
    """Compare every kept edition with what a trusted key signed: note, manifests, all files and the log."""
    broken = 0
    for edition, complaint in verify_editions(load()):
        click.echo(f"{edition}  {complaint or 'signed and whole'}")
        broken += complaint is not None
    if broken:
        raise click.ClickException(
            f"{broken} of them must not be served: `sankofa publish` builds them again"
        )


@editions.command("take-log")
@click.argument("address", metavar="ADDRESS")
def take_log_command(address: str) -> None:
    """Copy the log of editions from ADDRESS: a destination of `sankofa push`, or https://HOST of a node.

    For a HOME restored from an older backup. Entries that only HOME has are appended.
    """
    settings = load()
    refuse_where_editions_are_followed(settings)
    store = open_store(settings)
    try:
        with closing(open_source(address)) as source:
            count = take_log(store, source, replacing=True)
    except (ObjectError, NotTrusted, SettingsError) as failure:
        raise OperatorError(f"cannot copy the log: {failure}") from failure
    EditionLogWriter(settings, store).update()
    click.echo(f"copied {count} entries; the log now has {len(store.log.tree().entries)}")


@editions.command("rebuild")
@click.argument("moment", metavar="INSTANT")
@click.option(
    "--into",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the edition in this new HOME, for `SANKOFA_HOME=FOLDER sankofa serve`.",
)
def rebuild_edition(moment: str, into: Path | None) -> None:
    """Build the edition that was the newest at INSTANT from the ledger, and compare it with the log.

    Rows withdrawn since then and people recognised since then are left out, and its manifest counts them
    (`rebuilt`). The edition is not stored without --into.
    """
    now = datetime.now(UTC)
    try:
        then = KNOWN_BY.kind.read(moment, now.date())
    except ValueError as failure:
        raise click.BadParameter(str(failure), param_hint="INSTANT") from None
    if then > now:
        raise click.BadParameter("it is in the future", param_hint="INSTANT")
    if into is not None and into.exists() and any(into.iterdir()):
        raise OperatorError(f"{into} is not empty: name a new folder")
    settings = load()
    with closing(open_fresh_store(settings)) as store:
        entries = [one for one in store.log.tree().decoded if isinstance(one, LoggedEdition)]
        published = [one for one in entries if datetime.fromisoformat(one.published_at) <= then]
        if not published:
            raise OperatorError("the log has no edition that was published by then")
        entry = published[-1]
        secret = _secret(settings, store, entry.edition)
    rows, left_out = _rebuild(settings, entry, secret, into)
    different = {name: logged["count"] for name, logged in entry.rows.items() if rows[name] != logged}
    for name in rows:
        logged = f"logged {different[name]}" if name in different else "as logged"
        click.echo(f"{name}: {rows[name]['count']} rows, {logged}")
    if excused := any(left_out.values()):
        withdrawals, persons = left_out.values()
        click.echo(f"left out: {withdrawals} withdrawals and {persons} natural persons proven since")
    # Rows that were left out do not explain rows that are new.
    unexplained = [name for name in different if not excused or rows[name]["count"] > different[name]]
    if unexplained:
        raise click.ClickException(
            f"{', '.join(unexplained)}: differs from edition {entry.edition} in the log. Another "
            "version, sources.toml or setting may have built it, or the ledger was changed "
            "(`sankofa ledger verify`)"
        )
    same = "except for the rows left out" if different else "the same rows and roots"
    click.echo(f"edition {entry.edition} was rebuilt from the ledger: {same}")
