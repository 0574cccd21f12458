"""GET /v1/check: whether a claimed figure was reported (contract: CLM-1 and CLM-4)."""

from calendar import monthrange
from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

from msgspec.structs import replace

from sankofa.derive.metrics.contract import slugs
from sankofa.edition.format.keys import ENTITIES, STATEMENTS
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.series_catalogue import columns_of_series, every_vintage
from sankofa.model.catalogue_rows import VERDICTS, CheckRow
from sankofa.model.claims import ClaimedPeriod, ClaimedValue, read_claim, read_period
from sankofa.model.errors import Absence, InvalidParameter, Suggestion
from sankofa.model.identifiers import FREE_ID_TYPES
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.periods import months_of
from sankofa.model.provenance import SERVICE, source_ref
from sankofa.model.rows import MetricInput, decoder_of, wire
from sankofa.model.vintages import Mode
from sankofa.operations import parameters
from sankofa.operations.contract import MEMBERS, Answer, Call, operation, printable
from sankofa.operations.fundamentals import FigureFields, read_figures
from sankofa.operations.nearest import having_name, identified, line_items_meant, nearest_codes
from sankofa.operations.parameter_types import JsonSchema

_SUPPORTED, _THEN, _CONTRADICTED, _UNKNOWN = VERDICTS
_ID: Final = 26
_FULL_YEAR: Final = b'"period_type":"FY"'
_ONE_DAY: Final = timedelta(days=1)
_A_YEAR: Final = timedelta(days=364)
_MONTHS: Final = {"monthly": 1, "quarterly": 3, "annual": 12}
_MONTHS_OF: Final = {
    None: (1, 12), "Q1": (1, 3), "Q2": (4, 6), "Q3": (7, 9), "Q4": (10, 12), "H1": (1, 6), "H2": (7, 12),
    "9M": (1, 9),
}  # fmt: skip
"""The first and last month of a calendar year and of its parts."""
_BALANCES: Final = {"Q1": "Q1", "Q2": "H1", "Q3": "9M", "Q4": "FY", "H1": "H1", "H2": "FY", "9M": "9M"}
"""The period_type of the balance at the end of a part of a year."""


Reading = list[CheckRow]
"""The vintages of one figure, in each of its units, without a verdict."""


_metrics = decoder_of(
    [
        *(("value", Decimal), ("unit", str), ("period_end", date), ("available_at", date)),
        *(("source_ref", str), ("license_class", str), ("observed_at", str | None)),
        ("inputs", list[MetricInput]),
    ]
).decode
_LOSSES: Final = {
    "loss": "profit",
    "net_loss": "profit",
    "operating_loss": "operating_profit",
    "loss_before_tax": "profit_before_tax",
}
"""The measures that are a loss, each with the line item whose negative it is."""
_WHY: Final[dict[str, JsonSchema]] = {
    "unknown": MEMBERS["absent"]
    | {"description": "Why the claim is unknown, and what to ask instead; null for any other verdict."}
}


@operation("/v1/check", row=CheckRow, tool="check_claim", members=_WHY, extension=True)
async def check_claim(
    call: Call,
    *,
    subject: parameters.ClaimSubject,
    period: parameters.ClaimPeriod,
    value: parameters.ClaimValue,
    measure: parameters.ClaimMeasure = None,
    unit: parameters.ClaimUnit = None,
    as_of: parameters.AsOf = None,
) -> Answer:
    """Whether a claimed figure was reported, as known on a day.

    The answer is one row. `supported`: the latest figure known on `as_of` rounds to the claim as written.
    `supported_then`: only an earlier vintage does; it was restated on `restated_at`. `contradicted`: there is
    a figure, but no vintage rounds to the claim; the row shows the latest. `unknown`: no figure is known for
    that subject, measure and period, or its unit differs, or several figures disagree; `unknown` says which.
    Units and currencies are never guessed. Years, quarters and half-years are those of the issuer's own
    financial year; `period_start` and `period_end` name the days.
    """
    try:
        claim = read_claim(value, unit)
    except ValueError as failure:
        raise InvalidParameter("value", str(failure)) from None
    try:
        when = read_period(period)
    except ValueError as failure:
        raise InvalidParameter("period", str(failure)) from None
    day = as_of or call.today
    claimed = {"subject": subject, "period": period, "value": value, "as_of": as_of and as_of.isoformat()}
    texts = {name: text for name, text in {**claimed, "unit": unit}.items() if text}
    item = "_".join((measure or "").lower().replace("-", " ").replace("_", " ").split())
    if item in _LOSSES:
        item, claim = _LOSSES[item], claim._replace(number=-abs(claim.number))
    question = _Question(call, texts, item, when, day)
    readings = await question.readings()
    verdict, figure = _agreed(claim, readings)
    absent = _unsettled(claim, readings) if readings else question.absent
    if figure is None:
        figure = CheckRow(
            verdict=verdict,
            **dict.fromkeys("value unit available_at vintage restated_at period_start period_end".split()),
            source_ref=source_ref(SERVICE, "check", verdict),
            license_class="public-domain",
            observed_at=str(call.edition.manifest["built_from"]),
        )
    rows = Selection([wire.encode(replace(figure, verdict=verdict))], 1, truncated=False)
    return Answer(rows, as_of=day, absent=absent if verdict == _UNKNOWN else None, members={"unknown": None})


