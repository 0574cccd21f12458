"""GET /v1/usage: where the caller's key stands."""

from datetime import UTC, datetime

from sankofa.access.tiers import Usage
from sankofa.edition.read.edition import Selection
from sankofa.model.catalogue_rows import UsageRow
from sankofa.model.days import instant
from sankofa.model.provenance import SERVICE, source_ref
from sankofa.model.rows import wire
from sankofa.operations.contract import Answer, Call, operation


@operation("/v1/usage", row=UsageRow, errors=(401, 429, 503), extension=True, live=True)
async def get_usage(call: Call) -> Answer:
    """Usage and limits of the key, including this request.

    Limits hold per UTC minute and per UTC calendar month; `minute_reset_at` and `month_reset_at` say when the
    next begins. A key that replaced another is counted together with it. The answer is never cached.
    """
    grant = call.grant
    usage = call.usage or Usage("", "", [], grant)
    row = UsageRow(
        source_ref=source_ref(SERVICE, "usage", grant.key_id),
        license_class="public-domain",
        observed_at=instant(datetime.now(UTC)),
        tier=grant.tier,
        minute_limit=grant.per_minute,
        minute_used=usage.in_minute,
        minute_reset_at=_instant(usage.minute_ends),
        month_limit=grant.per_month,
        month_used=usage.in_month,
        month_reset_at=_instant(usage.month_ends),
        expires_at=grant.expires_at,
    )
    return Answer(Selection([wire.encode(row)], 1, truncated=False))


def _instant(seconds: int) -> str:
    return instant(datetime.fromtimestamp(seconds, UTC))
