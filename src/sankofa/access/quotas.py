"""Quotas: every authenticated request counts once, in one atomic step, whatever its outcome."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from sankofa.access.tiers import Grant
from sankofa.engines.keyvalue import KeyValue, Window
from sankofa.model.errors import RateLimited

_MONTH_KEPT = 40 * 86400


class Usage(NamedTuple):
    """Where a key stands after a request was counted; writes the RateLimit header fields."""

    policy: str
    state: str


class Quotas:
    """Counts requests per fixed UTC minute and per UTC calendar month."""

    def __init__(self, store: KeyValue, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock

    async def count(self, grant: Grant) -> tuple[Usage, RateLimited | None]:
        """Count one request; the second part is the refusal when it was one too many."""
        now = self._clock()
        minute = Window(f"m{int(now.timestamp()) // 60}", 120)
        month = Window(f"M{now:%Y%m}", _MONTH_KEPT)
        in_minute, in_month = await self._store.count(f"use:{grant.key_id}", (minute, month))
        minute_left, month_left = grant.per_minute - in_minute, grant.per_month - in_month
        minute_ends, month_ends = 60 - now.second, _seconds_to_next_month(now)
        usage = Usage(
            f'"minute";q={grant.per_minute};w=60, "month";q={grant.per_month};w={_seconds_in_month(now)}',
            f'"minute";r={max(minute_left, 0)};t={minute_ends}, "month";r={max(month_left, 0)};t={month_ends}',
        )
        if month_left < 0:
            return usage, RateLimited(f"The monthly cap of {grant.per_month} requests is reached.", month_ends)
        if minute_left < 0:
            return usage, RateLimited(f"The limit of {grant.per_minute} requests per minute is reached.", minute_ends)
        return usage, None


def _month_bounds(now: datetime) -> tuple[datetime, datetime]:
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return first, (first + timedelta(days=32)).replace(day=1)


def _seconds_in_month(now: datetime) -> int:
    first, following = _month_bounds(now)
    return int((following - first).total_seconds())


def _seconds_to_next_month(now: datetime) -> int:
    return max(1, int((_month_bounds(now)[1] - now).total_seconds()))
