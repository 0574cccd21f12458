"""Shortcuts: identifiers, open panels, common frames, and the look-ahead check."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from sankofa.client.answers import PROVENANCE, Answer
from sankofa.client.errors import BadRequest, LookAhead, NotOpen, UnknownIdentifier, UnknownSeries
from sankofa.client.exchange import day_of
from sankofa.client.frames import Figures, library
from sankofa.client.rows import Metric

if TYPE_CHECKING:
    import pandas

    from sankofa.client import Client

NAME: Final = "name"
_ISSUED: Final = re.compile(r"[Dd][Cc][0-9A-Fa-f]+\Z")
_KINDS: Final = (
    ("lei", re.compile(r"[A-Z0-9]{18}[0-9]{2}")),
    ("isin", re.compile(r"[A-Z]{2}[A-Z0-9]{9}[0-9]")),
    ("ticker", re.compile(r"\A[A-Z0-9]+:\S+")),
)


def to_look_up(identifier: object) -> tuple[str, str] | None:
    """(id_type, id_value) for the crosswalk, or (NAME, text) for the search; None for an identifier sent
    unchanged."""
    if not isinstance(identifier, str) or not identifier.strip() or _ISSUED.match(identifier):
        return None
    for kind, pattern in _KINDS:
        if pattern.fullmatch(identifier.upper()):
            return kind, identifier.upper()
    return NAME, identifier.strip()


def service_id_of(identifier: str, matches: Answer[Any]) -> str:
    """The only organisation in the crosswalk's answer. Raises UnknownIdentifier."""
    ids: list[str] = sorted({row["service_id"] for row in matches.rows})
    if len(ids) == 1:
        return ids[0]
    why = f"{identifier}: {', '.join(ids)} have it" if ids else f"{identifier}: no organisation has it"
    raise UnknownIdentifier(why, ids)


def named_by(text: str, matches: Answer[Any]) -> str:
    """The only organisation with exactly this name, or with this ticker on any exchange.

    Raises UnknownIdentifier with the nearest names.
    """
    exact = {row["id"] for row in matches.rows if _is_exact(text, row)}
    if len(exact) == 1:
        return str(exact.pop())
    if exact:
        ids = sorted(exact)
        raise UnknownIdentifier(f"{text}: {', '.join(ids)} have it; write a ticker as EXCHANGE:TICKER", ids)
    near = [f"{row['name']} ({row['id']})" for row in matches.rows[:3]]
    close = f"; nearest: {', '.join(near)}" if near else ""
    raise UnknownIdentifier(f"{text}: no organisation has exactly this name or ticker{close}", [])


def _is_exact(text: str, row: Any) -> bool:
    matched: str = row["matched"] or ""
    identifiers = [matched.rpartition(":")[2]] if matched.startswith("ticker:") else []
    return text.casefold() in (str(name).casefold() for name in (row["name"], matched, *identifiers))


Engine = Literal["polars", "duckdb"]


def scan(manifest: Answer[Any], name: str, engine: Engine) -> Any:
    """Every file of a panel as one lazy frame or relation. Raises NotOpen.

    Each URL names the edition of the manifest, so that a publication during the read cannot mix two
    editions.
    """
    files = [row for row in manifest.rows if name in (row["signal_key"], row["name"])]
    listed = sorted({row["signal_key"] for row in manifest.rows if row["access"] == "open"} - {None})
    if not files:
        raise NotOpen(f"no panel {name}; open are: {', '.join(listed)}")
    if any(row["access"] != "open" for row in files):
        raise NotOpen(
            f"{name} is licensed: get_licensed_file fetches {files[0]['name']} with a key of its tier"
        )
    urls = [f"{row['url'].partition('?')[0]}?edition={manifest.edition}" for row in files]
    if engine == "polars":
        return library("polars").scan_parquet(urls, glob=False)
    if engine == "duckdb":
        return library("duckdb").read_parquet(urls)
    raise ValueError(f"engine: expected polars or duckdb, not {engine!r}")


StatementKind = Literal["income", "balance", "cash"]
_BESIDE_PERIODS: Final = 7
"""Columns of a wide statement before the periods."""


def series_key(series: object) -> str:
    """The requested key. Raises ValueError if empty: the service would then return annual figures."""
    if not isinstance(series, str) or not series:
        raise ValueError(f"series: expected text, not {series!r}")
    return series


def by_date(series: str, answer: Answer[Any], figures: Figures) -> "pandas.DataFrame":
    """The observations of one series, by date, the oldest first. Raises UnknownSeries."""
    nearest, hint = answer.members.get("nearest"), answer.members.get("hint")
    if hint is not None:
        raise UnknownSeries(hint, [])
    if nearest is not None:
        close = f"; nearest: {', '.join(nearest)}" if nearest else ""
        raise UnknownSeries(f"{series}: no such series{close}", nearest)
    return _values_first(answer.to_pandas(figures=figures).set_index("date").sort_index(), "value")


