"""metrics-v1, written from the rules alone (contract: MET-1, MET-2, MET-3, MET-8), a day at a time.

Nothing of the product is used here. For each day asked about it looks at what was
public by then (`reference.knowable`), finds the latest full year, computes today's value of it, asks of
every input whether the figure it holds today was the one in force on that day, and works the line items out
again from the figures of that day alone: they must come by the same routes (`routes_reference`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from tests.world.reference import Seen, Told, knowable
from tests.world.routes_reference import Filed, Option, line_items

F = Fraction
Table = dict[str, Fraction]
FORMULAS: dict[str, Callable[[Table], tuple[Fraction, Fraction]]] = {
    "operating_margin": lambda t: (t["operating_profit"], t["revenue"]),
    "pretax_margin": lambda t: (t["profit_before_tax"], t["revenue"]),
    "net_margin": lambda t: (t["profit"], t["revenue"]),
    "ebitda_margin": lambda t: (t["operating_profit"] + t["depreciation_amortisation"], t["revenue"]),
    "effective_tax_rate": lambda t: (t["income_tax"], t["profit_before_tax"]),
    "return_on_assets": lambda t: (t["profit"], F(t["assets"] + t["-assets"], 2)),
    "return_on_equity": lambda t: (t["profit_owners"], F(t["equity_owners"] + t["-equity_owners"], 2)),
    "return_on_capital_employed": lambda t: (
        t["operating_profit"], t["assets"] - t["current_liabilities"]
    ),
    "asset_turnover": lambda t: (t["revenue"], F(t["assets"] + t["-assets"], 2)),
    "current_ratio": lambda t: (t["current_assets"], t["current_liabilities"]),
    "quick_ratio": lambda t: (t["current_assets"] - t["inventories"], t["current_liabilities"]),
    "cash_ratio": lambda t: (t["cash"], t["current_liabilities"]),
    "debt_to_equity": lambda t: (t["total_debt"], t["equity"]),
    "net_debt_to_ebitda": lambda t: (
        t["total_debt"] - t["cash"],
        t["operating_profit"] + t["depreciation_amortisation"],
    ),
    "interest_cover": lambda t: (t["operating_profit"], t["finance_costs"]),
    "liabilities_to_assets": lambda t: (t["liabilities"], t["assets"]),
    "free_cash_flow_margin": lambda t: (t["operating_cash_flow"] - t["capex"], t["revenue"]),
    "cash_conversion": lambda t: (
        t["operating_cash_flow"], t["operating_profit"] + t["depreciation_amortisation"]
    ),
    "capex_intensity": lambda t: (t["capex"], t["revenue"]),
    "payout_ratio": lambda t: (t["dividends_paid"], t["profit_owners"]),
    "accruals_ratio": lambda t: (t["profit"] - t["operating_cash_flow"], F(t["assets"] + t["-assets"], 2)),
    "revenue_growth": lambda t: (t["revenue"] - t["-revenue"], t["-revenue"]),
    "profit_growth": lambda t: (t["profit"] - t["-profit"], t["-profit"]),
    "loan_to_deposit": lambda t: (t["loans"], t["deposits"]),
    "receivable_days": lambda t: (365 * t["receivables"], t["revenue"]),
    "inventory_days": lambda t: (365 * t["inventories"], t["cost_of_sales"]),
    "payable_days": lambda t: (365 * t["payables"], t["cost_of_sales"]),
}  # fmt: skip
SLUGS = sorted([*FORMULAS, "gross_margin"])


Answer = tuple[str, "Worked | None", date | None]
"""The state, how the value was worked out, and the year."""


class Worked(NamedTuple):
    """A value as computed from a set of figures, with the rows it came from; or why there is none."""

    value: Decimal | None
    inputs: tuple[Seen, ...]
    available: date | None
    reason: str
    unit: str = ""
    before: date | None = None


class _Looked(dict[str, Fraction]):
    """A table that remembers what a formula asked of it."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.asked: list[str] = []

    def __getitem__(self, name: str) -> Fraction:
        self.asked.append(name)
        return super().get(name, F(1))


