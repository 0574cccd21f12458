"""`proof=true` and GET /v1/proof: the hashes from rows up to the signed checkpoint of the log."""

import asyncio
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec

from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.row_proofs import (
    RowNotHashed,
    TreeReader,
    feed_of,
    open_tree,
    row_by_key,
    row_by_ref,
)
from sankofa.engines.edition_log import LoggedEdition
from sankofa.engines.edition_reader import MANIFEST
from sankofa.model.catalogue_rows import TenderRow
from sankofa.model.errors import InvalidParameter, NotFound, StoreUnavailable
from sankofa.model.identifiers import FREE_ID_TYPES
from sankofa.model.provenance import FUND, MACRO, ORGANISATIONS, TENDER
from sankofa.model.rows import CrosswalkRow, EntityRow, FundamentalsRow, MacroAnnualRow, MacroSeriesRow, Row
from sankofa.model.signed_notes import consistency_path, inclusion_path
from sankofa.operations.contract import (
    MEMBERS,
    Answer,
    Call,
    Encoded,
    Operation,
    operation,
    optional_parameter,
)
from sankofa.operations.parameter_types import Choice, Text, Whole
from sankofa.operations.service import Service

PROVEN: Final = ("get_fundamentals", "search_tenders", "get_macro", "get_entity", "get_crosswalk")
"""The operations whose rows can be proven."""
PROOF: Final = optional_parameter(
    "proof",
    Choice(("true", "false"), "true"),
    "`true` adds `proof`: the hashes from each row up to the signed checkpoint of the log.",
)
_SHAPES: Final[Mapping[str, tuple[type[Row], str]]] = {
    "crosswalk": (CrosswalkRow, ORGANISATIONS),
    "entities": (EntityRow, ORGANISATIONS),
    "fundamentals": (FundamentalsRow, FUND),
    "macro-annual": (MacroAnnualRow, MACRO),
    "macro-series": (MacroSeriesRow, MACRO),
    "tenders": (TenderRow, TENDER),
}
"""By dataset: the type of its rows, and the dataset whose sources `_license` attributes."""
_RECORD_REF: Final = rf"^([0-9a-f]{{24}}|({'|'.join(_SHAPES)}):[^\x00-\x1f\x7f]{{1,480}})$"
RecordRefParameter = Annotated[
    str,
    Text(_RECORD_REF, "30b0939ed17a65fb79375e04", longest=512),  # of the bundled sample world
    "The row: a figure's `record_ref`, or for other datasets `DATASET:KEY`. KEY is the `key` from "
    "/v1/changes, as a JSON list or joined by `|`, `,` or `:`.",
]
SinceSizeParameter = Annotated[
    int | None,
    Whole(1),
    "Number of entries of an older checkpoint. `consistency_path` proves that the log of today begins with "
    "the same entries.",
]
_FRESH: Final = 1.0
"""Seconds for which a checkpoint is cached."""
PROOF_OF_ROW: Final = "get_proof"
_DATASETS: Final = {shape: dataset for dataset, (shape, _) in _SHAPES.items()}


@operation(
    "/v1/proof",
    row=FundamentalsRow,
    also=(CrosswalkRow, EntityRow, MacroAnnualRow, MacroSeriesRow, TenderRow),
    some_rows_paid=True,
    extension=True,
    members={"proof": MEMBERS["proof"]},
)
async def get_proof(
    call: Call, *, record_ref: RecordRefParameter, since_size: SinceSizeParameter = None
) -> Answer:
    """One row, with the proof that its edition has it.

    `proof` has the hashes from the row up to the signed checkpoint of the log of editions. `proof=true` adds
    the same to other answers, and `sankofa verify` checks them. With `since_size` it also proves that the log
    has only grown since it had that many entries. If the edition has no such row, the answer is a 404.
    """
    if call.lock is not None:
        raise NotFound(LOCKED)
    dataset, colon, key = record_ref.partition(":")
    if not colon:
        dataset = "fundamentals"
    try:
        row = await (
            row_by_key(call.edition, feed_of(dataset), key) if colon else row_by_ref(call.edition, record_ref)
        )
    except RowNotHashed as reason:
        raise NotFound(f"record_ref: {reason}.") from None
    if row is None:
        raise NotFound(f"record_ref: edition {call.edition.id} has no such row.")
    if dataset == "crosswalk" and msgspec.json.decode(row)["id_type"] not in FREE_ID_TYPES:
        call.grant.requires_paid("An identifier of this kind")
    shape, sku = _SHAPES[dataset]
    return Answer(Selection((row,), 1, truncated=False), shape=shape, dataset=sku)


LOCKED: Final = "A locked view has no proofs: the log reveals later days."


