"""Names the captures whose rows stopped a build: what an operator can withdraw, and report."""

import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from types import TracebackType
from typing import Any, Final

from sankofa.derive.issuers import Issuer
from sankofa.ledger.generations import CaptureFilter
from sankofa.ledger.reader import CaptureInfo, FactColumns
from sankofa.model.errors import BuildFailed, SankofaError

_NAMED: Final = 5
_LOOKED_AT: Final = 1_000
"""Rows of a list in which captures are looked for."""


def refuse_rows_of(
    failure: Exception, captures: Mapping[int, CaptureInfo], numbers: Collection[int]
) -> BuildFailed:
    """The error to raise for a failure on rows of these captures."""
    named = [
        f"capture {number} ({captures[number].source_id}, {captures[number].file_name})"
        for number in sorted(numbers)[:_NAMED]
    ]
    if len(numbers) > _NAMED:
        named.append(f"{len(numbers) - _NAMED} more")
    where = " or ".join(named)
    first = min(numbers)
    trace = "".join(traceback.format_exception(failure))
    traceback.clear_frames(failure.__traceback__)  # they hold rows of the ledger
    return BuildFailed(
        f"the edition cannot be built: {type(failure).__name__} ({failure}) on a row of {where}. "
        f"`sankofa withdraw {captures[first].source_id} --capture {first} --reason TEXT` leaves it out; "
        "`sankofa publish --verbose` prints the traceback of this defect",
        trace,
    )


def refuse_issuer(failure: Exception, issuer: Issuer, derive: Callable[[Issuer], object]) -> BuildFailed:
    """The error to raise where an issuer cannot be derived: the first capture that fails alone, else all."""
    facts = [(subject, issuer.facts(subject)) for subject in issuer.entity.subjects]
    numbers = sorted({number for _, some in facts for number in some.capture_id})
    for number in numbers:
        alone = Issuer(issuer.entity, _OneCapture(dict(facts), number), issuer.captures)
        try:
            derive(alone)
        except SankofaError:
            raise
        except Exception:
            return refuse_rows_of(failure, issuer.captures, [number])
    return refuse_rows_of(failure, issuer.captures, numbers)


class _OneCapture:
    """The facts of one capture."""

    def __init__(self, facts: Mapping[str, FactColumns], number: int) -> None:
        self._facts = facts
        self._filter = CaptureFilter(frozenset({number}), {})

    def facts(self, subject: str) -> FactColumns:
        return FactColumns(*self._filter.passed(FactColumns._fields, list(self._facts[subject])))


def captures_at(failure: BaseException) -> set[int]:
    """The captures of the rows that the innermost function with any had at hand when it failed."""
    at_hand: set[int] = set()
    for frame in _frames(failure.__traceback__):
        at_hand = {number for name, value in frame.items() for number in _captures(name, value)} or at_hand
    return at_hand


def _frames(trace: TracebackType | None) -> Iterator[dict[str, Any]]:
    while trace is not None:
        yield trace.tb_frame.f_locals
        trace = trace.tb_next


def _captures(name: str, value: Any) -> Iterator[int]:
    """Those of a row, of the rows in a list, and of a row inside an object."""
    if name == "capture_id" and isinstance(value, int):
        yield value
    for one in islice(value, _LOOKED_AT) if isinstance(value, list) else (value,):
        for row in (one, getattr(one, "row", None), getattr(one, "report", None)):
            number = getattr(row, "capture_id", None)
            if isinstance(number, int):
                yield number
