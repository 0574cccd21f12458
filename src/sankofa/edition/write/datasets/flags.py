"""Red flags, as `format.flag_steps` describes them; and what they were computed from.

- `process_facts`: a country leads to its processes by ocid, with what indicators read in them.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import msgspec

from sankofa.derive.tender_values import processes
from sankofa.edition.format.flag_steps import (
    FLAG_DAYS,
    FLAG_FILTERS,
    FLAG_PARTIES,
    FLAGS,
    FLAGS_PER_BLOCK,
    flag_party_key,
)
from sankofa.edition.format.keys import PROCESS_FACTS, TENDERS, filter_key
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Built, KeyRows, dataset

_index: Final = partial(dataset, row=None, needs=(TENDERS,), reads=(), partitioned=True)


@dataset(PROCESS_FACTS, None, needs=(TENDERS,), reads=())
def process_facts(context: BuildContext, releases: Built[None]) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        known = processes(context.tenders, country, context.captures)
        yield KeyRows(country, (Entry(msgspec.json.encode(process)) for process in known))


@_index(FLAG_DAYS)
def days(context: BuildContext, releases: Built[None]) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        stored = context.flags.read(country, "days")
        yield KeyRows(country, (Entry(limits, first, until) for first, until, limits in stored))


@_index(FLAGS, pack=partial(pack, rows_per_block=FLAGS_PER_BLOCK))
def flags(context: BuildContext, releases: Built[None]) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        stored = context.flags.read(country, "flags")
        yield KeyRows(country, (Entry(record, first, until) for first, until, record in stored))


@_index(FLAG_PARTIES)
def parties(context: BuildContext, releases: Built[None]) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        stored = context.flags.read(country, "parties")
        for key, record in sorted((flag_party_key(country, party), record) for party, record in stored):
            yield KeyRows(key, [Entry(record)])


@_index(FLAG_FILTERS)
def filters(context: BuildContext, releases: Built[None]) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        stored = context.flags.read(country, "filters")
        for key, triples in sorted((filter_key(country, field, text), own) for field, text, own in stored):
            yield KeyRows(key, [Entry(triples)])
