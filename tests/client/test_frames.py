"""JSON and Arrow give the same typed frame, with its provenance and its subject."""

import importlib
import importlib.util
from decimal import Decimal
from typing import Any

import pandas
import polars
import polars.testing
import pyarrow
import pytest

from sankofa.client import Answer, Client, MissingLibrary
from sankofa.client import frames as frames_module
from tests.client.test_endpoints import QUESTIONS
from tests.depth import deep_after
from tests.every import every

RIFTLINE = "DC8342E4A6CD9A7F25CAC383F4"
PROVENANCE = ["source_ref", "license_class", "observed_at"]
MATRICES = ("get_series_matrix", "get_fundamentals_matrix")
"""Tables for spreadsheets and regressions: only JSON has their provenance."""


def both(client: Client, name: str, arguments: dict[str, Any]) -> tuple[Answer[Any], Answer[Any]]:
    return getattr(client, name)(**arguments), getattr(client.columns, name)(**arguments)


@pytest.mark.filterwarnings("ignore::sankofa.client.TruncatedWarning")
@pytest.mark.parametrize("figures", deep_after(1, ["decimal", "text", "float"]))
@pytest.mark.parametrize(
    ("name", "arguments"), deep_after(10, [one for one in QUESTIONS if one[0] not in MATRICES])
)
def test_json_and_arrow_give_the_same_frame(
    client: Client, name: str, arguments: dict[str, Any], figures: Any
) -> None:
    by_json, by_arrow = both(client, name, arguments)
    pandas.testing.assert_frame_equal(by_json.to_pandas(figures=figures), by_arrow.to_pandas(figures=figures))
    polars.testing.assert_frame_equal(by_json.to_polars(figures=figures), by_arrow.to_polars(figures=figures))
    assert by_json.to_arrow().equals(by_arrow.to_arrow(), check_metadata=True)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_keep_their_provenance_and_subject(client: Client, kind: str) -> None:
    for answer in both(client, "get_fundamentals", {"service_id": RIFTLINE, "as_of": "2024-12-31"}):
        frame = getattr(answer, f"to_{kind}")()
        columns = frame.column_names if kind == "arrow" else list(frame.columns)
        assert columns[:3] == PROVENANCE
        assert columns == list(answer.rows[0])
        metadata = frame.schema.metadata if kind == "arrow" else frame.attrs
        attrs = {
            k.decode() if isinstance(k, bytes) else k: v.decode() if isinstance(v, bytes) else v
            for k, v in metadata.items()
        }
        assert attrs == {
            "_license": answer.license,
            "as_of": "2024-12-31",
            "edition": answer.edition,
            "truncated": "false" if kind == "arrow" else False,
        }


def test_columns_are_typed(client: Client) -> None:
    answer = client.columns.get_fundamentals(RIFTLINE)
    frame = answer.to_pandas()
    assert str(frame["period_end"].dtype) == "datetime64[us]"
    assert str(frame["observed_at"].dtype) == "datetime64[us, UTC]"
    assert str(frame["fiscal_year"].dtype) == "Int64"
    assert str(frame["restated"].dtype) == "boolean"
    assert str(frame["value_reported"].dtype) == "float64"
    assert str(answer.to_pandas(figures="text")["value_reported"].dtype) == "str"
    schema = answer.to_polars().schema
    assert schema["period_end"] == polars.Date
    assert schema["observed_at"] == polars.Datetime("us", "UTC")
    table = answer.to_arrow().schema
    assert table.field("available_at").type == pyarrow.date32()


def test_null_is_a_missing_value(client: Client) -> None:
    for answer in both(client, "get_fundamentals", {"service_id": RIFTLINE, "vintages": "all"}):
        frame, other = answer.to_pandas(), answer.to_polars()
        for name in ("concept", "superseding_record_ref", "superseded_at", "period_start"):
            nulls = sum(dict(row)[name] is None for row in answer.rows)
            assert 0 < nulls == frame[name].isna().sum() == other[name].null_count(), name


