"""The rows of metrics, put together from parts: the bytes that the encoder would write."""

import random
from array import array
from datetime import date
from decimal import Decimal

import msgspec

from sankofa.derive.metrics.contract import metrics, slugs
from sankofa.derive.metrics.derive import Derived, Stretch, Value
from sankofa.derive.metrics.lines import Figure, Part
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.screen_index import AS_OF, UNDATED
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.read.issuers import dated
from sankofa.edition.write.metric_rows import (
    Standings,
    coverage,
    coverage_steps,
    metric_rows,
    standings,
)
from sankofa.ledger.entities import Entity, Statement
from sankofa.ledger.reader import CaptureInfo
from sankofa.ledger.reports import Report
from sankofa.model.days import FOREVER
from sankofa.model.provenance import strictest
from sankofa.model.records import Profile
from sankofa.model.rows import MetricInput, MetricsRow, State, wire

AWKWARD = 'a "quote", a back\\slash, a\nline, "as_of":"0001-01-01", Ünïcödé \U0001f600'
CAPTURES = (
    CaptureInfo("a", "2024-01-01T00:00:00Z", "public-domain", "f"),
    CaptureInfo("b", "2023-01-01T00:00:00Z", "licensed-redistribution", "f"),
)
CONCEPTS = ("profit", "us-gaap:Assets", "ifrs-full:Equity")
NUMBERS = ("12", "-0.50", "1E+3", "12345678901234567890123.4500", "0.0000000123")


def shown(chance: random.Random) -> list[tuple[int, int, int]]:
    """Of some metrics, from which days on an issuer shows which states."""
    states = []
    for number in chance.sample(range(len(slugs())), 4):
        days = sorted({0, *(chance.randrange(40) for _ in range(chance.randrange(6)))})
        begun = chance.randrange(len(days) + 1)  # until then nothing is published
        states += [
            (number, day, State.NOT_PUBLISHED if place < begun else chance.choice(list(State)))
            for place, day in enumerate(days)
        ]
    return sorted(states)


def test_coverage_added_up_is_what_looking_at_every_issuer_on_the_day_gives() -> None:
    chance = random.Random(4)
    issuers = [
        Standings(*(b"",) * 6, array("i", [word for one in shown(chance) for word in one]).tobytes(), b"", 2)
        for _ in range(60)
    ]
    steps = [coverage_steps(issuers[:25]), coverage_steps(issuers[25:])]
    for day in range(-1, 42):
        published, found = 0, [0] * len(slugs())
        for issuer in issuers:
            seen = {one.number: one.state for one in issuer.stretches() if one.first <= day < one.until}
            if any(state != State.NOT_PUBLISHED for state in seen.values()):
                published += 1
                for number, state in seen.items():
                    found[number] += state not in (State.INPUT_ABSENT, State.CURRENCY_MIXED)
        expected = {"identity_conflicts": Decimal(120)}
        if published:
            shares = ((Decimal(count) / published).quantize(Decimal("0.0001")) for count in found)
            expected |= {f"coverage_{slug}": share for slug, share in zip(slugs(), shares, strict=True)}
        assert coverage(steps, day) == expected


def entity(name: str | None) -> Entity:
    return Entity("DC" + "0" * 24, (), ("s",), 1, [Statement("s", "a", Profile(name), 1)])


def random_values(chance: random.Random) -> list[Value]:
    figures: dict[tuple[str, int], Figure] = {}
    for name in {name.removeprefix("prior_") for m in metrics() for name in m.forms[-1].inputs}:
        for end in (738_000, 737_635):
            number = chance.randrange(2)
            report = Report(
                "1", end + chance.randrange(50), "", "s", AWKWARD, chance.choice(("", "p. 1")), "",
                number + 1, CAPTURES[number],
            )  # fmt: skip
            parts = tuple(
                Part(concept, Decimal(chance.choice(NUMBERS)), chance.randrange(1, 4), report)
                for concept in chance.sample(CONCEPTS, chance.randrange(1, 4))
            )
            figures[name, end] = Figure(Decimal(1), end, 0, parts)
    values = []
    for metric in metrics():
        names = metric.forms[-1].inputs
        taken = [
            figures[name.removeprefix("prior_"), 737_635 if name.startswith("prior_") else 738_000]
            for name in names
        ]
        value = Decimal(chance.choice(NUMBERS))
        values.append(Value(metric, value, 738_000, 738_050, FOREVER, names, tuple(taken)))
    return values


def encoded(own: Entity, value: Value) -> bytes:
    reports = [report for figure in value.figures for report in figure.reports]
    newest = max(reports, key=lambda report: report.available)
    row = MetricsRow(
        service_id=own.service_id,
        legal_name=own.legal_name,
        country=own.country,
        metric=value.metric.slug,
        value=value.value,
        unit=value.metric.unit,
        period_end=date.fromordinal(value.end),
        as_of=date(1, 1, 1),
        age_days=0,
        available_at=date.fromordinal(newest.available),
        methodology_ref=value.metric.methodology_ref,
        inputs=[
            MetricInput(
                name.removeprefix("prior_"),
                part.concept if ":" in part.concept else None,
                date.fromordinal(f.end),
                part.value,
                part.vintage,
                part.report.source_ref,
            )
            for name, f in zip(value.names, value.figures, strict=True)
            for part in f.parts
        ],
        source_ref=reports[0].source_ref,
        license_class=strictest(report.capture.license_class for report in reports),
        observed_at=max(report.capture.observed_at for report in reports),
    )
    return UNDATED + wire.encode(row).replace(AS_OF + b",", b"", 1)[1:]


def test_rows_are_what_the_encoder_would_write() -> None:
    chance = random.Random(4)
    for own in (entity(AWKWARD), entity(None)):
        values = random_values(chance)
        found = metric_rows(own, values)
        expected = [
            Entry(encoded(own, value), value.first, value.until, AS_KNOWN | Entry(b"").modes, number)
            for number, value in enumerate(values)
        ]
        assert found == expected


def test_stretches_last_until_the_next_of_their_metric() -> None:
    histories: list[list[Stretch]] = [[] for _ in metrics()]
    histories[1] = [Stretch(0, 5, State.NOT_PUBLISHED), Stretch(5, FOREVER, State.STANDS)]
    histories[2] = [Stretch(0, FOREVER, State.INPUT_ABSENT)]
    found = standings(Derived([], histories, histories[::-1]))
    assert [(n, (first, until, state)) for n, first, until, state in found.stretches()] == [
        (number, stretch[:3]) for number, history in enumerate(histories) for stretch in history
    ]


def test_the_day_applied_is_put_in_no_text() -> None:
    own = entity(AWKWARD)
    for entry in metric_rows(own, random_values(random.Random(1))):
        before = msgspec.json.decode(entry.row, type=MetricsRow)
        shown = msgspec.json.decode(dated(entry.row, date(2024, 6, 30)), type=MetricsRow)
        age = (date(2024, 6, 30) - before.period_end).days
        assert shown == msgspec.structs.replace(before, as_of=date(2024, 6, 30), age_days=age)
        assert shown.legal_name == AWKWARD