class Issuer:
    """Everything one issuer ever told, and what each day shows of it."""

    def __init__(self, told: Sequence[Told], today: date) -> None:
        self.told = told
        self.today = knowable(told, today, "latest")
        self._first_told: dict[Any, date] = {}
        for row in knowable(told, today, "all"):
            public = max(row.available, row.end)
            self._first_told[row[:4]] = min(public, self._first_told.get(row[:4], public))
        self._years = _reported_years(told)
        self._repeated: dict[Any, list[Told]] = {}
        for t in told:
            if t.start is None and t.available is not None:
                self._repeated.setdefault((t.concept, t.unit, t.start, t.end), []).append(t)
        self._named: dict[tuple[date | None, date, date], bool] = {}
        self._today: dict[tuple[str, date], Worked] = {}
        self._tables: dict[tuple[date, date | None], dict[str, dict[str, Option]]] = {}
        self._full_rows: dict[date, list[Seen]] = {}
        self._then: dict[tuple[date, date, date | None, str], dict[str, Option]] = {}

    def shown(self, day: date) -> dict[str, Answer]:
        """By metric: the value or the reason why there is none, how it was worked out, and the year."""
        every = knowable(self.told, day, "all")
        then = {row for row in every if row.superseded_at is None}
        ends = {row.end for row in every if self._full_year(row)}
        if not ends:
            return dict.fromkeys(SLUGS, ("not_published", None, None))
        latest = max(ends)
        return {slug: self._answer(slug, latest, then, day) for slug in SLUGS}

    def _answer(self, slug: str, end: date, then: set[Seen], day: date) -> Answer:
        if (slug, end) not in self._today:
            self._today[slug, end] = self._worked(slug, end)
        now = self._today[slug, end]
        if now.value is None:
            return now.reason, None, end
        known = {row[:4] for row in then}
        if any(row[:4] not in known for row in now.inputs):
            return "completed_after_as_of", None, end
        # what it is computed from must have been in force then, and chosen then as it is today
        if not {*now.inputs} <= then:
            return "revised_after_as_of", None, end
        if not self._same(slug, end, now, day):
            return "revised_after_as_of", None, end
        return "stands", now, end

    def stood_throughout(self, slug: str, day: date) -> bool:
        """Whether a value that stands on a day was had by the same figures on every day since.

        Where it was not, a figure that only guards a route was restated in between: the value may be
        left out until that figure was settled, never shown before its own figures were.
        """
        _, now, end = self.shown(day)[slug]
        if now is None or end is None:
            return False
        later = {t.available for t in self.told if t.end in (end, now.before) and t.available}
        return all(self._same(slug, end, now, d) for d in later if d > day)

    def _same(self, slug: str, end: date, now: Worked, day: date) -> bool:
        """Whether a day had the value that is had today, by the same figures."""
        key = (day, end, now.before, now.unit)
        if key not in self._then:
            if day not in self._full_rows:
                self._full_rows[day] = self._of_full_years(knowable(self.told, day, "latest"), day)
            self._then[key] = self._table(self._full_rows[day], now.unit, end, now.before, day)
        taken = _taken(slug, self._then[key])
        return taken is not None and Counter(taken[1]) == Counter(now.inputs)

    def _worked(self, slug: str, end: date) -> Worked:
        full = self._of_full_years(self.today, date.max)
        published = {row.end for row in full if self._full_year(row)}
        before = _closest(published, end) or _closest({row.end for row in full}, end)
        if (end, before) not in self._tables:
            units = {row.unit for row in full if row.unit}
            self._tables[end, before] = {
                unit: self._table(full, unit, end, before, date.max) for unit in units
            }
        tables = self._tables[end, before]
        own = {unit: [o for name, o in table.items() if name[0].isalpha()] for unit, table in tables.items()}
        best = sorted(
            (unit for unit in tables if own[unit]),
            key=lambda u: (-len(own[u]), min(self._first(option) for option in own[u]), u),
        )
        for unit in best:
            taken = _taken(slug, tables[unit])
            if taken is not None:
                (above, below), inputs = taken
                if below <= 0:
                    return Worked(None, inputs, None, "denominator_not_positive")
                available = max(row.available for row in inputs)
                return Worked(_ten_digits(above / below), inputs, available, "", unit, before)
        everything: set[str] = set()
        for table in tables.values():
            everything |= table.keys()
        for name in {name[1:] for name in ASKED if name[0] == "-"}:
            now = {unit for unit, table in tables.items() if name in table}
            then = {unit for unit, table in tables.items() if "before " + name in table}
            if now and then and not now & then:
                everything |= {"=" + name, "-" + name}
        mixed = any({_looked_up(n, needs) for n in needs} <= everything for needs, _ in _forms(slug))
        return Worked(None, (), None, "currency_mixed" if mixed else "input_absent")

    def _first(self, option: Option) -> date:
        """When all that an item rests on was first told of."""
        return max(self._first_told[row[:4]] for row in option.inputs)

    def _table(
        self, rows: Sequence[Seen], unit: str, end: date, before: date | None, day: date
    ) -> dict[str, Option]:
        """The items of a year; with `=` and `-` those of two years by one route, with `before` the older."""
        own, older = (
            line_items(ITEMS, self._filed(rows, unit, of, day)) if of else {} for of in (end, before)
        )
        table = {name: ways[0] for name, ways in own.items() if ways}
        table |= {"before " + name: ways[0] for name, ways in older.items() if ways}
        for name, ways in own.items():
            routes = {option.route: option for option in older.get(name, [])}
            option = next((o for o in ways if o.route in routes), None)
            if option is not None:
                table["=" + name], table["-" + name] = option, routes[option.route]
        return table

    def _filed(self, rows: Sequence[Seen], unit: str, end: date, day: date) -> Filed:
        own = [row for row in rows if row.unit == unit and row.end == end]
        spans = Counter(row.start for row in own if row.start)
        span = min(spans, key=lambda s: (-spans[s], s), default=None)
        # A filer may tag one concept as a duration and, by mistake, as an instant: the duration counts.
        own.sort(key=lambda row: row.start is not None)
        held = {row.concept: row for row in own if row.start in (None, span)}
        filings: dict[str, dict[str, date]] = {concept: {} for concept in held}
        for told in self.told:
            row = held.get(told.concept)
            public = told.available
            if row is None or public is None or public > day:
                continue
            same = (told.unit, told.start, told.end) == row[1:4] and told.value == row.value
            if same and public >= row.available:
                known = filings[told.concept]
                known[told.document] = min(public, known.get(told.document, public))
        return Filed(held, filings)

    def _of_full_years(self, rows: Iterable[Seen], day: date) -> list[Seen]:
        """Those of full years; and balances that were told again by a day, as of a day that ends a year."""
        return [
            row
            for row in rows
            if self._full_year(row)
            or any(
                t.value == row.value
                and row.available < t.available <= day
                and self._full_year(row._replace(available=t.available))
                for t in self._repeated.get(row[:4], ())
                if t.available is not None and row.value is not None
            )
        ]

    def _full_year(self, row: Seen) -> bool:
        named = (row.start, row.end, row.available)
        if named not in self._named:
            self._named[named] = self._is_full_year(row)
        return self._named[named]

    def _is_full_year(self, row: Seen) -> bool:
        """Twelve months to a year-end, or an instant on one, as far as those were known that day."""
        if row.start is not None and not _twelve_months(row.start, row.end):
            return False
        known = _without_trailing(
            Counter(
                {
                    year: sum(count for public, count in days.items() if public <= row.available)
                    for year, days in self._years.items()
                    if min(days) <= row.available
                }
            )
        )
        ends = {end for _, end in known} | {start - timedelta(days=1) for start, _ in known}
        if any(abs((row.end - end).days) <= 10 for end in ends):
            return row.end in ends
        start, end = min(known, key=lambda year: abs((row.end - year[1]).days))
        away = (row.end - end).days
        if abs(away - round(away / 365.25) * 365.25) > 10:
            return False
        if ((end - start).days + 1) % 7 == 0:
            return away % 7 == 0
        return (row.end + timedelta(days=1)).replace(year=2000) == (end + timedelta(days=1)).replace(
            year=2000
        )


