"""/sdmx/: pysdmx and sdmx1, unmodified, read dated series as known on any day."""

import re
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from sankofa.dialects.sdmx import series_code
from tests.foreign import foreign
from tests.live import LiveServer, run

pytestmark = pytest.mark.slow
FLOW = "/sdmx/data/dataflow/SANKOFA/MACRO/1.0.0"
CLIENTS = """
import io
from datetime import datetime
import sdmx
from pysdmx.api.qb import *
from pysdmx.api.qb.service import RestService
from pysdmx.io import read_sdmx
from pysdmx.io.format import DataFormat, StructureFormat
service = RestService(
    inputs["link"].rstrip("/"),
    ApiVersion.V2_2_0,
    structure_format=StructureFormat.SDMX_JSON_2_0_0,
    data_format=DataFormat.SDMX_CSV_2_0_0,
)
flow = ("SANKOFA", "MACRO", "1.0.0")
query = StructureQuery(StructureType.DATAFLOW, *flow, references=StructureReference.DESCENDANTS)
structure = read_sdmx(io.BytesIO(service.structure(query)))  # held against the schema of SDMX-JSON
(definition,) = structure.get_data_structure_definitions()
output["components"] = [one.id for one in definition.components]
output["codes"] = {one.id: one.name for one in definition.components["SERIES"].local_codes.items}
every = read_sdmx(io.BytesIO(service.structure(StructureQuery(StructureType.DATAFLOW))))
output["flows"] = [one.id for one in every.get_dataflows()]
service.availability(AvailabilityQuery(DataContext.DATAFLOW, *flow))

def rows(**question):
    query = DataQuery(DataContext.DATAFLOW, *flow, "..CPI_ZA", **question)
    return read_sdmx(io.BytesIO(service.data(query))).data[0].data.to_dict("records")

output["as_of"] = {day: rows(as_of=datetime.fromisoformat(day + "T23:59:59+00:00")) for day in inputs["days"]}
output["history"] = rows(include_history=True)
output["last"] = rows(last_n_obs=2)
output["updated"] = rows(updated_after=datetime.fromisoformat(inputs["days"][0] + "T23:59:59+00:00"))
sdmx.add_source({"id": "SANKOFA", "name": "Sankofa", "url": inputs["base"] + "/sdmx", "versions": ["3.0.0"]})
client = sdmx.Client("SANKOFA")
client.session.headers["X-API-Key"] = inputs["key"]
output["listed"] = list(client.dataflow().dataflow)
message = client.data("MACRO", key={"SERIES": "CPI_ZA"})
frame = sdmx.to_pandas(message.data[0])
output["frame"] = {index[-1]: float(value) for index, value in frame.items()}
"""


@pytest.mark.ci
@pytest.mark.rule("DIA-7")
def test_pysdmx_and_sdmx1_read_the_values_of_the_api(server: LiveServer, paid_key: str) -> None:
    listed = run(server.home, "keys", "list", "--json")
    key_id = next(
        one["id"] for one in msgspec.json.decode(listed.stdout) if one["tier"] in ("starter", "professional")
    )
    link = run(server.home, "keys", "link", key_id, "--dialect", "sdmx").stdout.strip()
    link = server.url + link[link.index("/link/") :]
    days = ["2023-05-31", "2024-02-29"]
    output = foreign(CLIENTS, link=link, base=server.url, key=paid_key, days=days)
    assert output["components"] == ["FREQ", "REF_AREA", "SERIES", "TIME_PERIOD", "OBS_VALUE", "AVAILABLE_AT"]
    assert output["flows"] == output["listed"] == ["MACRO"]
    assert output["codes"]["CPI_ZA"] == "CPI.ZA"

    def served(day: str = "") -> dict[str, Any]:
        as_of = f"&as_of={day}" if day else ""
        body = server.exact(f"/v1/macro?series=CPI.ZA&limit=10000{as_of}", paid_key)
        return {row["date"]: row for row in body["data"]}

    for day in days:
        values = {row["TIME_PERIOD"]: Decimal(row["OBS_VALUE"]) for row in output["as_of"][day]}
        assert values == {date: row["value"] for date, row in served(day).items()}
    today = served()
    assert output["frame"] == {date: float(row["value"]) for date, row in today.items()}
    assert [row["TIME_PERIOD"] for row in output["last"]] == sorted(today)[-2:]
    assert {row["TIME_PERIOD"] for row in output["updated"]} == {
        date for date, row in today.items() if row["available_at"] > days[0]
    }
    path = "/v1/series/CPI.ZA/matrix?release="
    releases = [server.exact(f"{path}{n}", paid_key)["data"] for n in range(1, 9)]
    vintages = {(one["date"], one["available_at"], one["value"]) for some in releases for one in some}
    history = {(r["TIME_PERIOD"], r["AVAILABLE_AT"], Decimal(r["OBS_VALUE"])) for r in output["history"]}
    assert history == vintages
    assert len(history) > len(today)


