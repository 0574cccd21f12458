"""What an edition serves of the facts of each issuer, every vintage counted, by the source of each; and what
the ledger has of them."""

from typing import Final

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.quality import HeldFacts, count_facts
from sankofa.edition.write.issuer_parts import Issuers, issuer_part
from sankofa.ledger.entities import Entity
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.vintages import vintages

FACT_COUNTS: Final = "fact-counts"
HOLDINGS: Final = "holdings"


class SourceFacts(msgspec.Struct, array_like=True):
    """The facts that one source has of an issuer."""

    facts: int = 0
    dated: int = 0
    """Those whose day of publication is evidenced."""
    first: int = FOREVER
    last: int = 0
    """The earliest and the latest period_end that had come when it was captured; 0 where none had."""
    published: int = 0
    """The newest evidenced day of publication; 0 where there is none."""


_read = msgspec.msgpack.Decoder(dict[str, SourceFacts]).decode
_read_holdings = msgspec.msgpack.Decoder(HeldFacts).decode
_write = msgspec.msgpack.Encoder(order="deterministic").encode


@issuer_part(FACT_COUNTS)
def _counted(issuer: Issuer) -> bytes:
    by_source: dict[str, SourceFacts] = {}
    for (_, _, period_end, _), reported in issuer.reports.items():
        end = ordinal(period_end)
        for vintage in vintages(reported, end):
            report = vintage.report
            counts = by_source.get(report.capture.source_id)
            if counts is None:
                counts = by_source[report.capture.source_id] = SourceFacts()
            counts.facts += 1
            if report.evidenced:
                counts.dated += 1
                counts.published = max(counts.published, report.available)
            if period_end <= report.capture.observed_at[:10]:
                counts.first = min(counts.first, end)
                counts.last = max(counts.last, end)
    return _write({source_id: by_source[source_id] for source_id in sorted(by_source)})


def issuer_counts(issuers: Issuers, entity: Entity) -> dict[str, SourceFacts]:
    """The facts of one issuer by source."""
    part = issuers.part(FACT_COUNTS, entity.service_id)
    return _read(part) if part else {}


@issuer_part(HOLDINGS)
def _held(issuer: Issuer) -> bytes:
    held = HeldFacts()
    for facts in issuer.held:
        held.add(count_facts(facts, issuer.captures))
    return _write(held)


def issuer_holdings(issuers: Issuers, entity: Entity) -> HeldFacts:
    """What the ledger has of the facts of one issuer."""
    part = issuers.part(HOLDINGS, entity.service_id)
    return _read_holdings(part) if part else HeldFacts()
