"""metrics-v1, written from the rules alone (contract: MET-1, MET-2, MET-3, MET-8), a day at a time.

Uses no product code. For each day it takes what was public by then (`reference.knowable`), finds the latest
full year, and computes its line items from the filings of that day alone (`routes_reference`). It does the
same for today. If both give the same figures, in the same vintages, by the same routes, the day shows the
value.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from tests.world.reference import ExpectedRow, FiledFigure, knowable
from tests.world.routes_reference import Filed, Option, _unless, line_items, rules, terms

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
Key = tuple[str, str, date | None, date]
Basis = tuple[str, str]
"""Accounting standard and currency."""
ASSETS = ("assets", "us-gaap:Assets", "ifrs-full:Assets")


class Worked(NamedTuple):
    """A value computed from a set of figures, with the rows it came from; or the reason why there is none."""

    value: Decimal | None
    inputs: tuple[ExpectedRow, ...]
    available: date | None
    reason: str
    routes: tuple[int, ...] = ()


class _Looked(dict[str, Fraction]):
    """A table that records which items a formula read."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.names: list[str] = []

    def __getitem__(self, name: str) -> Fraction:
        self.names.append(name)
        return super().get(name, F(1))


class View(NamedTuple):
    """The figures of one period as known on a day, and those in each filing."""

    rows: dict[Key, ExpectedRow]
    filings: list[set[Key]]
    basis: Basis
    earlier: dict[Key, list[Decimal]]
    """The figures that those of `rows` replaced."""


