"""How many reported facts an edition serves, every vintage counted, by the source of each."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.quality import ServedFacts
from sankofa.edition.build.issuer_parts import Issuers, issuer_part
from sankofa.ledger.entities import Entity
from sankofa.model.days import ordinal
from sankofa.model.vintages import vintages

FACT_COUNTS: Final = "fact-counts"
_read = msgspec.msgpack.Decoder(dict[str, tuple[int, int]]).decode
_write = msgspec.msgpack.Encoder().encode


@issuer_part(FACT_COUNTS)
def _counted(issuer: Issuer) -> bytes:
    served: Counter[str] = Counter()
    dated: Counter[str] = Counter()
    for (_, _, period_end, _), reported in issuer.reports.items():
        for vintage in vintages(reported, ordinal(period_end)):
            source_id = vintage.report.capture.source_id
            served[source_id] += 1
            dated[source_id] += bool(vintage.report.evidenced)
    return _write({source_id: (count, dated[source_id]) for source_id, count in sorted(served.items())})


def served_facts(issuers: Issuers, entities: Iterable[Entity]) -> dict[str, ServedFacts]:
    """By source."""
    served: Counter[str] = Counter()
    dated: Counter[str] = Counter()
    for entity in entities:
        if counted := issuers.part(FACT_COUNTS, entity.service_id):
            for source_id, (count, evidenced) in _read(counted).items():
                served[source_id] += count
                dated[source_id] += evidenced
    return {source_id: ServedFacts(count, dated[source_id]) for source_id, count in served.items()}
