"""The Python client of Sankofa. It needs httpx; pandas, Polars, pyarrow and DuckDB only where they are used.

    from sankofa.client import Client

    client = Client()  # SANKOFA_API_KEY and SANKOFA_URL say which key and where
    answer = client.get_fundamentals("JSE:RFT", as_of="2024-12-31")
    for row in answer:
        print(row["line_item"], row["value_reported"], row["source_ref"])
    frame = client.series("FX.EUR.ZAR")  # of pandas, by date

`AsyncClient` has the same methods, to be awaited. Every error is in `sankofa.client.errors`.
"""

from datetime import date
from typing import TYPE_CHECKING

from sankofa.client.answers import Answer
from sankofa.client.async_methods import AsyncMethods
from sankofa.client.errors import (
    BadRequest,
    ConnectionFailed,
    Gone,
    InvalidAnswer,
    LookAhead,
    MissingLibrary,
    NotFound,
    NotOpen,
    QuotaExceeded,
    Refused,
    SankofaError,
    TruncatedWarning,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
    UnknownIdentifier,
    UpgradeRequired,
)
from sankofa.client.exchange import Retries
from sankofa.client.frames import Figures
from sankofa.client.look_ahead import look_ahead_check
from sankofa.client.methods import Methods
from sankofa.client.rows import PeriodType
from sankofa.client.sessions import VERSION
from sankofa.client.shortcuts import StatementKind, by_date, by_period, universe_frame

if TYPE_CHECKING:
    import pandas

__all__ = [
    "Answer",
    "AsyncClient",
    "BadRequest",
    "Client",
    "ConnectionFailed",
    "Gone",
    "InvalidAnswer",
    "LookAhead",
    "MissingLibrary",
    "NotFound",
    "NotOpen",
    "QuotaExceeded",
    "Refused",
    "Retries",
    "SankofaError",
    "TruncatedWarning",
    "Unauthorized",
    "Unavailable",
    "UnexpectedAnswer",
    "UnknownIdentifier",
    "UpgradeRequired",
    "look_ahead_check",
]

__version__ = VERSION


class Client(Methods):
    """Asks the service with a key, and waits for its answers."""

    def series(
        self,
        series: str,
        *,
        as_of: date | str | None = None,
        from_: date | str | None = None,
        to: date | str | None = None,
        figures: Figures = "float",
    ) -> "pandas.DataFrame":
        """A series as it was known on a day: every observation, by date, the oldest first."""
        return by_date(
            self.columns.get_macro(series=series, as_of=as_of, from_=from_, to=to, all=True), figures
        )

    def statement(
        self,
        issuer: str,
        *,
        as_of: date | str | None = None,
        kind: StatementKind | None = None,
        period_type: PeriodType = "FY",
        figures: Figures = "float",
    ) -> "pandas.DataFrame":
        """The statements of an issuer as known on a day: line items by period, newest first.

        `issuer` is a service_id, a ticker (`JSE:NPN`) or an LEI.
        """
        return by_period(
            self.get_statement(issuer, as_of=as_of, kind=kind, period_type=period_type, shape="wide"), figures
        )

    def universe(
        self, country: str | None = None, *, exchange: str | None = None, as_of: date | str | None = None
    ) -> "pandas.DataFrame":
        """Every issuer known on a day, whoever stopped reporting since included, by service_id."""
        return universe_frame(
            self.columns.list_issuers(country=country, exchange=exchange, as_of=as_of, all=True)
        )


class AsyncClient(AsyncMethods):
    """Asks the service with a key; every method is awaited."""

    async def series(
        self,
        series: str,
        *,
        as_of: date | str | None = None,
        from_: date | str | None = None,
        to: date | str | None = None,
        figures: Figures = "float",
    ) -> "pandas.DataFrame":
        """A series as it was known on a day: every observation, by date, the oldest first."""
        return by_date(
            await self.columns.get_macro(series=series, as_of=as_of, from_=from_, to=to, all=True), figures
        )

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

        `issuer` is a service_id, a ticker (`JSE:NPN`) or an LEI.
        """
        return by_period(
            await self.get_statement(issuer, as_of=as_of, kind=kind, period_type=period_type, shape="wide"),
            figures,
        )

    async def universe(
        self, country: str | None = None, *, exchange: str | None = None, as_of: date | str | None = None
    ) -> "pandas.DataFrame":
        """Every issuer known on a day, whoever stopped reporting since included, by service_id."""
        return universe_frame(
            await self.columns.list_issuers(country=country, exchange=exchange, as_of=as_of, all=True)
        )