def judge(claim: ClaimedValue, figures: Reading) -> tuple[str, CheckRow | None]:
    comparable = [
        (figure, figure.value is not None and claim.bears_out(figure.value, figure.unit))
        for figure in figures
        if figure.value is None or claim.bears_out(figure.value, figure.unit) is not None
    ]
    for verdict, is_latest in ((_SUPPORTED, True), (_THEN, False)):
        for figure, matches in comparable:
            if matches and (figure.restated_at is None) is is_latest:
                return verdict, figure
    latest = [figure for figure, _ in comparable if figure.restated_at is None and figure.value is not None]
    return (_CONTRADICTED, latest[0]) if latest else (_UNKNOWN, None)


def _agreed(claim: ClaimedValue, readings: Iterable[Reading]) -> tuple[str, CheckRow | None]:
    """The verdict that every reading gives; unknown if they differ."""
    judged = [one for reading in readings if (one := judge(claim, reading))[0] != _UNKNOWN]
    return judged[0] if len({verdict for verdict, _ in judged}) == 1 else (_UNKNOWN, None)


def _unsettled(claim: ClaimedValue, readings: list[Reading]) -> Absence:
    if any(judge(claim, reading)[0] != _UNKNOWN for reading in readings):
        ends = sorted({f"{one.value} on {one.period_end}" for reading in readings for one in reading[-1:]})
        return Absence("ambiguous", f"Several figures fit the period, and they differ: {', '.join(ends)}.")
    units = sorted({one.unit or "no unit" for reading in readings for one in reading})
    return Absence("other_unit", f"The claim cannot be compared: the figure is in {' and in '.join(units)}.")


