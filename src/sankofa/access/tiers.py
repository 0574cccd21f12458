"""Tiers: what a key may ask for (contract: PAR-4, KEY-8, KEY-14)."""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final

import msgspec

from sankofa.model.errors import UpgradeRequired
from sankofa.settings import Settings

TIERS: Final = ("sample", "starter", "professional")


class Lock(msgspec.Struct, frozen=True):
    """The last day that a key may see: fixed, or moving forward with the clock (contract: LOCK-1)."""

    day: date
    last: date | None = None
    """The day at which a moving lock stops; None for today."""
    since: float = 0.0
    """The instant, in seconds since 1970, at which a moving lock was at `day`."""
    step_days: int = 0
    """Days that a moving lock advances at a time; 0 for a fixed one."""
    every_seconds: float = 1.0

    def on(self, now: datetime) -> date:
        """The day at an instant; never later than that instant's."""
        end = min(now.date(), self.last or now.date())
        if not self.step_days:
            return min(self.day, end)
        steps = max(0, int((now.timestamp() - self.since) / self.every_seconds))
        days_left = max(0, (end - self.day).days)
        return min(end, date.fromordinal(self.day.toordinal() + min(steps * self.step_days, days_left)))


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of an authenticated caller: the tier of its key, with the caps in force."""

    key_id: str
    tier: str
    row_cap: int
    default_rows: int
    per_minute: int | None
    per_month: int | None
    """None for the owner of the installation, as `per_minute`: no quota."""
    upgrade_url: str
    expires_at: str | None = None
    counted_as: str = ""
    """The key whose requests it is counted with, where that is another: the one it replaced."""
    lock: Lock | None = None
    """The day that it cannot see beyond; None for today."""
    link: str = ""
    """The id of the link that was presented in the place of the key."""
    owner: bool = False
    """Whether it is the key of the installation's owner."""
    presented: str = ""
    """The hash of the key or link that was presented."""
    sample: bool = field(init=False)
    counter: str = field(init=False)
    """The name its requests are counted under."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sample", self.tier == "sample")
        object.__setattr__(self, "counter", f"use:{self.counted_as or self.key_id}")

    def rows(self, limit: int | None) -> int:
        """How many rows at most to serve for a `limit`. Raises UpgradeRequired."""
        if limit is None:
            return self.default_rows
        if limit <= self.row_cap:
            return limit
        if self.sample:
            raise UpgradeRequired(
                f"limit: the sample tier serves at most {self.row_cap} rows; omit limit for the free preview "
                "or upgrade for more.",
                self.upgrade_url,
            )
        return self.row_cap

    def rows_or_all(self, limit: int | None) -> int | None:
        """The same where omitting `limit` asks for everything, which None stands for: a paid key gets it."""
        if limit is None:
            return self.default_rows if self.sample else None
        return self.rows(limit)

    def requires_paid(self, what: str) -> None:
        """Raises UpgradeRequired on the sample tier."""
        if self.sample:
            raise UpgradeRequired(f"{what} needs the starter tier or above.", self.upgrade_url)


def grant(
    settings: Settings,
    key_id: str,
    tier: str,
    per_minute: int | None,
    per_month: int | None,
    expires_at: str | None = None,
    counted_as: str = "",
    lock: Lock | None = None,
    *,
    owner: bool = False,
) -> Grant:
    """The grant of a key: its tier's caps, or its own where it has any."""
    return Grant(
        key_id=key_id,
        tier=tier,
        row_cap=settings.rows_sample if tier == "sample" else settings.rows_paid,
        default_rows=settings.rows_sample
        if tier == "sample"
        else min(settings.rows_default, settings.rows_paid),
        per_minute=None if owner else per_minute or getattr(settings, f"per_minute_{tier}"),
        per_month=None if owner else per_month or getattr(settings, f"per_month_{tier}"),
        upgrade_url=settings.upgrade_url,
        expires_at=expires_at,
        counted_as=counted_as,
        lock=lock,
        owner=owner,
    )
