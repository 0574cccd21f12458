"""An answer: its rows, its envelope, its frames, and its table in a notebook."""

import copy
import json
import warnings
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cached_property
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from sankofa.client import frames
from sankofa.client.errors import InvalidAnswer, TruncatedWarning
from sankofa.client.exchange import ARROW, Endpoint, Reply, read_json
from sankofa.client.frames import columns_of

PROVENANCE: Final = ("source_ref", "license_class", "observed_at")
_MOST_ROWS: Final = 20


def html_table(title: str, notice: str, rows: list[dict[str, Any]]) -> str:
    """The first rows as a table, with their provenance folded below it. Everything is escaped."""
    first = list(islice(rows, _MOST_ROWS))
    names = [name for name in (first[0] if first else ()) if name not in PROVENANCE]
    return (
        f"<p><code>{escape(title)}</code></p>{_table(names, first)}"
        f"<details><summary>Provenance</summary><p>{escape(notice)}</p>"
        f"{_table(list(PROVENANCE), first)}</details>"
    )


def _table(names: list[str], rows: list[dict[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell(row.get(name)) for name in names)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return f"<td>{'' if value is None else escape(str(value))}</td>"


if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Row_co = TypeVar("Row_co", covariant=True)


def next_page(name: str, page: "Answer[Any]") -> dict[str, object]:
    """The arguments that lead from one page to the next.

    Pages of changes name their edition, so that a copy never mixes two. If it is removed, they raise `Gone`.
    """
    following: dict[str, object] = {"cursor": page.next_cursor}
    named = name == "get_changes" and "known_by" not in page.members
    return following | {"edition": page.edition} if named else following


_NEEDED = {"count", "truncated"}
_TEXTS = ("edition", "as_of", "next_cursor", "since", "successor", "license")
_ENVELOPE = ("count", "_license", "as_of", "edition", "truncated", "next_cursor", "absent")


_OPEN: Final = ("IssuerDayRow",)
"""The shape whose rows have additional columns."""


class Answer(Generic[Row_co]):
    """An answer of the service. Iterating over it gives its rows.

    A row is a dict as the service sends it: days and instants as text, figures exact (int or Decimal).
    """

    def __init__(self, endpoint: Endpoint, reply: Reply, *, limited: bool = True) -> None:
        self._endpoint = endpoint
        self._silent = limited
        self._is_cut_by_tier = False
        self._columns: tuple[bytes, ...] = ()
        self._json_rows: list[Any] = []
        if reply.headers.get("content-type", "").startswith(ARROW):
            self._columns = (reply.body,)
            envelope: Mapping[str, Any] = {**dict.fromkeys(endpoint.members), **_from_headers(reply.headers)}
        else:
            body = read_json(reply)
            if not isinstance(body, dict) or not {endpoint.rows_under, *_NEEDED} <= body.keys():
                raise InvalidAnswer(f"not an answer of {endpoint.path}: a member of its envelope is missing")
            self._json_rows = body.pop(endpoint.rows_under)
            envelope = body
        day = envelope.get("as_of")
        self.count: int = envelope["count"]
        """Number of rows."""
        self.edition: str | None = envelope.get("edition")
        """The edition that answered. Pass it as `edition` to get the same answer again.
        None in a locked view."""
        self.license: str = envelope.get("_license", "")
        """The terms of the data."""
        self.as_of: date | None = None if day is None else date.fromisoformat(day)
        """The day applied, if the endpoint takes one."""
        self.truncated: bool = envelope["truncated"]
        """Whether more rows matched."""
        self.next_cursor: str | None = envelope.get("next_cursor")
        """Cursor of the next page; None on the last page, and for answers without pages."""
        self.absent: dict[str, Any] | None = envelope.get("absent")
        """Why there are no rows, and what to try instead; None if there are rows."""
        self.members: dict[str, Any] = {k: v for k, v in envelope.items() if k not in _ENVELOPE}
        """The other members of the envelope, e.g. `omitted` or `ambiguous`."""
        self.request_id: str | None = reply.headers.get("x-request-id")

    @cached_property
    def rows(self) -> list[Row_co]:
        """The rows in their documented order."""
        if self._columns:
            return cast("list[Row_co]", frames.rows_of(self._columns, self._shape))
        return self._json_rows

    @property
    def attrs(self) -> frames.Attrs:
        """The members that every frame has in its `attrs`."""
        day = None if self.as_of is None else self.as_of.isoformat()
        return {"_license": self.license, "as_of": day, "edition": self.edition, "truncated": self.truncated}

    def with_pages(self, pages: "list[Answer[Row_co]]") -> "Answer[Row_co]":
        """This page and those that follow it, as one answer."""
        whole = copy.copy(self)
        vars(whole).pop("rows", None)
        every = [self, *pages]
        last = every[-1]
        whole._columns = ()
        if all(page._columns for page in every):
            whole._columns = tuple(stream for page in every for stream in page._columns)
        else:
            whole._json_rows = [row for page in every for row in page.rows]
        whole.count = sum(page.count for page in every)
        whole.truncated, whole.next_cursor = last.truncated, last.next_cursor
        return whole

    def to_arrow(self) -> "pyarrow.Table":
        """A table: days date32, instants timestamp[us, UTC], figures and nested values as text.

        `attrs` are in the metadata of its schema.
        """
        self._warn()
        return frames.to_arrow(self._source, self._shape, self.attrs)

    def to_pandas(self, *, figures: frames.Figures = "float") -> "pandas.DataFrame":
        """A frame with every column of the rows, provenance included, and `attrs`.

        Days are datetime64, instants datetime64 in UTC, whole numbers Int64, truths boolean. Figures are the
        nearest `float`, or `decimal.Decimal`, or text with every digit. Nested values are JSON.
        """
        self._warn()
        return frames.to_pandas(self._source, self._shape, self.attrs, figures)

    def to_polars(self, *, figures: frames.Figures = "float") -> "polars.DataFrame":
        """As `to_pandas`, with the types of Polars.

        `attrs` is an attribute of this frame only: Polars does not copy it to derived frames.
        """
        self._warn()
        frame: polars.DataFrame = frames.to_polars(self._source, self._shape, self.attrs, figures)
        return frame

    def __iter__(self) -> Iterator[Row_co]:
        return iter(self.rows)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        more = ", truncated" if self.truncated else ""
        if nearest := self.members.get("nearest"):
            more += f", nearest: {', '.join(nearest)}"
        if hint := self.members.get("hint"):
            more += f", {hint}"
        if self.absent and not (nearest or hint):
            more += f", {self.absent['detail']}"
        return f"<Answer: {self.count} rows of {self._endpoint.path}, edition {self.edition}{more}>"

    def _repr_html_(self) -> str:
        return html_table(repr(self), self.license, cast("frames.Rows", self.rows))

    def cut_by_tier(self) -> "Answer[Row_co]":
        """This answer, marked as all that the key's tier serves."""
        self._is_cut_by_tier = True
        return self

    def _warn(self) -> None:
        """Warns once, unless the caller asked for few rows."""
        if self.truncated and not self._silent:
            self._silent = True
            advice = "limit= asks for more, up to the maximum of your key's tier"
            if self._is_cut_by_tier:
                advice = "the tier of your key serves no more"
            elif self.next_cursor is not None:
                advice = "all=True fetches every page, limit= asks for more rows"
            warnings.warn(
                f"{self._endpoint.path}: the first {self.count} rows, and more matched: {advice}",
                TruncatedWarning,
                stacklevel=3,
            )

    @property
    def _source(self) -> frames.Source:
        return self._columns or cast("frames.Rows", self.rows)

    @cached_property
    def _shape(self) -> dict[str, str]:
        """The columns of the rows, each with its kind."""
        shapes = [columns_of(name) for name in self._endpoint.shapes]
        if len(shapes) == 1 and self._endpoint.shapes != _OPEN:
            return shapes[0]
        names = frames.names_of(self._columns) if self._columns else list(*self._json_rows[:1])
        if not names:
            return shapes[0]
        kinds = {name: kind for shape in shapes for name, kind in shape.items()}
        # A wide statement also has a column for each period, a panel the requested columns, a matrix one for
        # each release day.
        return {name: kinds.get(name, "figure") for name in names}


def _from_headers(headers: Mapping[str, str]) -> dict[str, Any]:
    """The envelope of an answer in columns: members that are not null are header fields."""
    members: dict[str, Any] = {}
    for name, text in headers.items():
        if not name.startswith("x-") or name in ("x-request-id", "x-service-api-version"):
            continue
        member = name.removeprefix("x-").replace("-", "_")
        members["_license" if member == "license" else member] = text if member in _TEXTS else _value(text)
    if not members.keys() >= _NEEDED:
        raise InvalidAnswer("an answer in columns without X-Count and X-Truncated")
    return members


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