class _Question:
    def __init__(
        self, call: Call, texts: dict[str, str], measure: str, when: ClaimedPeriod, day: date
    ) -> None:
        self._call, self._texts, self._measure, self._when, self._day = call, texts, measure, when, day
        self._subject = texts["subject"].strip()
        self.absent = Absence("no_match", f"No figure of that period was public on {day}.")
        """Why there are no readings."""

    async def readings(self) -> list[Reading]:
        if not self._measure:
            return await self._of_series()
        service_id = await self._organisation()
        if service_id is None:
            return []
        if self._measure in slugs():
            return await self._of_metric(service_id)
        return await self._of_line_item(service_id)

    async def _organisation(self) -> str | None:
        """The one organisation with this identifier or exact name."""
        text = self._subject
        if len(text) == _ID and await self._call.edition.holds(ENTITIES, text.upper()):
            return text.upper()
        ids = {one.service_id for one in await identified(self._call, text, FREE_ID_TYPES)}
        ids = ids or {hit.id for hit in await having_name(self._call, text, 20)}
        if len(ids) == 1:
            return ids.pop()
        search = Suggestion("/v1/search", {"q": text}, "Find its service_id.")
        detail = f"No organisation has the identifier or the exact name {printable(text)}."
        if ids:
            detail = f"{len(ids)} organisations have this name: {', '.join(sorted(ids))}."
        self.absent = Absence("ambiguous" if ids else "unknown_organisation", detail, suggestions=(search,))
        return None

    async def _of_line_item(self, service_id: str) -> list[Reading]:
        having = [b'"line_item":"%b"' % self._measure.encode()]
        chosen = {}
        if self._measure in LINE_ITEMS:
            rows = read_figures(await self._rows(STATEMENTS, service_id, int(Mode.LATEST), having))
            chosen = {(one.period_end, one.period_type, one.concept): one.sign_turned for one in rows}
            having += {b'"concept":"%b"' % one.concept.encode() for one in rows if one.concept}
        reported = read_figures(await self._rows("fundamentals", service_id, int(Mode.ALL), having))
        facts = _preferred([one for one in reported if _is_of(self._when, one)], self._measure, chosen)
        if self._when.year is None and self._when.start is None:  # periods of several lengths end on one day
            years = [one for one in facts if one.period_type == "FY"]
            facts = years or [one for one in facts if one.period_start is None] or facts
        if not facts:
            self._no_figure(service_id, reported)
            return []
        readings: dict[tuple[date | None, date, str | None], Reading] = {}
        for one in facts:
            value = one.value_reported
            if value is not None and chosen.get((one.period_end, one.period_type, one.concept)):
                value = -value
            figure = _figure(one, value, one.vintage, one.superseded_at, one.period_end, one.period_start)
            readings.setdefault((one.period_start, one.period_end, one.concept), []).append(figure)
        return list(readings.values())

    async def _rows(
        self, dataset: str, key: str, modes: int, having: Collection[bytes], day: date | None = None
    ) -> bytes:
        number = (day or self._day).toordinal()
        selection = await self._call.edition.select(
            dataset, key, day=number, modes=modes, where=lambda row: any(part in row for part in having)
        )
        return b"[%b]" % selection.rows if selection is not None else b"[]"

    def _no_figure(self, service_id: str, reported: list[FigureFields]) -> None:
        if reported:
            ends = [one.period_end for one in reported]
            detail = f"Its {self._measure} is of other periods, which ended from {min(ends)} to {max(ends)}."
            self.absent = Absence("outside_dates", detail)
        elif self._measure not in LINE_ITEMS and (near := line_items_meant([self._measure])[:3]):
            alternatives = " or ".join(f"`{name}`" for name in near)
            detail = f"No line item or metric `{self._measure}`; did you mean {alternatives}?"
            texts = self._texts
            others = (Suggestion("/v1/check", {**texts, "measure": one}, f"With {one}.") for one in near)
            self.absent = Absence("unknown_line_item", detail, suggestions=tuple(others))
        else:
            every_item = Suggestion(f"/v1/fundamentals/{service_id}", {}, "Every line item it reports.")
            detail = f"The organisation had reported no `{self._measure}` by {self._day}."
            self.absent = Absence("not_reported", detail, suggestions=(every_item,))

    async def _of_metric(self, service_id: str) -> list[Reading]:
        """The metric as known on the last day on which the year was the latest one.

        If an input was restated since, the value was replaced on that day, and its successor is unknown.
        """
        years = read_figures(await self._rows("fundamentals", service_id, int(Mode.ALL), (_FULL_YEAR,)))
        readings = []
        for end in sorted({one.period_end for one in years if _is_year(self._when, one.period_end)}):
            later = [max(one.available_at, one.period_end) for one in years if one.period_end > end]
            day = min([self._day, *(known - _ONE_DAY for known in later)])
            having = (b'"metric":"%b"' % self._measure.encode(),)
            for one in _metrics(await self._rows("metrics", service_id, AS_KNOWN, having, day)):
                if one.period_end == end:
                    readings.append([_figure(one, one.value, 1, _restated(one.inputs, years), end)])
        if readings:
            return readings
        ends = sorted({one.period_end for one in years})
        detail = f"`{self._measure}` could not be computed exactly for that year as known on {self._day}."
        self.absent = Absence("left_out", detail)
        if not any(_is_year(self._when, end) for end in ends):
            known = f"they ended from {ends[0]} to {ends[-1]}" if ends else "none is known"
            self.absent = Absence("outside_dates", f"A metric is of a full year: {known}.")
        return []

    async def _of_series(self) -> list[Reading]:
        readings = []
        key = self._subject.upper()
        columns = await columns_of_series(self._call.edition, key)
        locked = self._call.lock is not None
        known = set[str]() if locked else {column.split("|")[2] for column in columns}
        for column in columns:
            frequency = column.split("|")[2]
            days: dict[date, list[Any]] = {}
            async for one in every_vintage(self._call.edition, column, self._day):
                known.add(frequency)  # a locked view does not tell of a series that begins later
                if _is_when(self._when, one.date, frequency):
                    days.setdefault(one.date, []).append(one)
            for own in days.values():
                own.sort(key=lambda one: one.vintage)
                later = [*(one.available_at for one in own[1:]), None]
                pairs = zip(own, later, strict=True)
                readings.append([_figure(one, one.value, one.vintage, at, one.date) for one, at in pairs])
        if not known:
            self.absent = await self._no_series(key)
        elif not readings:
            kinds = " and ".join(sorted(known))
            detail = f"The series is {kinds}; no value of this period was public on {self._day}."
            self.absent = Absence("no_match", detail)
        return readings

    async def _no_series(self, key: str) -> Absence:
        near = await nearest_codes(self._call.edition, key)
        hint = f" Nearest: {', '.join(near)}." if near else ""
        search = Suggestion("/v1/search", {"q": self._subject}, "Find its key.")
        what = f"No series {printable(self._subject)}"
        detail = f"{what}; for a figure of an organisation give `measure`.{hint}"
        return Absence("unknown_code", detail, suggestions=(search,))


