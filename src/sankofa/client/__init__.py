"""The Python client of Sankofa. It needs httpx; pandas, Polars, pyarrow and DuckDB only where they are used.

    from sankofa.client import Client

    client = Client()  # SANKOFA_API_KEY and SANKOFA_URL say which key and where
    answer = client.get_fundamentals("JSE:RFT", as_of="2024-12-31")
    for row in answer:
        print(row["line_item"], row["value_reported"], row["source_ref"])
    frame = client.series("FX.EUR.ZAR")  # of pandas, by date

`AsyncClient` has the same methods, to be awaited. Every error is in `sankofa.client.errors`.
"""

from sankofa.client.answers import Answer
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
    UnknownSeries,
    UpgradeRequired,
)
from sankofa.client.exchange import VERSION, Retries
from sankofa.client.methods import AsyncClient, Client
from sankofa.client.proofs import stamped_at, verify
from sankofa.client.shortcuts import look_ahead_check

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
    "UnknownSeries",
    "UpgradeRequired",
    "look_ahead_check",
    "stamped_at",
    "verify",
]

__version__ = VERSION
