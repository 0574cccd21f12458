"""Rows about contracting processes: compiled releases."""

from typing import Annotated, Any

import msgspec

from sankofa.model.ocds.compiled import SetBy
from sankofa.model.rows import Row, doc, instant, one_of

FOLLOWED_FIELDS = ("amount", "deadline", "status", "supplier")


class ContractChange(msgspec.Struct, frozen=True):
    """A value that a release replaced."""

    field: Annotated[str, one_of(FOLLOWED_FIELDS, "What changed.")]
    path: Annotated[str, doc("JSON pointer into `release`.")]
    old: Annotated[Any, doc("Value before: an amount, a text, or the names of suppliers; null where none.")]
    new: Annotated[Any, doc("Value set by the release; null where it removed the value.")]
    release_id: Annotated[str, doc("Release that changed it.")]
    release_date: Annotated[str, instant("Its date, an instant in UTC.")]


class ContractRow(Row, frozen=True, kw_only=True):
    """One contracting process as its releases up to a day add up."""

    country: Annotated[str, doc("Country code, ISO 3166-1 alpha-2.")]
    ocid: Annotated[str, doc("Open Contracting process identifier.", min_length=1)]
    release_count: Annotated[int, doc("Number of releases up to the day.", ge=1)]
    first_release_date: Annotated[str, instant("Date of the first release, an instant in UTC.")]
    last_release_date: Annotated[str, instant("Date of the last release up to the day, an instant in UTC.")]
    release: Annotated[
        dict[str, Any], doc("Compiled release by the merge rules of OCDS 1.1.5, without extensions.")
    ]
    set_by: Annotated[
        dict[str, SetBy], doc("For every value of `release`, by JSON pointer, the release that set it.")
    ]
    changes: Annotated[
        list[ContractChange],
        doc("Amounts, deadlines, statuses and suppliers that a release replaced, oldest first."),
    ]