def by_period(answer: Answer[Any], figures: Figures) -> "pandas.DataFrame":
    """A wide statement: a row for each line item, a column for each period, newest first.

    `attrs["cells"]` has the concept, vintage and source of each figure, by line item and period.
    """
    frame = answer.to_pandas(figures=figures).set_index("line_item")
    periods = list(frame.columns)[_BESIDE_PERIODS - 1 :]
    wide = frame[periods].set_axis(library("pandas").to_datetime(periods), axis="columns")
    wide.attrs = {**answer.attrs, "cells": {row["line_item"]: row["cells"] for row in answer.rows}}
    return wide


def by_release(answer: Answer[Any], figures: Figures) -> "pandas.DataFrame":
    """A vintage matrix: a row for each date, a column for each release day; or `available_at` and `value`."""
    frame = answer.to_pandas(figures=figures)
    wide = frame.drop(columns=[name for name in PROVENANCE if name in frame.columns]).set_index("date")
    days = [name for name in wide.columns if name[:1].isdigit()]
    if days:
        wide = wide[days].set_axis(library("pandas").to_datetime(days), axis="columns")
    wide.attrs = answer.attrs
    return wide


def universe_frame(answer: Answer[Any]) -> "pandas.DataFrame":
    """The issuers of a day, by service_id."""
    return _values_first(answer.to_pandas().set_index("service_id"))


def _values_first(frame: "pandas.DataFrame", *first: str) -> "pandas.DataFrame":
    """The most important columns first, then the others, then provenance: a terminal shows both ends."""
    others = [name for name in frame.columns if name not in (*first, *PROVENANCE)]
    return frame[[*first, *others, *PROVENANCE]]


_ISSUERS_AT_ONCE: Final = 100
_SERIES: Final = re.compile(r".*[A-Z.:].*")


async def joined_as_of(
    ask: Callable[..., Awaitable[Answer[Any]]],
    identify: Callable[[str, str], Awaitable[str]],
    frame: Any,
    on: tuple[str, str],
    features: Sequence[str],
) -> Any:
    """See `join_as_of` of a session, which asks and identifies."""
    for name in on:
        if name not in frame.columns:
            raise ValueError(f"on: the frame has no column {name!r}")
    if existing := [name for name in features if name in frame.columns]:
        raise ValueError(f"features: the frame has a column {existing[0]!r} already")
    if not features:
        raise ValueError("features: expected a list of metrics, line items and series")
    ids = _values(frame, on[0])
    days = [day for day in map(_day, _values(frame, on[1])) if day is not None]
    if len(days) != len(ids) or not all(isinstance(one, str) for one in ids):
        raise ValueError("on: a row has no identifier or no day")
    names = list(dict.fromkeys(features))
    series = [name for name in names if _SERIES.fullmatch(name)]
    metrics = [name for name in names if name in get_args(Metric)]
    line_items = [name for name in names if name not in {*series, *metrics}]
    service_ids: dict[str, str] = {}
    for identifier in dict.fromkeys(ids if metrics or line_items else ()):
        lookup = to_look_up(identifier)
        service_ids[identifier] = identifier if lookup is None else await identify(*lookup)
    known: defaultdict[str, list[Any]] = defaultdict(list)
    issuers = sorted(set(service_ids.values()))
    for at in range(0, len(issuers), _ISSUERS_AT_ONCE):
        panel = await ask(
            "get_panel",
            issuers=issuers[at : at + _ISSUERS_AT_ONCE],
            from_=min(days),
            to=max(days),
            every="change",
            metrics=metrics or None,
            line_items=line_items or None,
            all=True,
        )
        for row in panel.rows:  # ordered by day
            known[row["service_id"]].append(row)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for identifier, day in zip(ids, days, strict=True):
        rows = known[service_ids.get(identifier, "")]
        at = bisect_right(rows, day.isoformat(), key=lambda row: str(row["as_of"])) - 1
        for name in (*metrics, *line_items):
            columns[name].append(rows[at].get(name) if at >= 0 else None)
    for name in series:
        answers = {day: await ask("get_macro", series=name, as_of=day, limit=1) for day in sorted(set(days))}
        observed = {day: answer.rows[0]["value"] for day, answer in answers.items() if answer.rows}
        columns[name] = [observed.get(day) for day in days]
    floats = {
        name: [None if value is None else float(value) for value in values]
        for name, values in columns.items()
    }
    if hasattr(frame, "with_columns"):
        polars = library("polars")
        return frame.with_columns(
            [polars.Series(name, values, dtype=polars.Float64) for name, values in floats.items()]
        )
    pandas, index = library("pandas"), frame.index
    return frame.assign(
        **{name: pandas.Series(values, index=index, dtype="float64") for name, values in floats.items()}
    )


