"""How every surface calls an operation, and locked views, which end on a day (contract: LOCK-1 to LOCK-6).

A view is locked by its address, `/at/DAY/...`, or by its key; the earlier day wins. In a locked view `today`
is that day and the edition is a `DayView`, so operations need no code for it. This module removes from the
rows anything that reveals when they were captured.
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec
from msgspec.structs import force_setattr, replace

from sankofa.access.tiers import Grant
from sankofa.edition.format.columns import columns_of
from sankofa.edition.read.day_view import ID_LENGTH, DayView, organisation
from sankofa.edition.read.edition import Edition, Notice, Selection
from sankofa.edition.read.row_forms import Sources, sources_in, without_capture
from sankofa.model.catalogue_rows import FlagRow
from sankofa.model.days import parse_day
from sankofa.model.errors import Absence, InvalidParameter, NotFound, Problem, Suggestion
from sankofa.model.provenance import SharedFact, notice, provenance_id, source_of
from sankofa.model.rows import Row, wire
from sankofa.operations.absence import absence_of
from sankofa.operations.contract import NO_ROWS, Answer, Call, Operation, operations
from sankofa.operations.parameter_types import IN_THE_FUTURE

PREFIX: Final = "/at/"
AT: Final = "sankofa.at"
"""The key of an ASGI scope that holds the day its address is locked to."""
NO_DAY: Final = "no day"
"""The value for an address with a future or malformed day."""
_OBSERVED: Final = b'"observed_at":"'
_REF: Final = b'"source_ref":"'
_OWN_ID: Final = b'"service_id":"'
_BUYER_ID: Final = b'"buyer_service_id":"'
_ENTITY_ID: Final = b'"entity_id":"'
_facts: Final = msgspec.json.Decoder(list[SharedFact]).decode
_rows: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_encode: Final = msgspec.json.Encoder().encode
_NAME_FIELDS: Final = ("legal_name", "entity_name", "lei", "listings")
"""Fields of an organisation's rows that depend on the day, besides its country."""


def day_of_path(path: str, today: date) -> tuple[date, str] | None:
    """The day that a path is locked to, and the path after it; None for any other path.

    A day in the future or a malformed day is an unknown path.
    """
    if not path.startswith(PREFIX):
        return None
    text, _, inside = path[len(PREFIX) :].partition("/")
    try:
        day = parse_day(text)
    except ValueError:
        return None
    return None if day > today else (day, "/" + inside)


def without_day(path: str) -> str:
    return "/" + path[len(PREFIX) :].partition("/")[2]


def narrower(of_path: date | None, grant: Grant | None, now: datetime) -> date | None:
    """The day of the view: the earlier of the address's lock and the key's."""
    of_key = grant.lock.on(now) if grant is not None and grant.lock is not None else None
    return min(filter(None, (of_path, of_key)), default=None)


def locked(edition: Edition, day: date | None) -> Edition:
    """The edition as of the day of a locked view; the edition itself outside one."""
    return edition if day is None else DayView(edition, day)


def explained(problem: Problem, lock: date | None) -> Problem:
    if lock and isinstance(problem, InvalidParameter) and problem.detail.endswith(IN_THE_FUTURE):
        return InvalidParameter(problem.parameter, f"later than {lock}, the day that this view is locked to")
    return problem


def refuse_edition(lock: date | None) -> None:
    """Raises NotFound in a locked view: edition ids reveal later days."""
    if lock is not None:
        raise NotFound(f"A view that is locked to {lock} has no editions: leave `edition` out.")


def refuse_file(lock: date | None) -> None:
    """Raises NotFound in a locked view: files hold what is known today."""
    if lock is not None:
        raise NotFound(
            f"Files hold what is known today, and this view is locked to {lock}. Ask the endpoints instead."
        )