@cache
def _asked(formula: Callable[[Table], Any]) -> tuple[str, ...]:
    looked = _Looked({})
    formula(looked)
    return tuple(dict.fromkeys(looked.asked))


@cache
def _forms(slug: str) -> list[tuple[set[str], Callable[[Table], tuple[Fraction, Fraction]]]]:
    if slug == "gross_margin":
        formulas: list[Callable[[Table], tuple[Fraction, Fraction]]] = [
            lambda t: (t["gross_profit"], t["revenue"]),
            lambda t: (t["revenue"] - t["cost_of_sales"], t["revenue"]),
        ]
    else:
        formulas = [FORMULAS[slug]]
    return [(set(_asked(formula)), formula) for formula in formulas]


ASKED = {name for slug in SLUGS for needs, _ in _forms(slug) for name in needs}
ITEMS = {name for name in ASKED if name[0] != "-"}


def _looked_up(name: str, needs: set[str]) -> str:
    return "=" + name if "-" + name in needs else name


def _taken(slug: str, table: dict[str, Option]) -> tuple[tuple[Fraction, Fraction], tuple[Seen, ...]] | None:
    """What the first formula whose inputs are all there gives, and the figures it rests on."""
    for needs, formula in _forms(slug):
        names = {name: _looked_up(name, needs) for name in needs}
        if table.keys() >= set(names.values()):
            values = {name: table[found].value for name, found in names.items()}
            inputs = tuple(row for name in _asked(formula) for row in table[names[name]].inputs)
            return formula(values), inputs
    return None


