"""The columns an edition keeps are its rows: on every day, in every mode, of every period type."""

from datetime import date
from pathlib import Path

import pytest

from sankofa.edition.format.columns import COLUMNS_FROM, columns_of, table_of, visible_rows
from sankofa.edition.format.visibility import ANY_TAG
from sankofa.edition.read.edition import Edition
from sankofa.model.identifiers import service_id
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.rows import EntityRow, FundamentalsRow
from sankofa.model.vintages import Mode
from tests.loop import wait
from tests.world.desk import Desk

LARGE, SMALL = "ticker:JSE:LRG", "ticker:JSE:SML"
YEARS = range(2015, 2023)
DAYS = [date(2014, 1, 1), date(2017, 6, 30), date(2020, 3, 31), date(2024, 1, 1)]


@pytest.fixture(scope="module")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """One issuer with many figures, some of them restated, and one with few."""
    folder: Path = tmp_path_factory.mktemp("flat")
    desk = Desk(folder / "home", date(2024, 1, 1))
    rows = []
    for year in YEARS:
        for item in range(COLUMNS_FROM // len(YEARS) + 1):
            period = [f"{year}-01-01", f"{year}-12-31" if item % 2 else f"{year}-06-30"]
            told = ["ZAR", *period, f"{year + 1}-02-01", f"report-{year}", f"p. {item}", "0.95"]
            rows.append([LARGE, f"item_{item}", f"{year}.{item:03}0", *told])
            if item % 7 == 0:
                again = ["ZAR", *period, f"{year + 2}-02-01", f"report-{year + 1}", f"p. {item}", ""]
                rows.append([LARGE, f"item_{item}", str(-item), *again])
    rows.append([SMALL, "revenue", "1", "ZAR", "2020-01-01", "2020-12-31", "2021-02-01", "d", "", ""])
    desk.filings("filings.csv", rows)
    return desk.publish()


@pytest.mark.parametrize("tag", [ANY_TAG, PERIOD_TYPES.index("FY"), PERIOD_TYPES.index("H1")])
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("day", DAYS)
def test_columns_are_the_rows_that_are_seen(edition: Edition, day: date, mode: Mode, tag: int) -> None:
    async def found() -> None:
        key = service_id(LARGE)
        selection = await edition.select("fundamentals", key, day=day.toordinal(), modes=int(mode), tag=tag)
        assert selection is not None
        assert selection.row_filter is not None
        kept = await edition.columns(selection.row_filter)
        assert kept
        columns = columns_of(FundamentalsRow)
        table = visible_rows(kept, columns, selection.row_filter, selection.count)
        if not selection.count:
            assert table is None or table.num_rows == 0
            return
        assert table is not None
        assert table.equals(table_of(columns, b"[%b]" % selection.rows), check_metadata=True)

    wait(found())


def test_few_rows_have_none(edition: Edition) -> None:
    async def found() -> int:
        selection = await edition.select("fundamentals", service_id(SMALL), day=DAYS[-1].toordinal())
        assert selection is not None
        assert selection.row_filter is not None
        return len(await edition.columns(selection.row_filter))

    assert wait(found()) == 0


def test_columns_of_another_shape_or_too_few_are_not_taken(edition: Edition) -> None:
    async def found() -> None:
        selection = await edition.select("fundamentals", service_id(LARGE), day=DAYS[-1].toordinal())
        assert selection is not None
        assert selection.row_filter is not None
        kept = await edition.columns(selection.row_filter)
        assert visible_rows(kept, columns_of(EntityRow), selection.row_filter, selection.count) is None
        assert (
            visible_rows(kept, columns_of(FundamentalsRow), selection.row_filter, selection.count + 1) is None
        )

    wait(found())
