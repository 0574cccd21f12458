"""SDMX answers that would be too large are refused, never cut."""

import shutil
from pathlib import Path

import httpx
import pytest

from sankofa.dialects import sdmx
from sankofa.dialects.app import DialectsApp
from sankofa.operations.service import Service
from sankofa.settings import Settings
from tests.live import create_key
from tests.patience import wait

_DATA = "/sdmx/data/dataflow/SANKOFA/MACRO/1.0.0/*"


async def _answer(home: Path, key: str) -> httpx.Response:
    service = Service(Settings(home=home))
    await service.start()
    try:
        transport = httpx.ASGITransport(app=DialectsApp(service))
        headers = {"x-api-key": key, "accept": "application/vnd.sdmx.data+csv"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers
        ) as client:
            return await client.get(_DATA)
    finally:
        await service.stop()


@pytest.mark.limit("observations of an SDMX answer", "series of an SDMX data query")
@pytest.mark.parametrize("bound", ["MOST_SERIES", "MOST_OBSERVATIONS"])
def test_too_many_series_or_observations_are_refused(
    sample_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    home = Path(shutil.copytree(sample_home, tmp_path / "home"))
    key = create_key(home, "professional")
    assert wait(_answer(home, key)).status_code == 200
    monkeypatch.setattr(sdmx, bound, 3)
    refused = wait(_answer(home, key))
    assert refused.status_code == 400
    assert "at most 3" in refused.text or "more than 3" in refused.text
