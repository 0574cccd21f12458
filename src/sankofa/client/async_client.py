"""The client that is awaited. tools/client.py writes `sync_client`, which waits, from this module."""

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from sankofa.client.async_methods import AsyncMethods
from sankofa.client.frames import Figures
from sankofa.client.rows import PeriodType
from sankofa.client.shortcuts import (
    FeatureJoin,
    StatementKind,
    by_date,
    by_period,
    by_release,
    series_key,
    to_look_up,
    universe_frame,
)

if TYPE_CHECKING:
    import pandas


class AsyncClient(AsyncMethods):
    """Asks the service with a key."""

    async def series(
        self,
        series: str,
        *,
        as_of: date | str | None = None,
        from_: date | str | None = None,
        to: date | str | None = None,
        figures: Figures = "float",
    ) -> "pandas.DataFrame":
        """A series as it was known on a day: every observation, by date, the oldest first.

        Raises UnknownSeries, with the nearest keys, if there is no such series.
        """
        key = series_key(series)
        answer = await self.columns.get_macro(series=key, as_of=as_of, from_=from_, to=to, all=True)
        return by_date(key, answer, figures)

    async def vintages(
        self,
        series: str,
        *,
        release: str = "all",
        as_of: date | str | None = None,
        from_: date | str | None = None,
        to: date | str | None = None,
        figures: Figures = "float",
    ) -> "pandas.DataFrame":
        """The vintages of a series side by side: dates down, release days across, oldest first.

        A cell is the value known on that release day. With `release` (`first`, `latest` or a number as text)
        the columns are `available_at` and `value`.
        """
        answer = await self.columns.get_series_matrix(
            series_key(series), release=release, as_of=as_of, from_=from_, to=to
        )
        return by_release(answer, figures)

    async def statement(
        self,
        issuer: str,
        *,
        as_of: date | str | None = None,
        kind: StatementKind | None = None,
        period_type: PeriodType = "FY",
        figures: Figures = "float",
    ) -> "pandas.DataFrame":
        """The statements of an issuer as known on a day: line items by period, newest first.

        `issuer` is a service_id, a ticker (`JSE:NPN`, or `NPN` where one organisation has it), an LEI or
        an exact name.
        """
        return by_period(
            await self.get_statement(issuer, as_of=as_of, kind=kind, period_type=period_type, shape="wide"),
            figures,
        )

    async def universe(
        self,
        country: str | None = None,
        *,
        exchange: str | None = None,
        as_of: date | str | None = None,
        all: bool = True,
    ) -> "pandas.DataFrame":
        """Every issuer known on a day, by service_id, including those that stopped reporting since.

        With `all=False` one page of them.
        """
        return universe_frame(
            await self.columns.list_issuers(country=country, exchange=exchange, as_of=as_of, all=all)
        )

    async def join_as_of(self, frame: Any, *, on: tuple[str, str], features: Sequence[str]) -> Any:
        """A frame of pandas or Polars with features, each as known on the day of its row.

        `on` names the identifier column (service_ids, tickers, LEIs or exact names) and the date column.
        `features` are metrics, line items of the latest full year, and series (`CPI.ZA`). The rows stay
        as they are and in their order; a cell is empty if nothing was known. A series takes a request
        for each day. Needs the starter tier or above.
        """
        join = FeatureJoin(frame, on, features)
        for identifier in join.identifiers():
            lookup = to_look_up(identifier)
            join.service_ids[identifier] = identifier if lookup is None else await self._identify(*lookup)
        for issuers in join.batches():
            panel = await self.get_panel(
                join.first,
                to=join.last,
                every="change",
                metrics=join.metrics or None,
                line_items=join.line_items or None,
                issuers=issuers,
                all=True,
            )
            join.add(panel)
        for key, day in join.observations():
            join.observed[key, day] = await self.get_macro(series=key, as_of=day, limit=1)
        return join.joined()