def test_figures_keep_every_digit(client: Client) -> None:
    answer = client.columns.get_macro(country="NG", indicator="NY.GDP.MKTP.CD", limit=100)
    rows: list[Any] = answer.rows
    exact = {row["year"]: row["value"] for row in rows}
    assert exact[2023] == Decimal("477692972122.2045")
    text = answer.to_pandas(figures="text").set_index("year")["value"]
    assert text[2023] == "477692972122.2045"
    assert answer.to_pandas(figures="decimal").set_index("year")["value"][2023] == Decimal(
        "477692972122.2045"
    )
    assert answer.to_pandas().set_index("year")["value"][2023] == 477692972122.2045
    assert answer.to_polars(figures="decimal").filter(polars.col("year") == 2023)["value"][0] == exact[2023]


@every("figures", [("1" * 39,), ("1" * 30, "0.123456789"), ("0." + "1" * 39,)])
def test_a_figure_too_large_for_a_polars_decimal_is_not_null(figures: tuple[str, ...]) -> None:
    rows = [{"value": Decimal(figure)} for figure in figures]
    with pytest.raises(ValueError, match="value: the 38 digits"):
        frames_module.to_polars(rows, {"value": "figure"}, {}, "decimal")
    largest = frames_module.to_polars(
        [{"value": Decimal("1" * 38)}, {"value": None}], {"value": "figure"}, {}, "decimal"
    )
    assert largest["value"].to_list() == [Decimal("1" * 38), None]


def test_an_unknown_option_for_figures_is_refused(client: Client) -> None:
    answer = client.get_fundamentals(RIFTLINE, limit=1)
    wrong: Any = "txt"
    for frame in (answer.to_pandas, answer.to_polars):
        with pytest.raises(ValueError, match="figures: expected one of float, decimal, text, not 'txt'"):
            frame(figures=wrong)


def test_an_empty_answer_is_a_frame_with_columns(client: Client) -> None:
    for answer in both(client, "get_fundamentals", {"service_id": RIFTLINE, "as_of": "1990-01-01"}):
        assert answer.to_pandas().shape == (0, 25)
        assert answer.to_polars().shape == (0, 25)
        assert str(answer.to_pandas()["period_end"].dtype) == "datetime64[us]"


def test_a_saved_frame_keeps_its_subject(client: Client, tmp_path: Any) -> None:
    frame = client.columns.get_fundamentals(RIFTLINE).to_pandas()
    frame.to_parquet(tmp_path / "f.parquet")
    assert pandas.read_parquet(tmp_path / "f.parquet").attrs == frame.attrs


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pretend that these libraries are not installed."""

    def remove(*names: str) -> None:
        find_installed, load = importlib.util.find_spec, importlib.import_module

        def find_spec(name: str) -> Any:
            return None if name.partition(".")[0] in names else find_installed(name)

        def import_module(name: str) -> Any:
            if name.partition(".")[0] in names:
                raise ImportError(name)
            return load(name)

        monkeypatch.setattr(frames_module, "find_spec", find_spec)
        monkeypatch.setattr(frames_module, "import_module", import_module)

    return remove


def test_polars_reads_columns_without_pandas(client: Client, without: Any) -> None:
    expected = client.columns.get_fundamentals(RIFTLINE)
    without("pyarrow", "pandas")
    answer = client.columns.get_fundamentals(RIFTLINE)
    polars.testing.assert_frame_equal(answer.to_polars(), expected.to_polars())
    assert answer.rows == client.get_fundamentals(RIFTLINE).rows
    assert answer.attrs == expected.attrs
    with pytest.raises(MissingLibrary, match="pip install pandas"):
        answer.to_pandas()


def test_pandas_reads_json_without_polars(client: Client, without: Any) -> None:
    expected = client.columns.get_fundamentals(RIFTLINE).to_pandas()
    without("pyarrow", "polars")
    answer = client.columns.get_fundamentals(RIFTLINE)
    pandas.testing.assert_frame_equal(answer.to_pandas(), expected)
    with pytest.raises(MissingLibrary, match="pip install polars"):
        answer.to_polars()
