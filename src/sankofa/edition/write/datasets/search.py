"""The search indexes of organisations, series and indicators: inverted indexes (`format.search_records`).

A word of an organisation's name is also stored under `CC|word` for its country, and under `~CC|word` for a
country that it left.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby

import msgspec

from sankofa.derive.series import FAMILY, Series
from sankofa.edition.format import keys
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, Input, KeyRows, Outcome, blocks_of, dataset
from sankofa.edition.write.datasets.macro_series import CatalogueEntry, SeriesIndex
from sankofa.ledger.entities import Entity
from sankofa.model.days import ordinal
from sankofa.model.identifiers import stored_identifier
from sankofa.model.observations import also_called, usual_name
from sankofa.model.text import code_words, neighbourhood, words

_Records = Callable[..., Iterator[keys.SearchRecord]]
_Catalogue = list[CatalogueEntry]


def _declare(
    index: keys.SearchIndex,
    records: Callable[..., Iterator[keys.SearchRecord]],
    *needs: str,
    reads: tuple[Input, ...],
) -> None:
    @dataset(index.records, None, needs=needs, reads=reads)
    def named(context: BuildContext, *built: _Catalogue) -> Iterator[KeyRows]:
        for number, record in enumerate(records(context, *built)):
            yield KeyRows(str(number), [Entry(msgspec.json.encode(record))])

    @dataset(index.words, None, needs=needs, reads=reads, partitioned=True)
    def word_index(context: BuildContext, *built: _Catalogue) -> Building:
        """Returns the number of records of each word."""
        postings: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
        word_counts: defaultdict[str, bytearray] = defaultdict(bytearray)
        vocabulary: set[str] = set()
        former = _former_countries(context) if index is keys.ORGANISATIONS else {}
        for number, record in enumerate(records(context, *built)):
            own = set(chain.from_iterable(record.words))
            scopes = [*([record.country] if record.country else ()), *former.get(number, ())]
            count = _word_count(record) if index.in_order_of_ids else 0
            vocabulary |= own
            for key in chain(own, (f"{scope}|{word}" for scope in scopes for word in own)):
                postings[key].append(number)
                word_counts[key].append(count)
            for symbol in {ticker.partition(":")[2] for ticker in record.tickers}:
                postings[keys.code_key(symbol)].append(number)
        for word in sorted(postings):
            counts = word_counts[word] if any(word_counts[word]) else b""
            padded = bytes(counts) + bytes(-len(counts) % 4)
            yield KeyRows(word, blocks_of([(padded, postings[word].tobytes())]))
        return Outcome({word: len(postings[word]) for word in sorted(vocabulary)})

    @dataset(index.near, None, needs=(index.words,), reads=())
    def near_words(context: BuildContext, counts: dict[str, int]) -> Building:
        buckets = max(1, len(counts))
        near: defaultdict[int, set[str]] = defaultdict(set)
        for word in counts:
            for form in neighbourhood(word):
                near[keys.bucket(form, buckets)].add(word)
        for number in sorted(near):
            yield KeyRows(str(number), [Entry(" ".join(sorted(near[number])).encode())])
        return Outcome(manifest_extras={index.buckets: buckets})

    @dataset(index.beginnings, None, needs=(index.words,), reads=())
    def beginnings(context: BuildContext, counts: dict[str, int]) -> Iterator[KeyRows]:
        by_letters: defaultdict[str, list[str]] = defaultdict(list)
        for word in sorted(counts, key=lambda word: (-counts[word], word)):
            if len(word) >= keys.LETTERS:
                by_letters[word[: keys.LETTERS]].append(word)
        for letters in sorted(by_letters):
            yield KeyRows(letters, [Entry(" ".join(by_letters[letters]).encode())])


def _word_count(record: keys.SearchRecord) -> int:
    """Number of words of the only name of a record; 0 for several names or a repeated word."""
    if len(record.words) != 1:
        return 0
    (own,) = record.words
    return len(own) if len(own) == len(set(own)) <= keys.MOST_COUNTED else 0


def _organisations(context: BuildContext) -> Iterator[keys.SearchRecord]:
    return map(_organisation, context.entities)


def _former_countries(context: BuildContext) -> dict[int, list[str]]:
    """The scopes of the countries that earlier records name, by the number of the organisation."""
    scopes = {}
    for number, entity in enumerate(context.entities):
        profiles = [one.profile for one in (*entity.statements, *entity.earlier)]
        if other := {p.country for p in profiles if p.country} - {entity.country}:
            scopes[number] = [keys.former_scope(country) for country in sorted(other)]
    return scopes


def _organisation(entity: Entity) -> keys.SearchRecord:
    profiles = [statement.profile for statement in (*entity.statements, *entity.earlier)]
    others = {n for p in profiles for n in (p.legal_name, *p.other_names) if n} - {entity.legal_name}
    names = [name for name in (entity.legal_name, *sorted(others)) if name]
    # In one order, whichever of them ended later.
    identifiers = sorted({claim.identifier for claim in (*entity.claims, *entity.past)})
    tickers = (stored_identifier(one) for one in identifiers if one.startswith("ticker:"))
    return keys.SearchRecord(
        entity.service_id,
        entity.country,
        tuple(names),
        tuple(tuple(words(name)) for name in names),
        tuple(f"{t.scheme}:{t.value}" for t in tickers),
    )


def _items(entries: Iterable[CatalogueEntry]) -> Iterator[tuple[int, list[CatalogueEntry]]]:
    """The entries of one series key or indicator, and the first entry's number in the catalogue.

    Series made from annual tables are left out: a search finds their indicator.
    """
    first = 0
    for _, group in groupby(entries, key=lambda entry: entry[:2]):
        own = list(group)
        if own[0].is_indicator or own[0].series_type != FAMILY:
            yield first, own
        first += len(own)


def _macro_items(context: BuildContext, catalogue: _Catalogue) -> Iterator[keys.SearchRecord]:
    """Series and indicators; the catalogue has their countries."""
    for _, own in _items(catalogue):
        code = own[0].series
        names = tuple(dict.fromkeys(filter(None, (entry.name for entry in own)))) or (code,)
        also, usual = also_called(own[0].series_type), usual_name(code, own[0].series_type)
        named = [tuple(dict.fromkeys(code_words(f"{name} {code} {also}"))) for name in names]
        yield keys.SearchRecord(
            code,
            None,
            (*names, usual) if usual else names,
            (*named, tuple(code_words(usual))) if usual else tuple(named),
            (f":{code}",),
            "indicator" if own[0].is_indicator else "series",
        )


@dataset(keys.MACRO_SPANS, None, needs=(keys.SERIES_ENTRIES,), reads=())
def macro_spans(context: BuildContext, catalogue: _Catalogue) -> Iterator[KeyRows]:
    spans = array("i")
    for first, own in _items(catalogue):
        spans.extend((first, first + len(own)))
    yield KeyRows("", [Entry(spans.tobytes())])


@dataset(keys.SERIES_KNOWN, None, needs=(keys.SERIES_ENTRIES, keys.MACRO_SERIES), reads=())
def known_entries(context: BuildContext, catalogue: _Catalogue, series: SeriesIndex) -> Iterator[KeyRows]:
    """The first day of each catalogue entry, and by its number the days of release with the oldest date."""
    days = array("i")
    dated: list[KeyRows] = []
    for number, entry in enumerate(catalogue):
        own = series.releases.get(Series(entry.series, entry.series_type, entry.frequency, entry.country))
        if entry.is_indicator or own is None:
            days.append(ordinal(entry.observed_at[:10]))
            continue
        # a value is not known before its own date, even if released earlier
        known = sorted((max(one.day, one.oldest), one.oldest) for one in own)
        days.append(known[0][0])
        pairs = array("i", chain.from_iterable(known))
        dated.append(KeyRows(str(number), [Entry(pairs.tobytes())]))
    yield KeyRows("", [Entry(days.tobytes())])
    yield from sorted(dated, key=lambda one: one.key)


_declare(keys.ORGANISATIONS, _organisations, reads=(Input.NAMES,))
_declare(keys.MACRO_ITEMS, _macro_items, keys.SERIES_ENTRIES, reads=())
