"""The Python client of Sankofa. It needs httpx; pandas, Polars, pyarrow and DuckDB only where they are used.

    from sankofa.client import Client

    with Client("sankofa-sandbox", "http://127.0.0.1:8000") as client:
        answer = client.get_fundamentals("DC8342E4A6CD9A7F25CAC383F4", as_of="2024-12-31")
        for row in answer:
            print(row["line_item"], row["value_reported"], row["source_ref"])
        frame = client.columns.get_macro(series="FX.EUR.ZAR", limit=25).to_pandas()

`AsyncClient` has the same methods, to be awaited. Every error is in `sankofa.client.errors`.
"""

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
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
    UpgradeRequired,
)
from sankofa.client.exchange import Retries
from sankofa.client.look_ahead import look_ahead_check
from sankofa.client.methods import Methods
from sankofa.client.sessions import VERSION

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
    "Unauthorized",
    "Unavailable",
    "UnexpectedAnswer",
    "UpgradeRequired",
    "look_ahead_check",
]

__version__ = VERSION


class Client(Methods):
    """Asks the service with a key, and waits for its answers."""


class AsyncClient(AsyncMethods):
    """Asks the service with a key; every method is awaited."""
