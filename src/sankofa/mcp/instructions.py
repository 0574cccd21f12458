"""What an agent is told when it connects, before it sees any tool."""

from sankofa.model.provenance import LICENSE_NOTICE
from sankofa.settings import Settings


def instructions(settings: Settings) -> str:
    """The text, with the limits in force."""
    return _TEXT.format(settings=settings, notice=LICENSE_NOTICE)


_TEXT = """\
Sankofa serves point-in-time data on African and emerging-market companies, tenders and economies. Every \
tool only reads.

Point in time: with `as_of` (YYYY-MM-DD) a tool answers from what had been published by that day, never \
from what came later; without it, from what is known today. Figures are kept as vintages: 1 is the figure \
as first reported, a restatement appends the next and replaces nothing. For anything about the past - a \
backtest, "what was known when" - pass `as_of`.

Identifiers: organisations are named by a `service_id`. Take it from an answer; do not invent one.

Answers: at most {settings.mcp_answer_bytes} bytes of JSON. `limit` omitted is {settings.rows_default} rows, \
{settings.rows_sample} on a sample key, which may ask for no more. Where more matched than `count`, \
`truncated` is true: pass `next_cursor` as `cursor` with the same arguments, or narrow as `hint` says; \
without a `next_cursor` your tier serves no more. null means unknown, never zero. Amounts keep every digit \
of the filing and are in `currency_reported`: do not add up different currencies.

Citing: name the `source_ref` of each row you use and the `license_class` it is held under, with `as_of` \
and `edition` so that the answer can be reproduced. Rows of class `synthetic` are invented, for trying \
the service.

Errors are problem documents (RFC 9457): `detail` says what is wrong and `parameter` which argument. 402 \
means the tier of the key does not cover the call: give the user `upgrade.checkout_url`. 429 means wait.

{notice}"""