class Issuer:
    """All reports of one issuer, and what each day shows."""

    def __init__(self, filed: Sequence[FiledFigure], today: date) -> None:
        self.filed = [t for t in filed if t.available is not None]
        self._end = today
        self._years = _reported_years(filed)
        self._is_full_by_period: dict[tuple[date | None, date, date], bool] = {}
        self._worked: dict[tuple[date, date, Basis | None], dict[str, Worked]] = {}
        self._figures_by_day: dict[date, list[ExpectedRow]] = {}
        self._views: dict[tuple[date, date], View] = {}
        self._by_figure: dict[Any, list[FiledFigure]] = {}
        self._by_end: dict[date, list[FiledFigure]] = {}
        for t in self.filed:
            self._by_figure.setdefault((t.concept, t.unit, t.start, t.end), []).append(t)
            self._by_end.setdefault(t.end, []).append(t)

    def current(self, day: date) -> dict[str, Answer]:
        """For each metric: the value or the reason why there is none, its inputs, and the year."""
        ends = self._published(day)
        if not ends:
            return dict.fromkeys(SLUGS, ("not_published", None, None))
        latest = max(ends)
        then = self._of_year(latest, day)
        view = self._view(latest, day)
        now = self._of_year(latest, self._end, view.basis if view.rows else None)
        return {slug: self._answer(slug, latest, then[slug], now[slug], day) for slug in SLUGS}

    def as_known(self, day: date) -> dict[str, Answer]:
        """The same with `basis=as_known`: nothing that became public later is used."""
        ends = self._published(day)
        if not ends:
            return dict.fromkeys(SLUGS, ("not_published", None, None))
        then = self._of_year(max(ends), day)
        return {
            slug: ("stands", own, max(ends)) if own.value is not None else (own.reason, None, max(ends))
            for slug, own in then.items()
        }

    def _answer(self, slug: str, end: date, then: Worked, now: Worked, day: date) -> Answer:
        if then[:2] == now[:2] and (then.reason, then.routes) == (now.reason, now.routes):
            return (then.reason, None, end) if then.value is None else ("stands", now, end)
        if then.value is None and now.value is None:
            return then.reason, None, end
        return self._why(slug, end, then, now, day), None, end

    def _why(self, slug: str, end: date, then: Worked, now: Worked, day: date) -> str:
        """Whether a restated or an added figure makes the day's value differ from today's."""
        then_public, today = self._facts(end, day), self._facts(end, self._end)
        used = {(row.concept, row.end) for worked in (then, now) for row in worked.inputs}
        decides = {concept for name in _needed(slug) for concept in deciding(name)}
        restated = {key for key in then_public if then_public[key] != today.get(key)}
        added = today.keys() - then_public.keys()
        for state, keys, inputs in (
            ("revised_after_as_of", restated, True),
            ("completed_after_as_of", added, True),
            ("revised_after_as_of", restated, False),
        ):
            if any(key[0] in decides and ((key[0], key[3]) in used) is inputs for key in keys):
                return state
        return "completed_after_as_of"

    def _facts(self, end: date, day: date) -> dict[Key, ExpectedRow]:
        before = self._before(end, day)
        views = [self._view(one, day) for one in (end, before) if one is not None]
        return {key: row for view in views for key, row in view.rows.items()}

    def _published(self, day: date, *, lasting: bool = False) -> set[date]:
        """The full years with a figure, other than a single balance, reported between their end and a day."""
        return {
            t.end
            for end, figures in self._by_end.items()
            for t in figures
            if t.available is not None and end <= t.available <= day and t.value is not None
            if (t.start or not lasting) and self._is_full(t.start, t.end, t.available)
        }

    def _before(self, end: date, day: date) -> date | None:
        published = self._published(day)
        closest = _closest(self._published(day, lasting=True), end) or _closest(published, end)
        return closest or _closest({row.end for row in self._full_year_figures(day)} - published, end)

    def _of_year(self, end: date, day: date, basis: Basis | None = None) -> dict[str, Worked]:
        """Every metric of a full year, computed from what was public by a day."""
        if (end, day, basis) not in self._worked:
            before = self._before(end, day)
            year = self._view(end, day)
            earlier = self._view(before, day) if before else None
            tables = {
                b: _table(year, earlier, b) for b in _bases(year) | (_bases(earlier) if earlier else set())
            }
            own = tables.get(basis or year.basis) or _table(year, earlier, basis or year.basis)
            self._worked[end, day, basis] = {slug: _work(slug, own, tables) for slug in SLUGS}
        return self._worked[end, day, basis]

    def _view(self, end: date, day: date) -> View:
        if (end, day) not in self._views:
            self._views[end, day] = self._viewed(end, day)
        return self._views[end, day]

    def _viewed(self, end: date, day: date) -> View:
        rows = {row[:4]: row for row in self._full_year_figures(day) if row.end == end}
        first: dict[str, date] = {}
        last: dict[str, tuple[date, str]] = {}
        filings: dict[str, set[Key]] = {}
        for t in self._by_end[end]:
            assert t.available is not None
            key = (t.concept, t.unit, t.start, t.end)
            if t.available > day or t.concept not in used_concepts():
                continue
            row = rows.get(key)
            if self._is_full(t.start, t.end, t.available) or row is not None:
                first[t.document] = min(t.available, first.get(t.document, t.available))
            if row is not None and t.value == row.value and t.available >= row.available:
                filings.setdefault(t.document, set()).add(key)
                if t.concept in ASSETS:
                    last[t.document] = max((t.available, t.document), last.get(t.document, (date.min, "")))
        order = sorted(filings, key=lambda d: (max(first[d], end), first[d], d))
        reporting = max(last, key=lambda d: (max(last[d][0], end), *last[d]), default=None)
        rows = {key: row for key, row in rows.items() if key[0] in used_concepts()}
        earlier: dict[Key, list[Decimal]] = {}
        for one in knowable([t for t in self._by_end[end] if t.concept in used_concepts()], day, "all"):
            if one.value is not None and one[:4] in rows and one.vintage < rows[one[:4]].vintage:
                earlier.setdefault(one[:4], []).append(one.value)
        basis = _basis(rows, filings.get(reporting or "", set()))
        return View(rows, [filings[d] for d in order], basis, earlier)

    def _full_year_figures(self, day: date) -> list[ExpectedRow]:
        """The figures of full years; opening balances come from the report that repeats them."""
        if day in self._figures_by_day:
            return self._figures_by_day[day]
        full = []
        for row in knowable(self.filed, day, "latest"):
            if row.value is None:
                continue
            if self._is_full(row.start, row.end, row.available):
                full.append(row)
            elif row.start is None:
                again = [
                    t.available
                    for t in self._by_figure[row[:4]]
                    if t.value == row.value
                    and t.available
                    and row.available < t.available <= day
                    and self._is_full(None, row.end, t.available)
                ]
                if again:
                    full.append(row._replace(available=min(again)))
        self._figures_by_day[day] = full
        return full

    def _is_full(self, start: date | None, end: date, day: date) -> bool:
        period = (start, end, day)
        if period not in self._is_full_by_period:
            self._is_full_by_period[period] = self._is_full_year(start, end, day)
        return self._is_full_by_period[period]

    def _is_full_year(self, start: date | None, last: date, day: date) -> bool:
        """Twelve months to a year-end, or an instant on one, as far as that was known on the day."""
        if start is not None and not _twelve_months(start, last):
            return False
        reported = _without_trailing(
            Counter(
                {
                    year: sum(count for public, count in days.items() if public <= day)
                    for year, days in self._years.items()
                    if min(days) <= day
                }
            )
        )
        if not reported:
            return False
        ends = {end for _, end in reported} | {start - timedelta(days=1) for start, _ in reported}
        if any(abs((last - end).days) <= 10 for end in ends):
            return last in ends
        first, end = min(reported, key=lambda year: abs((last - year[1]).days))
        away = (last - end).days
        if abs(away - round(away / 365.25) * 365.25) > 10:
            return False
        if ((end - first).days + 1) % 7 == 0:
            return away % 7 == 0
        return (last + timedelta(days=1)).replace(year=2000) == (end + timedelta(days=1)).replace(year=2000)