@pytest.mark.rule("DIA-7", "LOCK-2")
def test_a_locked_view_has_the_values_of_its_day(server: LiveServer, paid_key: str) -> None:
    day = "2024-02-29"
    locked = server.get(f"/at/{day}{FLOW}/..CPI_ZA", paid_key)
    assert locked.text == server.get(f"{FLOW}/..CPI_ZA?asOf={day}T23:59:59%2B00:00", paid_key).text
    assert server.get(f"/at/{day}{FLOW}/..CPI_ZA?asOf=2024-03-01", paid_key).status_code == 400
    assert (
        server.get(f"/at/{day}{FLOW}/..CPI_ZA?asOf=2024-03-01&includeHistory=true", paid_key).status_code
        == 400
    )
    history = server.get(f"/at/{day}{FLOW}/..CPI_ZA?includeHistory=true", paid_key).text.splitlines()[1:]
    assert max(line.rpartition(",")[2] for line in history) <= day


@pytest.mark.rule("DIA-7")
def test_filters_formats_and_refusals_of_sdmx(server: LiveServer, paid_key: str, sample_key: str) -> None:
    whole = server.get(f"{FLOW}/M.ZA.CPI_ZA", paid_key).text.splitlines()
    part = server.get(f"{FLOW}?c[SERIES]=CPI_ZA&c[TIME_PERIOD]=ge:2023-01-01%2Ble:2023-12-31", paid_key)
    assert part.text.splitlines()[1:] == [line for line in whole if ",2023-" in line.rpartition(",")[0][:-8]]
    dated = [r for r in server.get("/v1/series?limit=10000", paid_key).json()["data"] if r["vintages"]]
    listed = server.get("/sdmx/structure/codelist/SANKOFA/CL_SERIES/+", paid_key).text
    assert set(re.findall(r'<str:Code id="(\w+)"', listed)) >= {series_code(row["series"]) for row in dated}
    assert "WDI_" not in listed  # the annual tables of this world have no day
    accept = "application/vnd.sdmx.data+json;version=2.0.0"
    for query, name in (("", "series"), ("&dimensionAtObservation=AllDimensions", "observations")):
        body = server.get(f"{FLOW}/..CPI_ZA?lastNObservations=2{query}", paid_key, accept=accept).json()
        (data,) = body["data"]["dataSets"]
        assert data[name]
    answers = {
        f"{FLOW}/..NO_SUCH": (paid_key, 404),
        f"{FLOW}/CPI_ZA": (paid_key, 400),
        f"{FLOW}/..CPI_ZA?asOf=x": (paid_key, 400),
        f"{FLOW}/..CPI_ZA?lastNObservations=x": (paid_key, 400),
        f"{FLOW}/..CPI_ZA?lastN=1": (paid_key, 400),
        f"{FLOW}/..CPI_ZA?dimensionAtObservation=SERIES": (paid_key, 400),
        f"{FLOW}/..CPI_ZA": (sample_key, 402),
        "/sdmx/data/dataflow/ECB/EXR/1.0": (paid_key, 404),
        "/sdmx/structure/metadataset": (paid_key, 404),
    }
    for path, (key, status) in answers.items():
        answer = server.get(path, key, accept=accept)
        assert (answer.status_code, "errors" in answer.json()) == (status, True), path
    few = server.get(f"{FLOW}/..CPI_ZA?startPeriod=2025", sample_key)
    assert few.status_code == 200, few.text
    last = server.get(f"{FLOW}/..CPI_ZA?lastNObservations=5", sample_key)
    assert last.text.splitlines()[1:] == whole[-5:]
    for name, value in (("asOf", "2999-01-01T00:00:00Z"), ("TIME_PERIOD", "2024-13")):
        query = f"asOf={value}" if name == "asOf" else f"startPeriod={value}"
        refused = server.get(f"{FLOW}/..CPI_ZA?{query}", paid_key)
        assert (refused.status_code, refused.json()["errors"][0]["detail"][: len(name)]) == (400, name)


@pytest.mark.rule("DIA-7")
@pytest.mark.parametrize("day", [None, "2024-06-30", "2022-03-15"])
def test_every_selection_of_sdmx_has_the_values_of_the_api(
    server: LiveServer, paid_key: str, day: str | None
) -> None:
    as_of = f"&as_of={day}" if day else ""
    for code, series in (("CPI_ZA", "CPI.ZA"), ("FX_EUR_ZAR", "FX.EUR.ZAR")):
        rows = server.get(f"/v1/macro?series={series}&limit=10000{as_of}", paid_key).json()["data"]
        served = [(row["date"], row["value"], row["available_at"]) for row in reversed(rows)]
        assert served
        selections = {
            "": served,
            "firstNObservations=3": served[:3],
            "lastNObservations=2": served[-2:],
            "firstNObservations=1&lastNObservations=2": [*dict.fromkeys((*served[:1], *served[-2:]))],
            "startPeriod=2021&endPeriod=2023-06": [
                one for one in served if one[0] >= "2021" and one[0][:7] <= "2023-06"
            ],
            "updatedAfter=2022-01-01T00:00:00Z": [one for one in served if one[2] >= "2022-01-01"],
        }
        views = [(f"/at/{day}", ""), ("", f"asOf={day}T23:59:59Z")] if day else [("", "")]
        for selection, expected in selections.items():
            for prefix, more in views:
                path = f"{prefix}{FLOW}/..{code}?{'&'.join(filter(None, (selection, more)))}"
                answer = server.get(path, paid_key)
                assert answer.status_code == (200 if expected else 404), path
                lines = [line.split(",")[-3:] for line in answer.text.splitlines()[1:]] if expected else []
                assert [(at, float(value), public) for at, value, public in lines] == expected, path
