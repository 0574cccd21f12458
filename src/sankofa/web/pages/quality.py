"""Quality: what passes, what fails, what was not measured."""

from typing import Any, Final

from sankofa.model.provenance import SKUS
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_STATUSES: Final = ("PASS", "FAIL", "UNMEASURED")
_SHARES: Final = ("share_", "coverage_", "restatement_rate")
_COVERAGE: Final = "coverage_"


@page("/quality")
async def quality(visit: Visit) -> View:
    """Every measure of every dataset, with what passes at a glance."""
    datasets = []
    for sku in SKUS:
        rows = (await visit.ask("get_quality_metrics", sku=sku)).rows
        datasets.append({"sku": sku, "rows": [_read(row) for row in rows], "counts": _counts(rows)})
    return View("quality.html", visit.language.text("Quality"), {"datasets": datasets})


def _counts(rows: list[Row]) -> dict[str, int]:
    """How many measures have each status; those without a floor have none."""
    return {status: sum(row["status"] == status for row in rows) for status in _STATUSES}


def _read(row: Row) -> dict[str, Any]:
    """A measure with whether it is a share, and the metric whose coverage it is."""
    measure = row["measure"]
    of_metric = measure.removeprefix(_COVERAGE) if measure.startswith(_COVERAGE) else None
    return {**row, "is_share": measure.startswith(_SHARES), "of_metric": of_metric}