@cache
def _parameters(formula: Callable[[Table], Any]) -> tuple[str, ...]:
    looked = _Looked({})
    formula(looked)
    return tuple(dict.fromkeys(looked.names))


@cache
def _forms(slug: str) -> list[tuple[set[str], Callable[[Table], tuple[Fraction, Fraction]]]]:
    if slug == "gross_margin":
        formulas: list[Callable[[Table], tuple[Fraction, Fraction]]] = [
            lambda t: (t["gross_profit"], t["revenue"]),
            lambda t: (t["revenue"] - t["cost_of_sales"], t["revenue"]),
        ]
    else:
        formulas = [FORMULAS[slug]]
    return [(set(_parameters(formula)), formula) for formula in formulas]


@cache
def used_concepts() -> frozenset[str]:
    """Every name that the two files use."""
    names = set(rules()["items"])
    for text in _texts(rules()):
        names.update(name.lstrip("-") for name in re.findall(r"[\w-]+:\w+", text))
    return frozenset(names)


def _texts(data: Any) -> Iterator[str]:
    """Every text in the files, including names, without explanations."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for name, inner in data.items():
            yield name
            if name != "why":
                yield from _texts(inner)
    elif isinstance(data, list):
        for inner in data:
            yield from _texts(inner)


@cache
def deciding(item: str) -> frozenset[str]:
    """Every name that can decide which figure an item uses."""
    items, deciders = {item}, set[str]()
    for identity in rules()["identities"].values():
        names = {name for _, name in terms(identity["items"])}
        if items & names:
            items |= names
            deciders |= {name for _, name in terms(identity.get("optional", ""))}
    for one in items:
        deciders.add(one)
        for route in rules()["items"].get(one, []):
            deciders |= {name for _, name in terms(route.get("take", ""))} | set(
                _unless(route.get("unless", ""))
            )
            deciders |= {name for text in route.get("at_least", []) for _, name in terms(text)}
            equations = rules()["confirmations"].get(route.get("confirm", ""), [])
            deciders |= {name for equation in equations for _, name in terms(equation)}
            for name in route.get("of", "").split():
                breakdown = rules()["breakdowns"][name]
                deciders |= {
                    c.lstrip("-") for members in breakdown["members"].values() for c in members.split()
                }
                deciders |= {c for text in breakdown["totals"] for _, c in terms(text)}
        deciders |= {name for text in rules()["parts"].get(one, []) for _, name in terms(text)}
    return frozenset(deciders)


def _needed(slug: str) -> set[str]:
    return {name.lstrip("-") for needs, _ in _forms(slug) for name in needs}


def _standard(concept: str) -> str:
    prefix = concept.partition(":")[0]
    return prefix if prefix in ("us-gaap", "ifrs-full") else ""


def _bases(view: View) -> set[Basis]:
    return {(_standard(concept), unit) for concept, unit, _, _ in view.rows if unit}


def _basis(rows: dict[Key, ExpectedRow], reporting: set[Key]) -> Basis:
    """The basis of the latest filing that reports assets; without one, the basis of most figures."""
    keys = reporting or set(rows)
    assets = {key for key in reporting if key[0] in ASSETS}
    moneys = Counter(unit for _, unit, _, _ in keys if unit)
    allowed = {unit for _, unit, _, _ in assets or keys if unit}
    money = min(allowed, key=lambda unit: (-moneys[unit], unit), default="")
    standards = {_standard(concept) for concept, unit, _, _ in assets if unit == money} - {""}
    counted = keys if standards else set(rows)
    counts = Counter(_standard(concept) for concept, unit, _, _ in counted if unit == money)
    standards = standards or counts.keys() - {""}
    return min(standards, key=lambda name: (-counts[name], name), default=""), money


def _filed(view: View, basis: Basis) -> Filed:
    standard, money = basis
    own = [k for k in view.rows if k[1] in ("", money) and _standard(k[0]) in ("", standard)]
    spans = Counter(start for _, _, start, _ in own if start)
    span = min(spans, key=lambda s: (-spans[s], s), default=None)
    # A filer may tag one concept as a duration and, by mistake, as an instant: the duration counts.
    own.sort(key=lambda key: (key[2] is not None, key[1] == money))
    chosen = {key[0]: key for key in own if key[2] in (None, span)}
    filings: list[frozenset[str]] = []
    for filing in view.filings:
        concepts = frozenset(key[0] for key in filing & set(chosen.values()))
        if concepts and not any(concepts <= earlier for earlier in filings):
            filings.append(concepts)
    earlier = {concept: view.earlier[key] for concept, key in chosen.items() if key in view.earlier}
    return Filed({concept: view.rows[key] for concept, key in chosen.items()}, filings, earlier)


def _table(year: View, earlier: View | None, basis: Basis) -> dict[str, Option]:
    """The items of a year; `=` and `-` use two years by one route, `before` the older one."""
    own = line_items(ITEMS, _filed(year, basis))
    older = line_items(ITEMS, _filed(earlier, basis)) if earlier else {}
    table = {name: ways[0] for name, ways in own.items() if ways}
    table |= {"before " + name: ways[0] for name, ways in older.items() if ways}
    for name, ways in own.items():
        routes = {option.route: option for option in older.get(name, [])}
        option = next((o for o in ways if o.route in routes), None)
        if option is not None:
            table["=" + name], table["-" + name] = option, routes[option.route]
    return table


def _work(slug: str, own: dict[str, Option], tables: dict[Basis, dict[str, Option]]) -> Worked:
    match = _first_match(slug, own)
    if match is not None:
        (above, below), inputs, routes = match
        if below <= 0:
            return Worked(None, inputs, None, "denominator_not_positive", routes)
        return Worked(_ten_digits(above / below), inputs, max(row.available for row in inputs), "", routes)
    everything: set[str] = set()
    if len({money for _, money in tables}) > 1:
        every = list(tables.values())
        everything = {name for table in every for name in table if name[0].isalpha() and name in ITEMS}
        for name in {name[1:] for name in FORMULA_INPUTS if name[0] == "-"} & everything:
            if any("before " + name in table for table in every):
                same = any("=" + name in table for table in every)
                if same or not any(name in table and "before " + name in table for table in every):
                    everything |= {"=" + name, "-" + name}
    mixed = any({_looked_up(n, needs) for n in needs} <= everything for needs, _ in _forms(slug))
    return Worked(None, (), None, "currency_mixed" if mixed else "input_absent")


FORMULA_INPUTS = {name for slug in SLUGS for needs, _ in _forms(slug) for name in needs}
ITEMS = {name for name in FORMULA_INPUTS if name[0] != "-"}


def _looked_up(name: str, needs: set[str]) -> str:
    return "=" + name if "-" + name in needs else name


def _first_match(
    slug: str, table: dict[str, Option]
) -> tuple[tuple[Fraction, Fraction], tuple[ExpectedRow, ...], tuple[int, ...]] | None:
    """The value of the first formula whose inputs are all reported, and its inputs."""
    for needs, formula in _forms(slug):
        names = {name: _looked_up(name, needs) for name in needs}
        if table.keys() >= set(names.values()):
            values = {name: table[own].value for name, own in names.items()}
            chosen = [table[names[name]] for name in _parameters(formula)]
            inputs = tuple(row for option in chosen for row in option.inputs)
            return formula(values), inputs, tuple(option.route for option in chosen)
    return None


def _reported_years(filed: Sequence[FiledFigure]) -> dict[tuple[date, date], Counter[date]]:
    """The reported full years, and how many figures each day has of them.

    Twelve months that are the smaller part of an interim report are not a year: such a report has more
    figures of the year to date.
    """
    figures = Counter((t.document, t.end, t.start) for t in filed if t.start is not None)
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
    for t in filed:
        if t.start and t.available and _twelve_months(t.start, t.end) and (t.start, t.end) not in trailing:
            years.setdefault((t.start, t.end), Counter())[t.available] += 1
    return years


def _without_trailing(figures: Counter[tuple[date, date]]) -> set[tuple[date, date]]:
    """The years among twelve-month periods: an issuer has one year at a time.

    A filing has only a figure or two for twelve months that span two years, but many for a real year. If two
    periods overlap by more than a month and one has less than a quarter of the figures of the other, it ends
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
    digits = 0
    while abs(exact) * F(10) ** digits >= 10**10:
        digits -= 1
    while abs(exact) * F(10) ** digits < 10**9:
        digits += 1
    return Decimal(round(exact * F(10) ** digits)).scaleb(-digits)  # round() of a Fraction is half-even


def _twelve_months(start: date, end: date) -> bool:
    return timedelta(days=345) <= end - start + timedelta(days=1) <= timedelta(days=385)


def _closest(years: set[date], end: date) -> date | None:
    """The year that ended one year before another, within ten days."""
    ended = _year_earlier(end)
    prior = [year for year in years if abs((year - ended).days) <= 10]
    return min(prior, key=lambda year: abs((year - ended).days), default=None)


def _year_earlier(day: date) -> date:
    return day.replace(year=day.year - 1, day=28 if (day.month, day.day) == (2, 29) else day.day)
