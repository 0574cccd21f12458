"""Build, check, switch: the next edition is invisible until every check has passed."""

import asyncio
import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from sankofa.edition.format import keys
from sankofa.edition.write.checks import refuse_rows
from sankofa.edition.write.context import BuildContext, with_reasons
from sankofa.edition.write.dataset import datasets, reads_macro
from sankofa.edition.write.reuse import BuildRecord
from sankofa.edition.write.tables import tables
from sankofa.edition.write.worker_processes import WorkerProcesses
from sankofa.edition.write.writer import DatasetWriter, Reuse
from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_log import row_trees_path
from sankofa.ledger.matching import THRESHOLD
from sankofa.ledger.reader import without_cycle_collection
from sankofa.ledger.store import Ledger
from sankofa.model.errors import CheckFailed, EditionError, OperatorError, SankofaError, StoreUnavailable
from sankofa.model.provenance import KEYED_CLASSES
from sankofa.sources.registry import Source


class LogWriter(Protocol):
    def hash_rows(self, edition: str) -> None:
        """Hash the rows of an edition that is about to be published. Raises EditionError."""

    def update(self, *, attest: bool = True) -> None:
        """Append missing entries about the store's editions to the log, and have others attest its
        checkpoint."""


def publish(
    store: Datastore,
    ledger: Ledger,
    keep: int,
    progress: Callable[[str], None] = lambda kind: None,
    *,
    sources: Mapping[str, Source] | None = None,
    despite_floors: bool = False,
    issuer_cache: Path | None = None,
    processes: WorkerProcesses | None = None,
    match_threshold: float = THRESHOLD,
    waiting: Callable[[], None] = lambda: None,
    log: LogWriter | None = None,
    extras: Mapping[str, object] = MappingProxyType({}),
) -> dict[str, Any]:
    """Build the next edition from the ledger, check it, and switch to it. Returns its manifest.

    `issuer_cache` is a folder for results that the next build may reuse; `processes` derive issuers and macro
    columns, and end with it. One publication runs at a time: `waiting` is called while another runs, and the
    ledger is read after it. `log` records the edition; `extras` go into its manifest. Raises EditionError if
    the pointer would move back, or a rollback moved it meanwhile.
    """
    with store.exclusive("publish", waiting), without_cycle_collection(), processes or nullcontext():
        if log is not None:
            log.update(attest=False)  # the last publication may have been killed before this
        before = store.list_editions().current
        with ledger.verified_snapshot():
            context = BuildContext(
                ledger,
                sources,
                despite_floors=despite_floors,
                issuer_cache=issuer_cache,
                processes=processes,
                match_threshold=match_threshold,
                extras=extras,
            )
            manifest = _build(store, context, progress)
            del context  # before garbage collection resumes, which would scan all of it
        store.open(
            manifest["edition"], check_all=True
        ).close()  # refuses an edition that did not reach the disk whole
        if log is not None:
            log.hash_rows(manifest["edition"])
        with store.exclusive("switch"):
            current = store.list_editions().current
            try:
                _refuse_to_move_back(manifest["edition"], before, current)
            except EditionError:
                if manifest["edition"] not in (edition for _, edition in store.log.published()):
                    # The edition was never current, so the log has no entry; `rollback` hashes its rows
                    # again.
                    row_trees_path(store.edition_folder(manifest["edition"])).unlink(missing_ok=True)
                if current is not None:  # signed, so that `rollback` may serve it
                    stored = store.list_editions().editions
                    store.set_current_and_prune([*stored, manifest["edition"]], current)
                raise
            store.withdraw(_withdrawn_by(store, manifest, sources or {}))
            switch(store, manifest["edition"], keep)
        if log is not None:
            log.update()
    return manifest


def count_parts() -> int:
    """Number of times that `publish` calls `progress`."""
    return len(datasets()) + len(tables())


def _withdrawn_by(store: Datastore, manifest: Mapping[str, Any], sources: Mapping[str, Source]) -> list[str]:
    """Stored editions that may not be served instead of this one."""
    refused = [omission["source"] for omission in manifest.get("left_out", ())]
    withdrawals = manifest.get("withdrawals", ())
    others = [name for name in store.list_editions().editions if name != manifest["edition"]]
    tightened = {name: tightened_since(store, name, sources) for name in others}
    now_keyed = frozenset[str]().union(*(named for named in tightened.values() if named))
    withdrawn = []
    for name in others:
        try:
            older = store.manifest(name)
            is_open = bool(tightened[name]) or (tightened[name] is None and keys.may_hold(older, now_keyed))
            is_affected = (
                is_open or keys.may_hold(older, refused) or keys.holds_withdrawn(name, older, withdrawals)
            )
        except EditionError:
            is_affected = bool(refused or now_keyed) or keys.holds_withdrawn(name, {}, withdrawals)
        if is_affected or keys.may_name_a_person(name, manifest["proven"]):
            withdrawn.append(name)
    return withdrawn