async def perform(operation: Operation, call: Call, arguments: dict[str, Any]) -> Answer:
    """The answer of an operation. Every surface calls this function. Raises Problem."""
    if call.lock is None:
        answer = await operation.perform(call, **arguments)
        return await _explained(operation, call, arguments, answer)
    if operation.not_by_day:
        members: dict[str, object] = {"next_cursor": None} if "cursor" in operation.parameters else {}
        absent = Absence("nothing_known", operation.not_by_day)
        return Answer(NO_ROWS, members=members, terms=Notice(notice(())), absent=absent)
    try:
        answer = await operation.perform(call, **arguments)
    except (TypeError, ValueError, LookupError, OverflowError, msgspec.MsgspecError):
        if arguments.get("cursor") is None:
            raise
        raise InvalidParameter("cursor", "not a cursor of this service, or altered") from None
    view, selection, sources = call.edition, answer.selection, None
    if isinstance(view, DayView) and selection.count:
        sources, named = view.evidence(selection)
        if sources is not None:
            unchanged = named == () or _row_contents(operation.shapes).plain
            if not unchanged and named is not None:
                unchanged = (await view.known_days()).renamed_ids.isdisjoint(named)
            if unchanged:
                force_setattr(answer, "terms", _terms(view, sources))
                return answer
    answer = await _of_the_day(_row_contents(operation.shapes), answer, sources, call)
    return await _explained(operation, call, arguments, answer)


async def _explained(operation: Operation, call: Call, arguments: dict[str, Any], answer: Answer) -> Answer:
    """An answer, with the reason if it has no rows, or if its claim is unknown."""
    if answer.selection.count and answer.absent is None:
        return answer
    absent = answer.absent or await absence_of(call, operation, arguments)
    if call.lock is None:
        leads_on = [one for one in absent.suggestions if await _leads_on(call, one)]
        absent = replace(absent, suggestions=tuple(leads_on))
    if answer.selection.count:
        unknown = absent if call.lock is None else replace(absent, suggestions=())
        return replace(answer, absent=None, members={**answer.members, "unknown": unknown})
    return replace(answer, absent=absent)


async def _leads_on(call: Call, suggestion: Suggestion) -> bool:
    """Whether a suggested question has rows, for this key."""
    path_parts = suggestion.path.split("/")
    for operation in operations():
        parts = operation.path.split("/")
        pairs = [pair for pair in zip(parts, path_parts, strict=False) if pair[0] != pair[1]]
        if len(parts) != len(path_parts) or any(part[:1] != "{" for part, _ in pairs):
            continue
        in_path = {part[1:-1]: unquote(own) for part, own in pairs}
        limit = {"limit": "1"} if "limit" in operation.parameters else {}
        try:
            arguments = arguments_of(operation, {**in_path, **limit, **suggestion.arguments}, call)
            return (await operation.perform(call, **arguments)).selection.count > 0
        except Problem:
            return False
    return False


class _RowContents(NamedTuple):
    """Which fields of an operation's rows may reveal the capture or later names."""

    once: bool
    """Every row has one `observed_at` and one `source_ref`, and nothing nested."""
    inputs: bool
    """The inputs of a row have sources of their own."""
    provenance: bool
    names: bool
    matched: bytes
    """First bytes of the field that names a party's matched organisation; empty if there is none."""

    @property
    def plain(self) -> bool:
        return not self.names and not self.matched


@cache
def _row_contents(shapes: tuple[type[Row], ...]) -> _RowContents:
    columns = [column for shape in shapes for column in columns_of(shape)]
    names = {column.name for column in columns}
    named = bool(names.intersection(_NAME_FIELDS))
    matched = _BUYER_ID if "buyer_service_id" in names else _OWN_ID if FlagRow in shapes else b""
    once = not any(column.type is msgspec.Raw for column in columns)
    return _RowContents(once, "inputs" in names, "provenance_id" in names, named, matched)


async def _of_the_day(contents: _RowContents, answer: Answer, sources: Sources | None, call: Call) -> Answer:
    """Removes the capture and later names from the rows of an answer. `sources` are known if the rows are
    without their capture."""
    selection = answer.selection
    rows = bytes(selection.rows).removeprefix(b",")
    if sources is None:
        rows, sources = _without_capture(rows, selection.count, contents)
    if contents.names and isinstance(call.edition, DayView):
        day = answer.as_of if isinstance(answer.as_of, date) else call.today
        view = call.edition if day >= call.today else DayView(call.edition, day)
        rows = await with_names(rows, view)
    if contents.matched and isinstance(call.edition, DayView):
        rows = await _without_strangers(rows, contents.matched, call.edition)
    shown = Selection(
        (rows,) if selection.count else (),
        selection.count,
        selection.truncated,
        following=selection.following,
    )
    return replace(answer, selection=shown, terms=_terms(call.edition, sources))


