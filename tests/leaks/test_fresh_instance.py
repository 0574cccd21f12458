"""Look-ahead: a past day of today's instance against a fresh instance that never saw later data.

The filings of the sample are cut at a day with news. On that day, the one before and the one after, every
issuer's figures must equal those of the fresh instance. Metrics and screens leave out (and count) values that
were revised since (MET-8); the values they show must equal the fresh ones.
"""

import csv
import shutil
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

import sankofa
from sankofa.derive.metrics.contract import metrics
from tests.live import LiveServer, publish_files
from tests.torture import Trial

SAMPLE = Path(sankofa.__file__).parent / "sample"
OF_THE_CAPTURE = ("rank", "source_ref", "observed_at", "inputs", "fact_id", "provenance_id", "record_ref")
"""Fields that tell of the file a row was read from, which is another one; and ranks, which have gaps here."""


def filings(folder: Path, until: date | None) -> set[date]:
    """The filings of the sample that were known up to `until`, and all days with news."""
    days = set()
    last = (until or date.max).isoformat()
    folder.mkdir(parents=True)
    for path in sorted((SAMPLE / "filings").glob("*.csv")):
        with path.open(newline="") as stream:
            reader = csv.DictReader(stream)
            rows = [row for row in reader if "" < row["available_at"] <= last]
            names = list(reader.fieldnames or ())
        if not rows:
            continue  # a file without rows is refused
        days |= {date.fromisoformat(row["available_at"]) for row in rows}
        with (folder / path.name).open("w", newline="") as stream:
            writer = csv.DictWriter(stream, names)
            writer.writeheader()
            writer.writerows(rows)
    return days


def instance(folder: Path, until: date | None) -> tuple[Path, set[date]]:
    home = folder / "home"
    days = filings(folder / "filings", until)
    publish_files(home, ("sample-lei", SAMPLE / "lei"), ("sample-filings", folder / "filings"))
    return home, days


def view(live: LiveServer, key: str, issuers: list[str], day: date) -> dict[str, Any]:
    """Every answer as of a day, without members about its capture."""
    paths = [f"/v1/{kind}/{one}?as_of={day}" for one in issuers for kind in ("fundamentals", "metrics")]
    paths += [f"/v1/screen?metric={metric.slug}&as_of={day}&limit=10000" for metric in metrics()]
    answers = {}
    for path in paths:
        answer = live.get(path, key)
        rows = answer.json().get("data", [])
        answers[path] = [{n: v for n, v in row.items() if n not in OF_THE_CAPTURE} for row in rows]
    return answers


def issuers_of(live: LiveServer, key: str) -> list[str]:
    rows = live.get("/v1/changes?dataset=entities&limit=10000", key).json()["data"]
    return sorted(row["key"][0] for row in rows)


@pytest.mark.deep
@pytest.mark.rule("PIT-1")
def test_a_past_day_equals_a_fresh_instance_without_later_data(tmp_path: Path, trial: Trial):
    whole, days = instance(tmp_path / "whole", None)
    past_days = sorted(day for day in days if day < date.today() - timedelta(days=2))  # noqa: DTZ011
    chosen = trial.chance.sample(past_days, min(len(past_days), trial.count(1, len(past_days))))
    rows = 0
    with LiveServer(whole) as live:
        key = live.key("professional", "--per-minute", "10000000", "--per-month", "100000000")
        issuers = issuers_of(live, key)
        for day in sorted(chosen):
            later = [one for one in past_days if one > day]
            fresh, _ = instance(tmp_path / "fresh", day)
            with LiveServer(fresh) as other:
                own = other.key("professional", "--per-minute", "10000000", "--per-month", "100000000")
                for as_of in (day - timedelta(days=1), day, day + timedelta(days=1)):
                    if later and as_of >= later[0]:
                        continue  # the next day has news of its own
                    expected, served = (view(s, k, issuers, as_of) for s, k in ((other, own), (live, key)))
                    for path, answer in expected.items():
                        if "/fundamentals/" in path:
                            assert served[path] == answer, (day, path)
                        for row in served[path]:
                            assert row in answer, (day, path)
                        rows += len(served[path])
                    trial.saw("days")
            shutil.rmtree(tmp_path / "fresh")
    assert rows
    trial.saw("rows the same", rows)
