"""Releases by country, newest first; their awards; the parties they name.

- `tender`: a country leads to its releases, with the same number in every block, so a number leads to a row;
- `tender_day`: a country leads to pairs of a day and the number of its first row, newest first;
- `tender_word`: a word of title or description (`CC|word`) leads to the numbers of the rows that have it;
- `tender_process`: the hash of an ocid leads to pairs of that hash and the number of a row that has it;
- `tender_filter`: a value of a field leads to the numbers of the rows that have it; a country leads to the
  closing day and to the size of the value of each of its rows;
- `tender_party`: each question about parties leads to its answer, most releases first.
- `process_facts`: a country leads to its processes by ocid, with the input of red flag indicators in them;
  `format.flag_steps` describes the flags;
- `fact`: a country's alpha-3 code leads to the values of its tenders, a service_id to the awards of an
  organisation, newest release first, with the same number in every block;
- `fact_day`: a country leads to pairs of a day and the number of its first fact, newest first.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from functools import partial
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from sankofa.derive.tenders import (
    Award,
    ReportedAward,
    Resolved,
    Tender,
    TenderValues,
    amount_of,
    awards_won,
)
from sankofa.edition.format import keys
from sankofa.edition.format.flag_steps import (
    FLAG_DAYS,
    FLAG_FILTERS,
    FLAG_PARTIES,
    FLAGS,
    FLAGS_PER_BLOCK,
    flag_group_key,
    flag_party_key,
)
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.format.visibility import day_rows
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, Input, KeyRows, Outcome, dataset, provenance
from sankofa.edition.write.tables import (
    TableRows,
    country_entity,
    organisation_entity,
    provenance_table,
    table,
)
from sankofa.ledger.reader import ReleaseRow
from sankofa.model.catalogue_rows import PartyIdentifier, TenderPartyRow, TenderRow
from sankofa.model.countries import alpha3_of
from sankofa.model.days import ordinal, parse_day
from sankofa.model.provenance import (
    AWARD_VALUE,
    TENDER,
    TENDER_VALUE,
    FactEntity,
    FactSource,
    fact,
    record_ref,
)
from sankofa.model.rows import FactRow, Figure, Row, doc, instant, wire
from sankofa.model.vintages import Mode, Vintage, visibilities

_NUMBERS_PER_BLOCK: Final = 16_384
_DESCRIBED: Final = 300
"""Characters of a description in a row."""
_READS: Final = (Input.TENDERS, Input.NAMES)


@dataset(keys.TENDERS, TenderRow, partial(pack, rows_per_block=keys.TENDERS_PER_BLOCK), reads=_READS)
def releases(context: BuildContext) -> Iterator[KeyRows]:
    """Reads the ledger once; all other datasets of tenders need it (`derive.tenders`)."""
    for country in context.tenders.countries:
        rows = (Entry(wire.encode(_tender_row(context, t))) for t in context.tenders.of(country, bodies=True))
        yield KeyRows(country, rows)


@dataset("tender_day", None, needs=(keys.TENDERS,), reads=())
def days(context: BuildContext, releases: None) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        days = [ordinal(tender.row.release_date[:10]) for tender in context.tenders.of(country)]
        yield KeyRows(country, _numbers(day_rows(days, ended=True)))


@dataset("tender_word", None, needs=(keys.TENDERS,), reads=(), partitioned=True)
def words(context: BuildContext, releases: None) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        postings: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        for number, tender in enumerate(context.tenders.of(country)):
            for word in keys.searched_words(
                f"{tender.summary.title or ''} {tender.summary.description or ''}"
            ):
                postings[word].append(number)
        for word in sorted(postings):
            yield KeyRows(f"{country}|{word}", _numbers(postings.pop(word)))


@dataset(keys.PROCESSES, None, needs=(keys.TENDERS,), reads=())
def ocid_lists(context: BuildContext, releases: None) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        lists: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        for number, tender in enumerate(context.tenders.of(country)):
            name, hashed = keys.process_list(country, tender.row.ocid)
            lists[name].extend((hashed, number))
        for name in sorted(lists):
            yield KeyRows(name, _numbers(lists.pop(name)))


@dataset(keys.TENDER_FILTERS, None, needs=(keys.TENDERS,), reads=(), partitioned=True)
def filters(context: BuildContext, releases: None) -> Iterator[KeyRows]:
    aliases = {entity.service_id: entity.aliases for entity in context.entities if entity.aliases}
    for country in context.tenders.countries:
        lists: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        for number, tender in enumerate(context.tenders.of(country)):
            closing = ordinal(tender.closing[:10]) if tender.closing else 0
            lists[keys.filter_column(country, "closing")].append(closing)
            lists[keys.filter_column(country, "value")].append(keys.size_of(tender.summary.value_amount))
            values = ((f, one) for f, value in _filtered(tender) for one in (value, *aliases.get(value, ())))
            for key in {keys.filter_key(country, *one) for one in values}:
                lists[key].append(number)
        for key in sorted(lists):
            yield KeyRows(key, _numbers(lists.pop(key)))


def _filtered(tender: Tender) -> Iterator[tuple[str, str]]:
    """The fields by which releases are filtered, each with a value."""
    summary = tender.summary
    suppliers = [supplier for award in tender.awards for supplier in award.suppliers]
    for field, value in (
        ("category", summary.category),
        ("status", summary.status),
        ("method", summary.procurement_method),
        ("buyer", summary.buyer_name),
        ("buyer_id", _buyer(tender)),
        *(("buyer_word", word) for word in keys.searched_words(summary.buyer_name or "")),
        *(("supplier", supplier.name) for supplier in suppliers),
        *(("supplier_word", word) for one in suppliers for word in keys.searched_words(one.name or "")),
        *(("supplier_id", supplier.match.service_id) for supplier in suppliers),
    ):
        if value:
            yield field, value


def _numbers(numbers: "array[int]") -> Iterator[Entry]:
    for start in range(0, len(numbers), _NUMBERS_PER_BLOCK):
        yield Entry(numbers[start : start + _NUMBERS_PER_BLOCK].tobytes())


def _tender_row(context: BuildContext, tender: Tender) -> TenderRow:
    row, summary = tender.row, msgspec.structs.asdict(tender.summary)
    summary["description"] = summary["description"] and summary["description"][:_DESCRIBED]
    capture = context.captures[row.capture_id]
    return TenderRow(
        buyer_service_id=_buyer(tender),
        country=row.country,
        ocid=row.ocid,
        release_id=row.release_id,
        release_date=row.release_date,
        closing_date=tender.closing,
        **summary,
        available_instant=row.release_date if tender.has_time else None,
        available_precision="second" if tender.has_time else "day",
        release=msgspec.Raw(row.body.encode()),
        **provenance(capture, row.location),
    )


def _buyer(tender: Tender) -> str | None:
    buyers = (party.match.service_id for party, roles in tender.parties if "buyer" in roles)
    return next((service_id for service_id in buyers if service_id), None)


class AwardRow(Row, frozen=True, kw_only=True):
    """One winner of one award in one release; an award without a named winner has one row."""

    country: Annotated[str, doc("Country code, ISO 3166-1 alpha-2.")]
    ocid: Annotated[str, doc("Open Contracting process identifier.")]
    release_id: Annotated[str, doc("Identifier of the release within its process.")]
    release_date: Annotated[str, instant("An instant in UTC.")]
    award_id: Annotated[
        str, doc("Identifier of the award as published, or else its position in the release.")
    ]
    award_date: Annotated[date | None, doc("Day of the award, where published.")]
    status: Annotated[str | None, doc("Status of the award as published.")]
    value_amount: Annotated[
        Figure | None, doc("Value of the whole award, with every digit; null if not published.")
    ]
    value_currency: Annotated[str | None, doc("Currency code, ISO 4217.")]
    supplier_service_id: Annotated[str | None, doc("Organisation identifier of the winner, where resolved.")]
    supplier_name: Annotated[str | None, doc("Name of the winner; null if none may be named.")]
    supplier_country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    supplier_identifier: Annotated[
        PartyIdentifier | None, doc("First identifier of the winner, as published.")
    ]
    supplier_count: Annotated[int, doc("Number of named winners; the award has one row for each.", ge=0)]
    withheld_suppliers: Annotated[
        int, doc("Number of winners that are not known to be organisations; they are never served.", ge=0)
    ]


class _Awards(TableRows):
    def make(self) -> Iterator[AwardRow]:
        for country in self.context.tenders.countries:
            for tender in self.context.tenders.of(country):
                for award in tender.awards:
                    suppliers: list[Resolved | None] = [*award.suppliers]
                    for supplier in suppliers or [None]:
                        yield _award(self.context, tender, award, supplier)


def _award(context: BuildContext, tender: Tender, award: Award, supplier: Resolved | None) -> AwardRow:
    row = tender.row
    capture = context.captures[row.capture_id]
    own = supplier.identifiers[0] if supplier and supplier.identifiers else None
    return AwardRow(
        country=row.country,
        ocid=row.ocid,
        release_id=row.release_id,
        release_date=row.release_date,
        award_id=award.award_id,
        award_date=_day(award.day),
        status=award.status,
        value_amount=award.amount,
        value_currency=award.currency,
        supplier_service_id=supplier.match.service_id if supplier else None,
        supplier_name=supplier.name if supplier else None,
        supplier_country=(supplier.country or None) if supplier else None,
        supplier_identifier=None if own is None else PartyIdentifier(*own),
        supplier_count=len(award.suppliers),
        withheld_suppliers=award.withheld,
        **provenance(capture, row.location),
    )


def _day(text: str | None) -> date | None:
    try:
        return parse_day(text) if text else None
    except ValueError:
        return None


table(
    "af-tender-releases",
    TenderRow,
    TENDER,
    "OCDS releases with their parties resolved, as `/v1/tenders` serves them.",
    takes_from="tender",
    sorted_by=("country", "-release_date"),
)
table(
    "af-tender-awards",
    AwardRow,
    TENDER,
    "Awards in releases, a row for each winner. Bulk only.",
    rows=_Awards,
    reads=_READS,
    sorted_by=("country", "-release_date"),
)


class _Sightings(NamedTuple):
    """The number of releases with a party in a role, their first and last day, and the newest."""

    releases: int
    first: str
    last: str
    newest: ReleaseRow


@dataset("tender_party", TenderPartyRow, needs=(keys.TENDERS,), reads=())
def parties(context: BuildContext, releases: None) -> Iterator[KeyRows]:
    sightings: dict[tuple[Resolved, str], _Sightings] = {}
    for country in context.tenders.countries:
        for tender in context.tenders.of(country):
            row, day = tender.row, tender.row.release_date[:10]
            for key in ((party, role) for party, roles in tender.parties for role in roles):
                count, first, last, newest = sightings.get(key, (0, day, "", row))
                newest = row if day > last else newest
                sightings[key] = _Sightings(count + 1, min(first, day), max(last, day), newest)
    ordered = sorted(sightings, key=lambda k: (-sightings[k].releases, k[0].name, k[1], *k[0][1:4]))
    aliases = {entity.service_id: entity.aliases for entity in context.entities}
    by_question: defaultdict[str, list[tuple[Resolved, str]]] = defaultdict(list)
    for key in ordered:
        party, role = key
        for of_country in {None, party.country or None}:
            by_question[keys.party_key(of_country)].append(key)
            by_question[keys.party_key(of_country, role)].append(key)
        if party.match.service_id:
            by_question[keys.party_key(service_id=party.match.service_id)].append(key)
    for question in sorted(by_question):
        rows = (Entry(wire.encode(_party(context, *key, sightings[key]))) for key in by_question[question])
        yield KeyRows(question, rows, aliases.get(question, ()))


def _party(context: BuildContext, party: Resolved, role: str, sightings: _Sightings) -> TenderPartyRow:
    capture = context.captures[sightings.newest.capture_id]
    own = party.identifiers[0] if party.identifiers else None
    return TenderPartyRow(
        service_id=party.match.service_id,
        name=party.name,
        role=role,
        country=party.country or None,
        identifier=None if own is None else PartyIdentifier(*own),
        org_evidence=party.org_evidence,
        match_method=party.match.method,
        match_score=party.match.score,
        release_count=sightings.releases,
        first_seen=date.fromisoformat(sightings.first),
        last_seen=date.fromisoformat(sightings.last),
        **provenance(capture, sightings.newest.location),
    )


class _EachPartyOnce(TableRows):
    """A party is stored under each question it answers; the table takes it from the widest question."""

    def take(self, key: str, row: Any) -> Iterable[msgspec.Struct]:
        return (row,) if key == keys.party_key() else ()


table(
    "af-tender-parties",
    TenderPartyRow,
    TENDER,
    "Buyers and suppliers named in releases, as `/v1/tender-parties` serves them.",
    takes_from="tender_party",
    rows=_EachPartyOnce,
    sorted_by=("-release_count",),
)


_index: Final = partial(dataset, row=None, needs=(keys.TENDERS,), reads=(), partitioned=True)


@dataset(keys.PROCESS_FACTS, None, needs=(keys.TENDERS,), reads=())
def process_facts(context: BuildContext, releases: None) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        yield KeyRows(country, (Entry(process) for process in context.flags.processes(country)))


@_index(FLAG_DAYS)
def flag_days(context: BuildContext, releases: None) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        stored = context.flags.read(country, "days")
        yield KeyRows(country, (Entry(limits, first, until) for first, until, limits in stored))
        groups = context.flags.read(country, "groups")
        for key, rows in sorted((flag_group_key(country, group), rows) for group, rows in groups):
            yield KeyRows(key, (Entry(fences, first, until) for first, until, fences in rows))


@_index(FLAGS, pack=partial(pack, rows_per_block=FLAGS_PER_BLOCK))
def flags(context: BuildContext, releases: None) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        stored = context.flags.read(country, "flags")
        yield KeyRows(country, (Entry(record, first, until) for first, until, record in stored))


@_index(FLAG_PARTIES)
def flag_parties(context: BuildContext, releases: None) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        stored = context.flags.read(country, "parties")
        for key, record in sorted((flag_party_key(country, party), record) for party, record in stored):
            yield KeyRows(key, [Entry(record)])


@_index(FLAG_FILTERS)
def flag_filters(context: BuildContext, releases: None) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        stored = context.flags.read(country, "filters")
        for key, triples in sorted(
            (keys.filter_key(country, field, text), own) for field, text, own in stored
        ):
            yield KeyRows(key, [Entry(triples)])


_LATEST: Final = int(Mode.LATEST)


@dataset(
    keys.FACTS, FactRow, partial(pack, rows_per_block=keys.FACTS_PER_BLOCK), needs=(keys.TENDERS,), reads=()
)
def facts(context: BuildContext, releases: None) -> Building:
    """Returns the days of the facts of each country."""
    days: list[KeyRows] = []
    for alpha2 in context.tenders.countries:
        yield KeyRows(alpha3_of()[alpha2], _tender_values(context, alpha2, days))
    entities = {entity.service_id: entity for entity in context.entities}
    for service_id, won in awards_won(context.tenders).items():
        entity = entities[service_id]
        yield KeyRows(service_id, _awards(context, organisation_entity(entity), won), entity.aliases)
    return Outcome(days)


@dataset(keys.FACT_DAYS, None, needs=(keys.FACTS,), reads=())
def fact_days(context: BuildContext, facts: list[KeyRows]) -> Iterator[KeyRows]:
    yield from facts


def _tender_values(context: BuildContext, alpha2: str, days: list[KeyRows]) -> Iterator[Entry]:
    values = TenderValues(context.tenders.of(alpha2))
    entity = country_entity(alpha2)
    served = array("i")
    for number, tender in enumerate(context.tenders.of(alpha2)):
        vintage = values.numbers[number]
        row, summary = tender.row, tender.summary
        day = row.release_date[:10]
        first = ordinal(day)
        if not vintage or first >= values.untils[number]:
            continue
        currency, value = summary.value_currency, amount_of(summary.value_amount) or ""
        ref = record_ref(alpha2, row.ocid, currency or "", row.release_date, row.release_id, value)
        tender_fact = fact(
            entity, TENDER, ref, TENDER_VALUE, msgspec.Raw(value.encode()), currency, (day, "tender"), day,
            vintage, _source(context, row),
        )  # fmt: skip
        served.append(first)
        yield Entry(wire.encode(tender_fact), first, values.untils[number])
    if served:
        days.append(KeyRows(entity.entity_id, [Entry(day_rows(served, ended=False).tobytes())]))


def _awards(
    context: BuildContext, entity: FactEntity, awards: list[Vintage[ReportedAward]]
) -> Iterator[Entry]:
    for vintage in awards:
        award = vintage.report
        row = award.row
        if award.value is None:
            continue
        currency = award.currency
        ref = record_ref(
            row.ocid, award.award_id, award.supplier, currency or "", row.release_date, row.release_id,
            award.value,
        )  # fmt: skip
        award_fact = fact(
            entity, TENDER, ref, AWARD_VALUE, msgspec.Raw(award.value.encode()), currency,
            (award.day, "award"), row.release_date[:10], vintage.number, _source(context, row),
        )  # fmt: skip
        for first, until, modes, _ in visibilities(vintage):
            if modes & _LATEST:
                yield Entry(wire.encode(award_fact), first, until)


def _source(context: BuildContext, row: ReleaseRow) -> FactSource:
    capture = context.captures[row.capture_id]
    return FactSource(capture.ref(row.location), capture.license_class, capture.observed_at)


class _Facts(TableRows):
    def take(self, key: str, row: FactRow) -> Iterable[msgspec.Struct]:
        """Takes the facts of a merged organisation once, although its older ids lead to them, too."""
        return (row,) if key == row.entity_id else ()


table(
    "af-tender-fact",
    FactRow,
    TENDER,
    "Values of tenders by country, and the awards organisations won, every vintage that was the latest.",
    takes_from=keys.FACTS,
    rows=_Facts,
)
provenance_table("af-tender-fact", TENDER)
