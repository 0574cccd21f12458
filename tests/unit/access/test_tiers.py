"""Caps of each tier (contract: KEY-14, PAR-4)."""

import pytest

from sankofa.access.tiers import Grant, grant
from sankofa.settings import Settings
from tests.every import every

SETTINGS = Settings()


def of(tier: str, per_minute: int | None = None, per_month: int | None = None) -> Grant:
    return grant(SETTINGS, "id", tier, per_minute, per_month)


@pytest.mark.rule("KEY-14")
@every(
    ("tier", "rows", "default", "minute", "month"),
    [
        ("sample", 25, 25, 60, 5_000),
        ("starter", 10_000, 100, 300, 100_000),
        ("professional", 10_000, 100, 1_200, 2_000_000),
    ],
)
def test_the_defaults_are_the_decided_ones(tier: str, rows: int, default: int, minute: int, month: int):
    of_tier = of(tier)
    assert (of_tier.row_cap, of_tier.default_rows, of_tier.per_minute, of_tier.per_month) == (
        rows,
        default,
        minute,
        month,
    )
