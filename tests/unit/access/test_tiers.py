"""Caps of each tier (contract: KEY-14, PAR-4)."""

import pytest

from sankofa.access.tiers import Grant, grant
from sankofa.model.errors import UpgradeRequired
from sankofa.settings import Settings

SETTINGS = Settings()


def of(tier: str, per_minute: int | None = None, per_month: int | None = None) -> Grant:
    return grant(SETTINGS, "id", tier, per_minute, per_month)


@pytest.mark.rule("KEY-14")
@pytest.mark.parametrize(
    ("tier", "rows", "default", "minute", "month"),
    [
        ("sample", 25, 25, 60, 5_000),
        ("starter", 10_000, 100, 300, 100_000),
        ("professional", 10_000, 100, 1_200, 2_000_000),
    ],
)
def test_the_defaults_are_the_decided_ones(
    tier: str, rows: int, default: int, minute: int, month: int
) -> None:
    of_tier = of(tier)
    assert (of_tier.row_cap, of_tier.default_rows, of_tier.per_minute, of_tier.per_month) == (
        rows,
        default,
        minute,
        month,
    )


@pytest.mark.rule("KEY-14")
def test_a_limit_of_its_own_replaces_that_of_the_tier() -> None:
    own = of("starter", 7, 70)
    assert (own.per_minute, own.per_month) == (7, 70)


@pytest.mark.parametrize("limit", [26, 10_000, 10**99])
def test_the_sample_tier_pays_for_more(limit: int) -> None:
    with pytest.raises(UpgradeRequired) as refused:
        of("sample").rows(limit)
    assert refused.value.status == 402
    assert refused.value.members() == {"upgrade": {"checkout_url": SETTINGS.upgrade_url}}
    assert refused.value.headers() == [("X-Upgrade-URL", SETTINGS.upgrade_url)]


@pytest.mark.parametrize(
    ("limit", "rows"),
    [(None, 100), (1, 1), (10_000, 10_000), (10_001, 10_000), (10**99, 10_000)],
)
def test_a_paid_tier_gets_its_ceiling_at_most(limit: int | None, rows: int) -> None:
    assert of("starter").rows(limit) == rows


def test_a_small_ceiling_also_bounds_the_default() -> None:
    assert grant(Settings(rows_paid=10), "id", "starter", None, None).rows(None) == 10
