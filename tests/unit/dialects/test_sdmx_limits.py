"""SDMX answers that would be too large are refused, never cut."""

import asyncio
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from sankofa.dialects import sdmx
from sankofa.dialects.contract import DialectRequest
from sankofa.model.errors import InvalidParameter


class Asked:
    """A question to a world of so many series, each with so many values."""

    def __init__(self, series: int, values: int) -> None:
        self.request = DialectRequest("GET", "/sdmx", "data/dataflow/SANKOFA/MACRO/1.0.0", (), {})
        self.call = SimpleNamespace(today=date(2024, 1, 1), grant=SimpleNamespace(sample=False))
        self._series, self._values = series, values

    async def rows(self, name: str, **_: Any) -> list[dict[str, Any]]:
        if name == "list_series":
            one = {"frequency": "daily", "country": "ZA", "vintages": 1}
            return [{**one, "series": f"S{number}"} for number in range(self._series)]
        return [
            {"date": f"{n:04}-01-01", "value": 1, "available_at": "2024-01-01"} for n in range(self._values)
        ]


@pytest.mark.limit("observations of an SDMX answer", "series of an SDMX data query")
def test_too_many_series_or_observations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidParameter, match="at most"):
        asyncio.run(sdmx.DIALECT.answer(Asked(sdmx.MOST_SERIES + 1, 0)))  # type: ignore[arg-type]
    monkeypatch.setattr(sdmx, "MOST_OBSERVATIONS", 7)
    with pytest.raises(InvalidParameter, match="narrow"):
        asyncio.run(sdmx.DIALECT.answer(Asked(2, 4)))  # type: ignore[arg-type]