def _preferred(
    facts: list[FigureFields], measure: str, chosen: Mapping[tuple[date, str, str | None], bool]
) -> list[FigureFields]:
    """The facts of the concept that a statement has for the period; else all of the line item."""
    in_statement = {(end, period_type) for end, period_type, _ in chosen}
    return [
        one
        for one in facts
        if (
            (one.period_end, one.period_type, one.concept) in chosen
            if (one.period_end, one.period_type) in in_statement
            else one.line_item == measure
        )
    ]


def _restated(inputs: Iterable[MetricInput], facts: list[FigureFields]) -> date | None:
    """The first day on which one of the inputs was restated."""
    used = {(one.concept, one.period_end, one.vintage, abs(one.value)) for one in inputs}
    return min(
        (
            one.superseded_at
            for one in facts
            if one.superseded_at is not None
            and (one.concept, one.period_end, one.vintage, abs(one.value_reported or 0)) in used
        ),
        default=None,
    )


def _figure(
    one: Any,
    value: Decimal | None,
    vintage: int,
    restated_at: date | None,
    end: date,
    start: date | None = None,
) -> CheckRow:
    return CheckRow(
        verdict=_UNKNOWN,
        value=value,
        unit=one.unit,
        available_at=one.available_at,
        vintage=vintage,
        restated_at=restated_at,
        period_start=start,
        period_end=end,
        source_ref=one.source_ref,
        license_class=one.license_class,
        observed_at=one.observed_at or "",
    )


def _is_of(when: ClaimedPeriod, one: FigureFields) -> bool:
    if when.year is None:
        return one.period_end == when.end and when.start in (None, one.period_start)
    if when.part is None:
        return one.period_type == "FY" and one.fiscal_year == when.year and _begins(when, one.period_end)
    part = when.part if one.period_start is not None else _BALANCES[when.part]
    return one.period_type == part and one.fiscal_year == when.year


def _begins(when: ClaimedPeriod, period_end: date) -> bool:
    return when.begins in (None, (period_end - _A_YEAR).year)


def _is_year(when: ClaimedPeriod, period_end: date) -> bool:
    if when.year is not None:
        return when.part is None and when.year == period_end.year and _begins(when, period_end)
    lasts = when.start and when.end and months_of(when.start.toordinal(), when.end.toordinal())
    return period_end == when.end and lasts in (None, 12)


def _is_when(when: ClaimedPeriod, day: date, frequency: str) -> bool:
    """Whether a value of a series, which has one day, is that of the whole period."""
    if when.begins is not None:
        return False
    months = _MONTHS.get(frequency)
    if when.year is not None:
        first, last = _MONTHS_OF[when.part]
        fits = when.year == day.year and first <= day.month <= last
        return fits and last - first + 1 == months
    if when.start is None or when.start == when.end:
        return day == when.end
    if months is None or when.end is None:
        return False
    first = (day.month - 1) // months * months + 1
    last = first + months - 1
    whole = date(day.year, first, 1), date(day.year, last, monthrange(day.year, last)[1])
    return (when.start, when.end) == whole
