"""The contracting processes of a country, each with its releases."""

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping

import msgspec

from sankofa.derive.tenders import Tenders
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.days import ordinal
from sankofa.model.ocds.process_releases import ProcessReleases, ReleaseFacts

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ReleaseFacts).decode


def processes(
    tenders: Tenders, country: str, captures: Mapping[int, CaptureInfo]
) -> Iterator[ProcessReleases]:
    """In the order of their ocids. Releases wait in a temporary file, so that memory stays flat."""
    with tempfile.TemporaryFile(buffering=0) as file:
        places: defaultdict[str, list[tuple[str, str, int, int]]] = defaultdict(list)
        end = 0
        for tender in tenders.of(country):
            row = tender.row
            capture = captures[row.capture_id]
            released, own = row.release_date, tender.flag_facts
            release = ReleaseFacts(
                ordinal(released[:10]), released, capture.ref(row.location), capture.license_class,
                capture.observed_at, msgspec.Raw(own.facts), own.service_ids,
            )  # fmt: skip
            written = _encode(release)
            file.write(written)
            # Without the Z, which would put a whole second after its fractions.
            places[row.ocid].append((released[:-1], row.release_id, end, len(written)))
            end += len(written)
        for ocid in sorted(places):
            listed = sorted(places[ocid])
            releases = [_decode(os.pread(file.fileno(), size, start)) for _, _, start, size in listed]
            yield ProcessReleases(ocid, releases)