def with_proof(operation: Operation, text: str, service: Service, fmt: object = None) -> Operation:
    """The operation that adds the proof of its rows to the envelope. Raises InvalidParameter."""
    if text not in ("true", "false"):
        raise InvalidParameter("proof", "expected true or false")
    if text == "true" and fmt is not None:
        raise InvalidParameter("proof", "only JSON answers have a proof")
    return _proving(operation, service) if text == "true" else operation


@lru_cache(maxsize=2 * len(PROVEN))
def _proving(operation: Operation, service: Service) -> Operation:
    async def perform(call: Call, **arguments: Any) -> Answer:
        if call.lock is not None:
            raise NotFound(LOCKED)
        if arguments.get("detail") == "compact":
            raise InvalidParameter("proof", "only whole rows can be proven: ask with detail=full")
        answer = await operation.perform(call, **arguments)
        dataset = _DATASETS[answer.shape or operation.row]
        proof = await _proof(dataset, service, call, answer, arguments.get("since_size"))
        return msgspec.structs.replace(answer, members={**answer.members, "proof": proof})

    return operation.with_perform(perform)


async def _proof(
    dataset: str, service: Service, call: Call, answer: Answer, since_size: int | None
) -> Encoded:
    edition = call.edition
    if answer.edition_id not in (None, edition.id):
        edition = await call.edition_for_cursor(answer.edition_id or "")
    slices = answer.selection.slices
    if answer.selection.between != b",":
        slices = (answer.selection.rows.removeprefix(b","),)
    logged = await _logged(service, edition, since_size)
    try:
        opened = await open_tree(edition, dataset)
    except RowNotHashed as reason:
        raise NotFound(f"proof: {reason}.") from None
    # Older versions wrote trees without it.
    if not (secret := opened.tree.secret or service.settings.row_secret()):
        raise NotFound(f"proof: this node cannot prove rows of edition {edition.id}.")
    reader = TreeReader(edition, opened, secret)
    try:
        own = await reader.proofs(slices)
    except RowNotHashed as other:
        raise InvalidParameter("proof", str(other)) from None
    head = b'{"dataset":"%b","edition":"%b",%b,"rows":[' % (dataset.encode(), edition.id.encode(), logged)
    return Encoded((head, *own, b"]}"))


async def _logged(service: Service, edition: Edition, since_size: int | None = None) -> bytes:
    """The proof from an edition's entry up to the checkpoint, which is at most a second old, as members of a
    JSON object.

    Raises NotFound if the edition is not logged.
    """
    cache = edition.cache("logged", 1)
    known: tuple[float, bytes] | None = cache.get(None) if since_size is None else None
    if known is not None and time.monotonic() < known[0]:
        return known[1]
    logged = await asyncio.to_thread(_entry_proof, service, edition.id, since_size)
    if logged is None:
        raise NotFound(f"proof: edition {edition.id} is not in the log of this node.")
    members = msgspec.json.encode(logged)[1:-1]
    if since_size is None:
        cache.put(None, (time.monotonic() + _FRESH, members))
    return members


def _entry_proof(service: Service, edition: str, since_size: int | None) -> dict[str, object] | None:
    """An edition's entry and the hashes up to the checkpoint; None if the edition is not logged.

    Raises InvalidParameter for a size that the log does not have.
    """
    log = service.datastore.log
    tree, checkpoint = log.tree(), log.checkpoint() or b""
    size = int(checkpoint.split(b"\n")[1]) if checkpoint else 0
    tree = tree.first(size)
    logged = [one.edition if isinstance(one, LoggedEdition) else "" for one in tree.decoded]
    if edition not in logged:
        return None
    index = logged.index(edition)
    proof: dict[str, object] = {
        "checkpoint": checkpoint.decode(),
        "entry": b64encode(tree.entries[index]).decode(),
        "entry_index": index,
        "entry_path": _texts(inclusion_path(tree.levels, index)),
    }
    if since_size is not None:
        if since_size > size:
            raise InvalidParameter("since_size", f"the log has {size} entries")
        proof["consistency_path"] = _texts(consistency_path(tree.leaves, since_size))
    return proof


async def file_proof(service: Service, edition: Edition, name: str) -> bytes:
    """The manifest with the digest of a file, and the hashes from its edition up to the checkpoint, as JSON.

    Raises NotFound if the edition is not logged.
    """
    logged = await _logged(service, edition)
    manifest = service.datastore.edition_folder(edition.id) / MANIFEST
    try:
        content = await asyncio.to_thread(manifest.read_text, "utf-8")
    except OSError as failure:
        raise StoreUnavailable("datastore", f"{MANIFEST}: {failure}") from failure
    own = {"file": name, "sha256": edition.files[name]["sha256"], "manifest": content}
    return b"%b,%b}" % (msgspec.json.encode(own)[:-1], logged)


def _texts(hashes: Sequence[bytes]) -> list[str]:
    return [b64encode(one).decode() for one in hashes]
