"""Names and units of series and indicators from publishers' metadata."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spec.market import Desk, PaidCaller

TIDY = "Country Name,Country Code,Year,Value\nKenya,KEN,2020,4.5\nNigeria,NGA,2020,7\n"
DOWNLOAD = (
    '"INDICATOR_CODE","INDICATOR_NAME","SOURCE_NOTE","SOURCE_ORGANIZATION",\n'
    '"EG.USE.ELEC","Electric power use (kWh per capita)","What power\nplants produce.","IEA",\n'
)
BULK = (
    "Series Code,Topic,Indicator Name,Short definition,Long definition,Unit of measure,Periodicity\n"
    'SP.POP.TEST,Health,"Population, counted",,Everyone,persons,Annual\n'
    'bad code!,Health,"No code",,Everyone,persons,Annual\n'
)
API = [
    {"page": 1, "pages": 1, "per_page": "50", "total": 1},
    [
        {
            "id": "PA.TEST.FX",
            "name": "A rate without parentheses",
            "unit": "LCU per US$",
            "source": {"id": "2", "value": "World Development Indicators"},
            "sourceNote": "How it is made.",
            "sourceOrganization": "IMF",
            "topics": [],
        }
    ],
]
POINTS = [
    {"page": 1, "pages": 1, "per_page": 50, "total": 1, "lastupdated": "2026-07-01"},
    [
        {
            "indicator": {"id": "XX.UNIT", "value": "With a unit of its own"},
            "country": {"id": "KE", "value": "Kenya"},
            "countryiso3code": "KEN",
            "date": "2020",
            "value": 3,
            "unit": "tonnes",
            "obs_status": "",
            "decimal": 0,
        }
    ],
]
OBSERVATIONS = {
    "realtime_start": "2020-01-01",
    "realtime_end": "9999-12-31",
    "units": "lin",
    "output_type": 1,
    "observations": [
        {"realtime_start": "2020-03-01", "realtime_end": "9999-12-31", "date": day, "value": "1.5"}
        for day in ("2020-01-01", "2020-02-01")
    ],
}
FRED = {
    "seriess": [
        {
            "id": "TESTX",
            "realtime_start": "2026-01-01",
            "title": "A test of prices: all items",
            "frequency": "Monthly",
            "units": "Index 2015=100",
        }
    ]
}


def archive(**files: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as target:
        for name, text in files.items():
            target.writestr(f"{name}.csv", text)
    return content.getvalue()


@pytest.fixture(scope="module")
def desk(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = Desk(tmp_path_factory.mktemp("metadata"), **engine)
    download = archive(**{"eg.use.elec": TIDY, "Metadata_Indicator_API_EG": DOWNLOAD})
    first = desk.ingest("worldbank", "eg.zip", download)
    assert (first["appended"], first["rejected"]) == (3, 0)
    assert desk.ingest("worldbank", "eg.zip", download)["appended"] == 0
    assert desk.ingest("worldbank", "WDISeries.csv", BULK)["rejected"] == 1
    desk.ingest("worldbank", "indicator.json", API)
    desk.ingest("worldbank", "XX.UNIT.json", POINTS)
    for code in ("sp.pop.test", "pa.test.fx", "no.such.meta"):
        desk.ingest("worldbank", f"{code}.csv", TIDY)
    desk.ingest("alfred", "TESTX.json", OBSERVATIONS)
    assert desk.ingest("alfred", "series.json", FRED)["appended"] == 1
    assert desk.ingest("alfred", "series.json", FRED)["unchanged"] == 1
    other = "series,series_type,frequency,date,value\nTESTX.OWN,cpi,weekly,2020-01-06,9\n"
    desk.ingest("series", "own.csv", other)
    desk.publish()
    return desk


@pytest.fixture(scope="module")
def caller(desk: Desk) -> Iterator[PaidCaller]:
    with desk.serve() as caller:
        yield caller


EXPECTED = {
    "EG.USE.ELEC": ("Electric power use (kWh per capita)", "kWh per capita"),
    "SP.POP.TEST": ("Population, counted", "persons"),
    "PA.TEST.FX": ("A rate without parentheses", "LCU per US$"),
    "XX.UNIT": ("With a unit of its own", "tonnes"),
    "NO.SUCH.META": (None, None),
}


@pytest.mark.both_engines
@pytest.mark.rule("MACRO-10")
@pytest.mark.parametrize(("indicator", "expected"), EXPECTED.items())
def test_an_indicator_has_the_name_and_unit_of_its_metadata(
    caller: PaidCaller, indicator: str, expected: tuple[str | None, str | None]
) -> None:
    (row,) = caller.get("/v1/macro", indicator=indicator, country="KE")["data"]
    assert (row["indicator_name"], row["unit"]) == expected
    (listed,) = [
        one for one in caller.get("/v1/series", country="KE", limit=100)["data"] if one["series"] == indicator
    ]
    assert (listed["name"], listed["unit"]) == expected
    if expected[0]:
        hits = caller.get("/v1/search", q=expected[0], type="indicator")["data"]
        assert (hits[0]["id"], hits[0]["name"]) == (indicator, expected[0])


@pytest.mark.both_engines
@pytest.mark.rule("MACRO-10")
def test_a_series_takes_name_and_unit_from_its_own_source_only(caller: PaidCaller) -> None:
    rows: list[dict[str, Any]] = caller.get("/v1/macro", series="TESTX")["data"]
    assert {(row["frequency"], row["unit"]) for row in rows} == {("monthly", "Index 2015=100")}
    listed = {one["series"]: one for one in caller.get("/v1/series", q="TESTX")["data"]}
    assert (listed["TESTX"]["name"], listed["TESTX"]["unit"]) == (
        "A test of prices: all items",
        "Index 2015=100",
    )
    own = listed["TESTX.OWN"]
    assert (own["name"], own["unit"]) == ("Consumer price index (CPI), weekly", None)


def test_metadata_are_sealed_backed_up_and_withdrawn_with_their_file(desk: Desk, tmp_path: Any) -> None:
    assert desk.command("ledger", "verify").returncode == 0
    backup = tmp_path / "backup.tar"
    assert desk.command("backup", backup).returncode == 0
    copy = Desk(tmp_path / "copy", **({} if not desk.settings else {"datastore": "sqlite:"}))
    (copy.home / "sources.toml").unlink()
    restored = copy.command("restore", backup)
    assert restored.returncode == 0, restored.stderr
    done = copy.command("withdraw", "worldbank", "--file", "WDISeries.csv", "--reason", "a test")
    assert done.returncode == 0, done.stderr
    with copy.publish_and_serve() as caller:
        (row,) = caller.get("/v1/macro", indicator="SP.POP.TEST", country="KE")["data"]
        assert (row["indicator_name"], row["unit"]) == (None, None)
        (row,) = caller.get("/v1/macro", indicator="PA.TEST.FX", country="KE")["data"]
        assert row["unit"] == "LCU per US$"
