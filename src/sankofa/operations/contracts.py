"""GET /v1/contracts/{ocid}: a contracting process as it stood on a day (contract: CON-1)."""

from typing import Any, Final

from sankofa.edition.read.edition import Selection
from sankofa.edition.read.tender_filters import single_rows
from sankofa.edition.read.tenders import process_releases
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.model.errors import Absence, NotFound
from sankofa.model.facts import TENDER
from sankofa.model.ocds.compiled import Process, SetBy
from sankofa.model.ocds.release import decode
from sankofa.model.rows import wire
from sankofa.model.tender_rows import ContractChange, ContractRow
from sankofa.operations.contract import NO_ROWS, AgentView, Answer, Call, operation
from sankofa.operations.parameters import ContractDayParameter, ContractParameter

_READ_AT_ONCE: Final = 64
_CHANGES_SHOWN: Final = 100
_ROOM: Final = 40_000


def _brief(row: bytes) -> bytes:
    """A row without `set_by`, with the newest changes only, and without the release where that is large."""
    fields: dict[str, Any] = decode(row)
    fields |= {"set_by": {}, "changes": fields["changes"][-_CHANGES_SHOWN:]}
    if len(wire.encode(fields)) > _ROOM:
        fields["release"] = {}
    return wire.encode(fields)


_FOR_AGENTS: Final = AgentView(compact=_brief)


@operation(
    "/v1/contracts/{ocid}",
    dataset=TENDER,
    row=ContractRow,
    errors=(400, 401, 404, 429, 503),
    tool="get_contract",
    extension=True,
    agent=_FOR_AGENTS,
)
async def get_contract(call: Call, *, ocid: ContractParameter, as_of: ContractDayParameter = None) -> Answer:
    """One contracting process as it stood on a day: what its releases up to then add up to.

    One row. `release` is compiled by the merge rules of OCDS 1.1.5, without extensions, from every release
    with this ocid; releases of one instant are in the order of their ids. `set_by` names the release that set
    each value, and `changes` lists amounts, deadlines, statuses and suppliers that a release replaced. Before
    its first release a process has no row.
    """
    releases = await process_releases(call.edition, ocid)
    if not releases:
        raise NotFound(f"No contracting process with ocid {ocid}.")
    day = call.day_asked(as_of)
    known = [(country, number) for released, country, number in releases if released <= day]
    if not known:
        first, last = releases[0][0], releases[-1][0]
        detail = f"Not known on {day}: its first release is of {first}."
        return Answer(NO_ROWS, as_of=day, absent=Absence("not_yet_known", detail, first, last))
    builder = _Builder()
    for start in range(0, len(known), _READ_AT_ONCE):
        rows = [
            bytes((await single_rows(call.edition, country, (number,)))[0])
            for country, number in known[start : start + _READ_AT_ONCE]
        ]
        await in_thread_if_large(sum(map(len, rows)), builder.add, rows)
    row = await in_thread_if_large(builder.size, builder.row)
    return Answer(Selection([row], 1, truncated=False), as_of=day)


class _Builder:
    """Adds up the releases of a process."""

    def __init__(self) -> None:
        self.size = 0
        self._process = Process()
        self._count = 0
        self._first = ""
        self._last: dict[str, Any] = {}

    def add(self, rows: list[bytes]) -> None:
        for row in rows:
            self.size += len(row)
            self._count += 1
            self._last = fields = decode(row)
            self._first = self._first or fields["release_date"]
            self._process.add(fields["release"], SetBy(fields["release_id"], fields["release_date"]))

    def row(self) -> bytes:
        compiled = self._process.compiled()
        last = self._last
        return wire.encode(
            ContractRow(
                source_ref=last["source_ref"],
                license_class=last["license_class"],
                observed_at=last["observed_at"],
                country=last["country"],
                ocid=last["ocid"],
                release_count=self._count,
                first_release_date=self._first,
                last_release_date=last["release_date"],
                release=compiled.release,
                set_by=compiled.set_by,
                changes=[
                    ContractChange(c.field, c.path, c.old, c.new, c.by.release_id, c.by.release_date)
                    for c in compiled.changes
                ],
            )
        )