def _without_capture(rows: bytes, row_count: int, contents: _RowContents) -> tuple[bytes, Sources]:
    """Removes capture instants and file digests from rows; also returns the sources of the rows.

    Many rows share few of each, so all rows are rewritten at once.
    """
    if not contents.provenance:
        rows = without_capture(rows, row_count if contents.once else len(rows))
    elif _OBSERVED in rows:  # stored facts; other rows are built without it
        facts = _facts(b"[%b]" % without_capture(rows, 0))
        for fact in facts:
            force_setattr(fact, "observed_at", None)
            force_setattr(fact, "provenance_id", provenance_id(source_of(fact)))
        rows = wire.encode(facts)[1:-1]
    return rows, sources_in(rows, rows.count(_REF) if contents.inputs else row_count)


async def _without_strangers(rows: bytes, field: bytes, edition: DayView) -> bytes:
    """Removes from rows of releases the organisations not yet known on the day."""
    for own in {text[:ID_LENGTH] for text in rows.split(field)[1:]}:
        if not await edition.knows(own.decode()):
            rows = rows.replace(b'%b%b"' % (field, own), field[:-1] + b"null")
    return rows


def _terms(edition: Edition, sources: frozenset[bytes]) -> Notice:
    notices = edition.terms_of_sources
    if (terms := notices.get(sources)) is None:
        owed: dict[str, str] = edition.manifest.get("owed", {})
        names = sorted(one.decode() for one in sources)
        terms = Notice(notice(dict.fromkeys(owed[one] for one in names if one in owed)))
        notices[sources] = terms
    return terms


async def named_on(call: Call, edition: Edition, day: date, selection: Selection) -> Selection:
    """Rows with the names and identifiers of an earlier day. A locked view names the rows of every answer."""
    if call.lock is not None or day >= call.today or not selection.count:
        return selection
    rows = await with_names(selection.rows.removeprefix(b","), DayView(edition, day, locked=False))
    return Selection((rows,), selection.count, selection.truncated, following=selection.following)


async def with_names(rows: bytes, edition: DayView) -> bytes:
    """Gives rows the names and identifiers that organisations had on the day."""
    known = await edition.known_days()
    if not known.renamed:
        return rows
    mark = _OWN_ID if _OWN_ID in rows else _ENTITY_ID
    renamed = known.renamed_ids.intersection(text[:ID_LENGTH] for text in rows.split(mark)[1:])
    if not renamed:
        return rows
    patched = []
    for fields in _rows(b"[%b]" % rows):
        written = fields.get("service_id") or fields.get("entity_id") or b'""'
        service_id = msgspec.json.decode(written)
        if service_id.encode() in renamed and (row := await edition.entity(service_id)) is not None:
            own = organisation(row)
            for name in (*_NAME_FIELDS, "country"):
                if name in fields and (name != "country" or "legal_name" in fields):  # not a tender's row
                    value = own.legal_name if name == "entity_name" else getattr(own, name)
                    fields[name] = msgspec.Raw(_encode(value))
        patched.append(_encode(fields))
    return b",".join(patched)


decode_answer: Final = msgspec.json.Decoder(float_hook=Decimal).decode
"""Decodes the body of an answer, keeping every digit."""


@cache
def operation_named(name: str) -> Operation:
    return next(operation for operation in operations() if operation.name == name)


async def ask(call: Call, name: str, parameters: Mapping[str, Any]) -> Answer:
    """Runs an operation with parameters given as text. Raises the Problem that REST would return."""
    operation = operation_named(name)
    return await perform(operation, call, arguments_of(operation, parameters, call))


async def ask_rows(call: Call, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Like `ask`, but returns the decoded rows, keeping every digit."""
    answer = await ask(call, name, parameters)
    return [row for some in answer.selection.lists() for row in decode_answer(some)]


def arguments_of(operation: Operation, parameters: Mapping[str, Any], call: Call) -> dict[str, Any]:
    """Parses and checks all arguments as REST does (contract: KEY-7)."""
    texts = {name: as_text(value) for name, value in parameters.items()}
    arguments = operation.read({}, call.today, texts)
    operation.admit(call.grant, arguments)
    return arguments


def as_text(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)