class _SourceClass(msgspec.Struct):
    source_id: str
    license_class: str


def tightened_since(store: Datastore, edition: str, sources: Mapping[str, Source]) -> frozenset[str] | None:
    """Sources whose rows need a key today but did not in an edition; None if it cannot be read."""
    keyed = {name for name, source in sources.items() if source.license_class in KEYED_CLASSES}
    if not keyed:
        return frozenset()
    try:
        with closing(store.open(edition)) as reader:
            blocks = asyncio.run(reader.blocks(keys.SOURCES, "", 0, sys.maxsize)) or ()
            rows = b",".join(bytes(block[1]).strip(b",") for block in blocks)
            then = msgspec.json.decode(b"[%b]" % rows, type=list[_SourceClass])
    except (EditionError, StoreUnavailable, msgspec.DecodeError):
        return None
    return frozenset(
        one.source_id for one in then if one.source_id in keyed and one.license_class not in KEYED_CLASSES
    )


def _refuse_to_move_back(edition: str, before: str | None, current: str | None) -> None:
    """`before` was current when the build began. Only `rollback` may move back."""
    advice = f"{edition} is kept but not served; `sankofa editions rollback {edition}` serves it"
    if current != before:
        raise EditionError(f"the current edition was changed to {current} while this one was built: {advice}")
    position = keys.ledger_position(edition)
    if current is not None and position < keys.ledger_position(current):
        raise EditionError(
            f"the ledger is at capture {position}, but the current edition {current} was "
            f"built from a later one: {advice}"
        )


def _build(store: Datastore, context: BuildContext, progress: Callable[[str], None]) -> dict[str, Any]:
    # If everything was withdrawn, an edition without rows replaces the last one.
    if not context.captures and not context.withdrawals:
        left_out = [f"{one.source} ({one.why})" for one in context.left_out]
        raise CheckFailed(
            f"nothing to publish: every source of the ledger is left out: {', '.join(left_out)}"
            if left_out
            else "nothing to publish: the ledger is empty"
        )
    # Imported here because pyarrow costs 0.2 s and 60 MB.
    from sankofa.edition.write.parquet import ParquetFiles

    writer = store.build()
    files: ParquetFiles | None = None
    try:
        reuse = Reuse(context, writer)
        if any(reads_macro(one) and one.kind not in reuse.records for one in datasets()):
            _begun = context.macro  # derived in the background
        files = ParquetFiles(writer.files, context, reused=reuse.records)
        dataset_writer = DatasetWriter(writer, files, reuse, context.withdrawn_rows)
        for dataset in datasets():
            progress(dataset.kind)
            dataset_writer.write(dataset, context)
        for table in tables():
            progress(table.name)
            files.make(table.name)
        of_tables = files.finish()
        manifest = _manifest(context, dataset_writer, [one for own in of_tables.values() for one in own])
        writer.finish(manifest["edition"], manifest)
        for name, own in of_tables.items():
            reuse.remember(reuse.inputs.get(name, ""), BuildRecord(files=own))
        context.memo.finish()
    except BaseException as failure:
        writer.abandon()
        context.memo.close()
        if files is not None:
            files.abandon()
        if isinstance(failure, OSError):
            raise OperatorError(f"the edition could not be written: {failure}") from failure
        if isinstance(failure, Exception) and not isinstance(failure, SankofaError | MemoryError):
            raise refuse_rows(failure, context.captures) from None
        raise
    return {**with_reasons(manifest, context.withdrawals), "conflicts": context.resolved.conflicts}


def _manifest(context: BuildContext, written: DatasetWriter, files: list[dict[str, Any]]) -> dict[str, Any]:
    """The manifest. The name of the edition follows from its content."""
    described = {
        "format": keys.LAYOUT,
        "owed": {name: context.owed((name,))[0] for name in context.held_sources if context.owed((name,))},
        "rows": dict(sorted(written.rows.items())),
        "indexes": dict(sorted(written.indexes.items())),
        "sources": context.held_sources,
        "notices": context.notices(),
        "files": files,
        **context.manifest_extras,
        **written.manifest_extras,
    }
    content = [[part.kinds, part.first, part.content] for part in written.parts]
    digest = hashlib.sha256(json.dumps([described, content], sort_keys=True).encode()).hexdigest()
    return {
        **described,
        "edition": keys.edition_name(context.ledger_clock, context.last_capture, digest),
        "built_from": context.ledger_clock,
        "content_sha256": digest,
        "crosswalk_since": context.resolved.crosswalk_since,
        "proven": context.resolved.proven,
        "parts": msgspec.to_builtins(written.parts),
    }


def switch(store: Datastore, edition: str, keep: int) -> None:
    """Make an edition current; keep the newest few and the last current one.

    Call it while holding the lock `switch` (`Datastore.exclusive`).
    """
    listed = store.list_editions()
    newest = [edition, *(name for name in listed.editions if name != edition)][: keep + 1]
    store.set_current_and_prune([*newest, *filter(None, [listed.current])], edition)
