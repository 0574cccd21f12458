"""GET /v1/series/{series}/matrix and GET /v1/fundamentals/{service_id}/matrix."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.edition.format.visibility import ANY_TAG
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.issuer_figures import line_item_of
from sankofa.edition.read.series_catalogue import columns_of_series, every_vintage
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.catalogue_rows import FigureMatrixRow, MatrixRow, NthFigureRow, NthReleaseRow
from sankofa.model.errors import InvalidParameter
from sankofa.model.limits import limit as bound
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import FUND, MACRO
from sankofa.model.rows import Row, wire
from sankofa.model.vintages import Mode
from sankofa.operations import parameters
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.nearest import refuse_unknown_series, unknown_organisation

MOST_CELLS: Final = bound("cells of a vintage matrix", 1_000_000, "dates times release days", "400")
_CELLS_PER_YIELD: Final = 50_000
_DETAILS: Final = ("period_type", "period_start", "concept", "unit")
"""The fields that distinguish figures of the same date."""


class _Vintage(NamedTuple):
    """One vintage of a value."""

    row: tuple[date, str, str, str]
    """The date, and what else tells its row from others."""
    available_at: date
    number: int
    value: bytes
    fields: dict[str, Any]
    """The fields of its row that do not depend on the release."""


class _Reported(msgspec.Struct):
    """The fields of a row of `/v1/fundamentals` that a matrix has."""

    source_ref: str
    license_class: str
    observed_at: str | None
    concept: str | None
    value_reported: msgspec.Raw
    unit: str | None
    period_start: date | None
    period_end: date
    period_type: str
    available_at: date
    vintage: int


_reported = msgspec.json.Decoder(list[_Reported]).decode


@operation(
    "/v1/series/{series}/matrix",
    dataset=MACRO,
    row=MatrixRow,
    also=(NthReleaseRow,),
    errors=(400, 401, 404, 429, 503),
    extension=True,
)
async def get_series_matrix(
    call: Call,
    *,
    series: parameters.SeriesKey,
    as_of: parameters.AsOf = None,
    from_: parameters.FromDay = None,
    to: parameters.ToDay = None,
    release: parameters.Release = "all",
    country: parameters.MacroCountry = None,
) -> Answer:
    """Every vintage of a series side by side: a row for each date, a column for each release day.

    A cell is the value known on that release day, as `/v1/macro` gives it with `as_of`. Every release day
    known on `as_of` is a column, oldest first, whatever `from` and `to`. With `release` the columns are
    `available_at` and `value`: of the first release of each date, the latest, or the n-th. Ordered by date.
    CSV, Arrow and Excel have `date` and these columns only. The sample tier gets the first rows with
    `truncated: true`, paid tiers everything. `country` chooses where several series share the key.
    """
    day, key = as_of or call.today, series.upper()
    columns = await columns_of_series(call.edition, key)
    known = defaultdict(list)
    for column in columns:
        async for one in every_vintage(call.edition, column, day):
            known[column].append(
                _Vintage(
                    (one.date, "", "", ""),
                    one.available_at,
                    one.vintage,
                    wire.encode(one.value),
                    {
                        "source_ref": one.source_ref,
                        "license_class": one.license_class,
                        "observed_at": one.observed_at,
                        "date": one.date,
                    },
                )
            )
    if not known:
        await refuse_unknown_series(call.edition, series)
    countries = {column: column.split("|")[3] for column in known}
    chosen = [column for column in known if country in (None, countries[column])]
    if len(chosen) > 1:
        several = ", ".join(sorted(filter(None, countries.values())))
        raise InvalidParameter("country", f"several series share this key; choose one of {several}")
    vintages = known[chosen[0]] if chosen else []
    return await _matrix(call, vintages, day, (from_, to), release, (MatrixRow, NthReleaseRow))


@operation(
    "/v1/fundamentals/{service_id}/matrix",
    dataset=FUND,
    row=FigureMatrixRow,
    also=(NthFigureRow,),
    errors=(400, 401, 404, 429, 503),
    extension=True,
)
async def get_fundamentals_matrix(
    call: Call,
    *,
    service_id: parameters.ServiceId,
    line_item: parameters.MatrixLineItem,
    period_type: parameters.PeriodType = None,
    as_of: parameters.AsOf = None,
    from_: parameters.FromDay = None,
    to: parameters.ToDay = None,
    release: parameters.Release = "all",
) -> Answer:
    """Every vintage of a line item side by side: a row for each period, a column for each release day.

    A cell is the figure known on that release day; `date` is the last day of the period. The rest is as in
    `/v1/series/{series}/matrix`. Figures of the same date differ in period_type, period_start, concept or
    unit: JSON always has these, CSV, Arrow and Excel only those that tell rows of one date apart. Ordered by
    date, then by these.
    """
    day, key, wanted = as_of or call.today, service_id.upper(), line_item.encode()
    tag = ANY_TAG if period_type is None else PERIOD_TYPES.index(period_type)
    selection = await call.edition.select(
        "fundamentals",
        key,
        day=day.toordinal(),
        modes=int(Mode.ALL),
        tag=tag,
        where=lambda row: line_item_of(row) == wanted,
    )
    if selection is None:
        raise await unknown_organisation(call, service_id)
    vintages = [
        _Vintage(
            (one.period_end, str(one.period_start or ""), one.concept or "", one.unit or ""),
            one.available_at,
            one.vintage,
            bytes(one.value_reported),
            {
                "source_ref": one.source_ref,
                "license_class": one.license_class,
                "observed_at": one.observed_at,
                "date": one.period_end,
                **{name: getattr(one, name) for name in _DETAILS},
            },
        )
        for chunk in selection.lists()
        for one in _reported(chunk)
    ]
    return await _matrix(call, vintages, day, (from_, to), release, (FigureMatrixRow, NthFigureRow))


async def _matrix(
    call: Call,
    vintages: Sequence[_Vintage],
    day: date,
    span: tuple[date | None, date | None],
    release: str,
    shapes: tuple[type[Row], type[Row]],
) -> Answer:
    """The rows of a matrix, or of one release. Raises InvalidParameter for too many cells."""
    since, until = span[0] or date.min, span[1] or date.max
    by_row: defaultdict[tuple[date, str, str, str], list[_Vintage]] = defaultdict(list)
    for one in sorted(vintages, key=lambda one: one.number):
        if since <= one.row[0] <= until:
            by_row[one.row].append(one)
    ordered = [by_row[row] for row in sorted(by_row)]
    if release != "all":
        ordered = [some for own in ordered if (some := _released(own, release))]
    days = sorted({one.available_at for one in vintages}) if release == "all" else []
    most = call.grant.rows_or_all(None)
    shown = ordered[:most]
    if len(shown) * len(days) > MOST_CELLS:
        raise InvalidParameter(
            "from",
            f"{len(shown)} dates and {len(days)} release days are more than {MOST_CELLS} cells: "
            "narrow `from` and `to`, or ask for one release of each date (`release=latest`)",
        )
    write = _wide_row(shapes[0], days) if release == "all" else _nth_row(shapes[1])
    rows = []
    yield_points = YieldPoints(_CELLS_PER_YIELD)
    for own in shown:
        rows.append(write(own))
        await yield_points.step(len(days) + 1)
    more_columns = tuple(one.isoformat() for one in days)
    columns = more_columns if release == "all" else ("available_at", "value")
    return Answer(
        Selection(rows, len(rows), truncated=len(shown) < len(ordered)),
        as_of=day,
        shape=shapes[release != "all"],
        more_columns=more_columns,
        tabular=("date", *_telling_apart(ordered), *columns),
    )


def _released(own: list[_Vintage], release: str) -> list[_Vintage]:
    """The one vintage of a release, or none."""
    if release == "latest":
        return own[-1:]
    number = 1 if release == "first" else int(release)
    return [one for one in own if one.number == number]


def _telling_apart(ordered: Sequence[list[_Vintage]]) -> tuple[str, ...]:
    """The details by which rows of the same date differ."""
    by_date: defaultdict[date, list[dict[str, Any]]] = defaultdict(list)
    for own in ordered:
        by_date[own[-1].row[0]].append(own[-1].fields)
    several = [some for some in by_date.values() if len(some) > 1]
    return tuple(name for name in _DETAILS if any(len({one[name] for one in some}) > 1 for some in several))


def _wide_row(shape: type[Row], days: Sequence[date]) -> Callable[[list[_Vintage]], bytes]:
    names = [f'"{day}":'.encode() for day in days]

    def write(own: list[_Vintage]) -> bytes:
        row, cells, at, value = own[0].row[0], [], 0, b"null"
        for day, name in zip(days, names, strict=True):
            # A value is not known before its own date, though a source may publish it sooner.
            while at < len(own) and own[at].available_at <= day and row <= day:
                value = own[at].value
                at += 1
            cells.append(name + value)
        return b"%b,%b}" % (wire.encode(shape(**own[-1].fields))[:-1], b",".join(cells))

    return write


def _nth_row(shape: type[Row]) -> Callable[[list[_Vintage]], bytes]:
    def write(own: list[_Vintage]) -> bytes:
        (one,) = own
        fields = {**one.fields, "available_at": one.available_at, "value": msgspec.Raw(one.value)}
        return wire.encode(shape(**fields))

    return write
