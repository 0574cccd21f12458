"""An issuer with so many facts that Arrow and CSV are taken from columns kept beside them."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow
import pytest

from sankofa.edition.format.columns import COLUMNS_FROM
from sankofa.model.identifiers import service_id
from sankofa.operations.contract import endpoints
from sankofa.rest.formats import ARROW
from tests.depth import deep_after
from tests.live import LiveServer, succeed
from tests.spec.test_formats import arrow_text, arrow_value, as_json, csv_text

ISSUER = "registry:ZA-CIPC:2001/000001/06"
HEADER = "entity,line_item,value,currency,period_start,period_end,available_at,document,location"
(OPERATION,) = (o for o in endpoints() if o.name == "get_fundamentals")


@pytest.fixture(scope="module")
def crowded(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One issuer with a few more facts than it takes, one in five of them restated a year later."""
    folder: Path = tmp_path_factory.mktemp("crowded")
    lines = [HEADER]
    for item in range(COLUMNS_FROM // 5):
        for year in range(2018, 2024):
            period = f"ZAR,{year}-01-01,{year}-{'12-31' if item % 3 else '06-30'}"
            filing = f"{year + 1}-03-01,afs-{year},"
            note = f'"p. {item}, a ""note"""' if year > 2020 else f"p. {item}"  # written by two writers
            lines.append(f"{ISSUER},item_{item},{year}.{item}0,{period},{filing}{note}")
            if item % 5 == 0:
                lines.append(
                    f"{ISSUER},item_{item},-{item},{period},{year + 2}-03-01,afs-{year + 1},p. {item}"
                )
    filings = folder / "filings.csv"
    filings.write_text("\n".join(lines) + "\n")
    home = folder / "home"
    for command in (("ingest", "--strict", "filings", filings), ("publish",)):
        succeed(home, *command, **engine)
    with LiveServer(home, workers=1, **engine) as live:
        yield live


@pytest.mark.parametrize("as_of", deep_after(2, ["2021-03-01", "", "2019-06-30"]))
@pytest.mark.parametrize("vintages", ["latest", "as_reported", "all"])
@pytest.mark.parametrize("period_type", ["FY", ""])
def test_arrow_and_csv_have_the_rows_of_json(
    crowded: LiveServer, as_of: str, vintages: str, period_type: str
) -> None:
    key = crowded.key("starter")
    given = {"as_of": as_of, "vintages": vintages, "period_type": period_type}
    query = urlencode({name: value for name, value in given.items() if value})
    same_in_every_form(crowded, key, f"/v1/fundamentals/{service_id(ISSUER)}?{query}")


@pytest.mark.rule("LOCK-3")
@pytest.mark.parametrize("vintages", ["latest", "all"])
def test_a_locked_view_tells_no_capture_in_any_form(crowded: LiveServer, vintages: str) -> None:
    key = crowded.key("starter")
    rows = same_in_every_form(
        crowded, key, f"/at/2021-03-01/v1/fundamentals/{service_id(ISSUER)}?vintages={vintages}"
    )
    assert {row["observed_at"] for row in rows} == {None}


def same_in_every_form(crowded: LiveServer, key: str, path: str) -> list[dict[str, Any]]:
    """The rows of an answer, after they were compared with those of its other forms."""
    rows, body = as_json(crowded.get(path, key), OPERATION)
    answer = crowded.get(path, key, accept=ARROW)
    table = pyarrow.ipc.open_stream(answer.content).read_all()
    assert table.num_rows == body["count"] == len(rows) > 0
    for line, row in zip(table.to_pylist(), rows, strict=True):
        assert list(line) == list(row)
        for name, value in row.items():
            assert arrow_text(line[name]) == arrow_value(value, line[name]), name
    assert table.schema.metadata.get(b"edition", b"").decode() == (body["edition"] or "")
    text = crowded.get(path, key, accept="text/csv").text
    header, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert len(lines) == len(rows)
    for fields, row in zip(lines, rows, strict=True):
        assert header == list(row)
        assert [csv_text(row[name], cell) for name, cell in zip(header, fields, strict=True)] == fields
    return rows
