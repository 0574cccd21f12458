"""The index that organisations are searched by: an inverted index in the same blocks as everything else.

- `word`: a word of a name (also under `CC|word` for the country) leads to the numbers of the organisations
  that have it, as 32-bit integers in order; a ticker symbol likewise under `$symbol`;
- `near`: a bucket leads to the words that are one letter from each other, for slips of the pen;
- `named`: the number of an organisation leads to what a hit is weighed by.

The same bytes serve on every engine, so a search finds the same on each.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

import msgspec

from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import Building, KeyRows, Outcome, dataset
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.search_records import SearchRecord, bucket
from sankofa.ledger.entities import Entity
from sankofa.model.identifiers import stored_identifier
from sankofa.model.names import neighbourhood, words


@dataset("named", None)
def named(context: BuildContext) -> Iterator[KeyRows]:
    for number, entity in enumerate(context.entities):
        yield KeyRows(str(number), [Entry(msgspec.json.encode(_record(entity)))])


@dataset("word", None)
def word_index(context: BuildContext) -> Iterator[KeyRows]:
    postings: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
    for number, entity in enumerate(context.entities):
        own = _record(entity)
        for word in set(chain.from_iterable(own.words)):
            postings[word].append(number)
            if own.country:
                postings[f"{own.country}|{word}"].append(number)
        for ticker in own.tickers:
            postings["$" + ticker.partition(":")[2]].append(number)
    for word in sorted(postings):
        yield KeyRows(word, [Entry(postings[word].tobytes())])


@dataset("near", None)
def near_words(context: BuildContext) -> Building:
    vocabulary = sorted(
        {w for entity in context.entities for w in chain.from_iterable(_record(entity).words)}
    )
    buckets = max(1, len(vocabulary))
    near: defaultdict[int, set[str]] = defaultdict(set)
    for word in vocabulary:
        for form in neighbourhood(word):
            near[bucket(form, buckets)].add(word)
    for number in sorted(near):
        yield KeyRows(str(number), [Entry(" ".join(sorted(near[number])).encode())])
    return Outcome(manifest_extras={"name_buckets": buckets})


def _record(entity: Entity) -> SearchRecord:
    profiles = [statement.profile for statement in entity.statements]
    names = dict.fromkeys(n for p in profiles for n in (p.legal_name, *p.other_names) if n)
    tickers = (stored_identifier(c.identifier) for c in entity.claims if c.identifier.startswith("ticker:"))
    return SearchRecord(
        entity.service_id,
        entity.country,
        tuple(names),
        tuple(tuple(words(name)) for name in names),
        tuple(f"{t.scheme}:{t.value}" for t in tickers),
    )