KNOWN_SINCE: Final = ("available_at", "closed_at", "known_at", "release_date")
"""Columns with the day a row became known; the first one that a frame has is used."""
_ALSO_DATED: Final = ("superseded_at",)
"""Columns with a day on which the row itself became known, if not empty."""


def look_ahead_check(
    frame: Any, as_of: date | str, *, allow_unknown: bool = False, client: "Client | None" = None
) -> None:
    """Raises LookAhead if a row was not known on the day, with the rows in `late` and `unknown`.

    Takes a frame of pandas or Polars, an Answer, or a list of rows. A row without a known day is in
    `unknown` and is refused unless `allow_unknown`. `observed_at` is the time of capture, not of
    publication, so it is ignored.

    With a `client`, a frame of metrics is also refused if it lacks issuers because of later events: they
    had a value on the day, and were restated or completed since. They are in `missing`. A frame for one
    country is compared with that country.
    """
    day = day_of(as_of) if isinstance(as_of, date) else date.fromisoformat(as_of)
    rows = _rows(frame)
    columns = _names(rows)
    known = next((name for name in KNOWN_SINCE if name in columns), None)
    if known is None and len(rows):
        raise LookAhead(
            f"no column gives the day a row became known (looked for {', '.join(KNOWN_SINCE)})",
            rows[:0],
            rows,
        )
    since = [_day(value) for value in _values(rows, known)]
    dated = [
        since,
        *([_day(value) for value in _values(rows, name)] for name in _ALSO_DATED if name in columns),
    ]
    late = [
        index for index, days in enumerate(zip(*dated, strict=True)) if any(one and one > day for one in days)
    ]
    unknown = [index for index, first in enumerate(since) if first is None]
    if late or (unknown and not allow_unknown):
        raise LookAhead(
            f"as of {day}: {len(late)} of {len(since)} rows were not known yet,"
            f" {len(unknown)} do not say when they became known",
            _select(rows, late),
            _select(rows, unknown),
        )
    if client is not None and (missing := _left_out(rows, day, client)):
        raise LookAhead(
            f"as of {day}: {len(missing)} values are missing because of later events;"
            ' ask with basis="as_known"',
            rows[:0],
            rows[:0],
            missing,
        )


def _left_out(rows: Any, day: date, client: "Client") -> list[Any]:
    """The values of the day that are missing from today's screens and from the frame."""
    columns = _names(rows)
    if not {"metric", "service_id"} <= {*columns}:
        raise ValueError("client: only a frame with the columns metric and service_id shows missing issuers")
    named = {*zip(_values(rows, "metric"), _values(rows, "service_id"), strict=True)}
    countries = {*_values(rows, "country")} if "country" in columns else set()
    left_out: list[Any] = []
    for metric in sorted({metric for metric, _ in named}):
        known = client.get_screen(metric, as_of=day, basis="as_known", all=True).rows
        try:
            current = client.get_screen(metric, as_of=day, basis="current", all=True).rows
        except BadRequest:  # a locked view: nothing is left out there
            continue
        has = named | {(metric, row["service_id"]) for row in current}
        left_out += [row for row in known if (metric, row["service_id"]) not in has]
    return [row for row in left_out if len(countries) != 1 or row["country"] in countries]


def _rows(frame: Any) -> Any:
    """The rows to check. A wide statement has the known day of each cell."""
    rows = frame.rows if isinstance(frame, Answer) else frame
    if hasattr(frame, "columns"):
        by_item = getattr(frame, "attrs", {}).get("cells")
        columns = {str(column)[:10] for column in frame.columns}
    else:
        is_wide = len(rows) and isinstance(rows[0].get("cells"), dict)
        by_item = {row["line_item"]: row["cells"] for row in rows} if is_wide else None
        columns = None
    if by_item is None:
        return rows
    return [
        {"line_item": item, "period_end": end, **cell}
        for item, cells in by_item.items()
        for end, cell in cells.items()
        if columns is None or (end in columns and item in frame.index)
    ]


def _names(rows: Any) -> Sequence[str]:
    if hasattr(rows, "columns"):
        return list(rows.columns)
    return list(rows[0]) if rows else []


def _values(rows: Any, name: str | None) -> list[Any]:
    if name is None:
        return []
    return list(rows[name].to_list()) if hasattr(rows, "columns") else [row[name] for row in rows]


def _select(rows: Any, indexes: list[int]) -> Any:
    if hasattr(rows, "iloc"):
        return rows.iloc[indexes]
    return rows[indexes] if hasattr(rows, "columns") else [rows[index] for index in indexes]


def _day(value: Any) -> date | None:
    """A day of any type; None for missing values, including pandas' NaT, NaN and NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    if isinstance(value, str):
        return date.fromisoformat(value[:10])
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).date()
    return cast("date", value)