def _reported_years(told: Sequence[Told]) -> dict[tuple[date, date], Counter[date]]:
    """The full years told of, and on which days how many figures of each.

    Twelve months that are the smaller part of an interim report are none: such a report that gives the
    twelve months to its last day too gives more of the year to date.
    """
    figures = Counter((t.document, t.end, t.start) for t in told if t.start is not None)
    most: dict[tuple[str, date], int] = {}
    for (document, end, start), count in figures.items():
        if not _twelve_months(start, end):
            most[document, end] = max(most.get((document, end), 0), count)
    trailing = {
        (start, end)
        for (document, end, start), count in figures.items()
        if _twelve_months(start, end) and count < most.get((document, end), 0)
    }
    years: dict[tuple[date, date], Counter[date]] = {}
    for t in told:
        if t.start and t.available and _twelve_months(t.start, t.end) and (t.start, t.end) not in trailing:
            years.setdefault((t.start, t.end), Counter())[t.available] += 1
    return years


def _without_trailing(figures: Counter[tuple[date, date]]) -> set[tuple[date, date]]:
    """The years among twelve months told of: an issuer has one year at a time.

    Of twelve months that run through parts of two years a filing tells a figure or two, of a year all it
    has: where two overlap by more than a month and one has not a quarter of the figures of the other, it ends
    on no year-end of the issuer and is trailing.
    """
    return {
        (start, end)
        for (start, end), count in figures.items()
        if not any(
            others > 4 * count
            and (start, end) != (first, last)
            and min(end, last) - max(start, first) > timedelta(days=31)
            for (first, last), others in figures.items()
        )
    }


def _ten_digits(exact: Fraction) -> Decimal:
    """Round half to even at the tenth significant digit, in whole numbers."""
    if exact == 0:
        return Decimal(0)
    place = 0
    while abs(exact) * F(10) ** place >= 10**10:
        place -= 1
    while abs(exact) * F(10) ** place < 10**9:
        place += 1
    return Decimal(round(exact * F(10) ** place)).scaleb(-place)  # round() of a Fraction is half-even


def _twelve_months(start: date, end: date) -> bool:
    return timedelta(days=345) <= end - start + timedelta(days=1) <= timedelta(days=385)


def _closest(years: set[date], end: date) -> date | None:
    """The year that ended one year before another, within ten days."""
    ended = _year_earlier(end)
    prior = [year for year in years if abs((year - ended).days) <= 10]
    return min(prior, key=lambda year: abs((year - ended).days), default=None)


def _year_earlier(day: date) -> date:
    return day.replace(year=day.year - 1, day=28 if (day.month, day.day) == (2, 29) else day.day)
