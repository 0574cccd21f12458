"""The benchmarks write their figures: a run appends them, and the page shows the latest of each."""

import json
from pathlib import Path

import pytest

from bench import history
from bench.__main__ import _names


def test_the_page_of_the_benchmarks_has_the_table_that_the_history_gives():
    assert history.PAGE.read_text(encoding="utf-8") == history.page(), "run `python -m bench table`"


def test_every_figure_is_of_a_benchmark_that_exists():
    lines = [json.loads(line) for line in history.HISTORY.read_text(encoding="utf-8").splitlines()]
    assert {line["benchmark"].split()[0] for line in lines} <= _names()


def test_a_run_appends_its_figure_and_says_whether_it_meets_the_goal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("BENCH_HISTORY", str(tmp_path / "history.jsonl"))
    monkeypatch.setattr("sys.argv", ["bench/start.py", "--scale", "small"])
    assert history.report("first rows", 0.84, unit="s", most=1)
    assert not history.report("rate", 0.2, least=0.25)
    lines = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert [(line["benchmark"], line["measure"], line["figure"]) for line in lines] == [
        ("start --scale small", "first rows", 0.84),
        ("start --scale small", "rate", 0.2),
    ]
    assert "0.2  rate; goal: at least 0.25: missed" in capsys.readouterr().out


def test_the_table_has_the_latest_figure_of_each_measure():
    older = {
        "benchmark": "start",
        "measure": "first rows",
        "figure": 2.0,
        "unit": "s",
        "most": 1,
        "date": "2026-11-01",
    }
    newer = {**older, "figure": 1234.5, "date": "2026-11-02"}
    rows = history.table([older, newer]).splitlines()[2:]
    assert rows == ["| `start` | first rows | 1,234 s | at most 1: missed | 2026-11-02 |"]
