"""`proof=true`: the hashes that lead from each row of an answer to the signed checkpoint of the log."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from sankofa.edition.read.changes import FEEDS, Feed
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.row_trees import RowNotHashed, RowTree, TreeReader, canonical_rows, read_row_trees
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.engines.edition_log import LoggedEdition
from sankofa.model.errors import EditionError, InvalidParameter, NotFound
from sankofa.model.merkle import inclusion_path, levels_above
from sankofa.operations.contract import Answer, Call, Operation, Parameter
from sankofa.operations.parameter_types import Choice
from sankofa.operations.service import Service

PROVEN: Final[Mapping[str, str]] = {
    "get_fundamentals": "fundamentals",
    "search_tenders": "tenders",
    "get_macro": "macro",
    "get_entity": "entities",
    "get_crosswalk": "crosswalk",
}
"""The operations whose rows can be proven, and their datasets; that of macro depends on its mode."""
PROOF: Final = Parameter(
    "proof",
    "proof",
    Choice(("true", "false"), "true"),
    "`true` adds `proof`: the hashes that lead from each row to the signed checkpoint of the log.",
    required=False,
    default=None,
    in_path=False,
    tool_only=False,
    extension=True,
)
_MACRO: Final = {True: "macro-series", False: "macro-annual"}
_TREES_KEPT: Final = 4


def with_proof(operation: Operation, text: str, service: Service, fmt: object) -> Operation:
    """The operation that adds the proof of its rows to the envelope. Raises InvalidParameter."""
    if text not in ("true", "false"):
        raise InvalidParameter("proof", "expected true or false")
    if text == "false":
        return operation
    if fmt is not None:
        raise InvalidParameter("proof", "a proof comes with JSON only")

    async def perform(call: Call, **arguments: Any) -> Answer:
        if call.lock is not None:
            raise NotFound("A locked view has no proofs: the log tells of later days.")
        if arguments.get("detail") == "compact":
            raise InvalidParameter("proof", "only whole rows can be proven: ask with detail=full")
        answer = await operation.perform(call, **arguments)
        return msgspec.structs.replace(
            answer, members={**answer.members, "proof": await _proof(operation, service, call, answer)}
        )

    return replace(operation, perform=perform)


async def _proof(operation: Operation, service: Service, call: Call, answer: Answer) -> dict[str, object]:
    edition = call.edition
    if answer.edition_id not in (None, edition.id):
        edition = await call.edition_for_cursor(answer.edition_id or "")
    rows = await _canonical(answer)
    dataset = PROVEN[operation.name]
    if dataset == "macro":
        dataset = _MACRO[bool(rows) and b'"series":' in rows[0]]
    log = service.datastore.log
    tree, checkpoint = await asyncio.to_thread(lambda: (log.tree(), log.checkpoint()))
    size = int(checkpoint.split(b"\n")[1]) if checkpoint else 0
    entries = tree.decoded()[:size]
    entry_index = next(
        (n for n, one in enumerate(entries) if isinstance(one, LoggedEdition) and one.edition == edition.id),
        None,
    )
    secret = service.settings.row_secret()
    if entry_index is None or checkpoint is None or secret is None:
        raise NotFound(f"proof: edition {edition.id} is not in the log of this node.")
    reader = TreeReader(edition, _feed(dataset), await _tree(service, edition, dataset), secret)
    try:
        proven = [await reader.proof(row) for row in rows]
    except RowNotHashed as other:
        raise InvalidParameter("proof", str(other)) from None
    return {
        "dataset": dataset,
        "edition": edition.id,
        "checkpoint": checkpoint.decode(),
        "entry": _text(tree.entries[entry_index]),
        "entry_index": entry_index,
        "entry_path": _texts(inclusion_path(levels_above(tree.leaves[:size]), entry_index)),
        "rows": [{"index": one.index, "salt": _text(one.salt), "path": _texts(one.path)} for one in proven],
    }


async def _canonical(answer: Answer) -> list[bytes]:
    rows = bytes(answer.selection.rows).removeprefix(b",")
    return await in_thread_if_large(len(rows), canonical_rows, rows) if answer.selection.count else []


async def _tree(service: Service, edition: Edition, dataset: str) -> RowTree:
    """The hashes of a dataset. Raises NotFound where this node has none."""
    trees = edition.cache("row trees", _TREES_KEPT)
    if (known := trees.get(dataset)) is None:
        try:
            every = await asyncio.to_thread(read_row_trees, service.datastore, edition.id)
        except EditionError:
            raise NotFound("proof: this node follows another: it has no hashes of rows.") from None
        for name, one in every.items():
            trees.put(name, one)
        known = every[dataset]
    tree: RowTree = known
    return tree


def _feed(dataset: str) -> Feed:
    return next(feed for feed in FEEDS if feed.dataset == dataset)


def _text(content: bytes) -> str:
    return b64encode(content).decode()


def _texts(hashes: Sequence[bytes]) -> list[str]:
    return [_text(one) for one in hashes]
