"""Every route reaches its figure from a small filing of its own, and conditions can close it."""

import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from importlib.resources import files

import pytest

from sankofa.derive.metrics.lines import Fact, Lines, odd_measures, pass_over_misscaled
from sankofa.derive.metrics.period_views import check_identities
from sankofa.derive.metrics.routes import metric_inputs
from sankofa.ledger.reader import CaptureInfo
from sankofa.ledger.reports import Report
from sankofa.model.line_items import SELF, Route, Term, parse, table
from tests.every import every
from tests.unit.derive.test_full_years import flow, issuer
from tests.world.route_examples import read_examples, route_key, routes_with_a_filing

CAPTURE = CaptureInfo("test", "2024-01-01T00:00:00Z", "synthetic", "file")
END, FILED = 738_000, 738_060
IN_METRICS = metric_inputs()
ROUTES = [route for item in sorted(IN_METRICS) for route in table().routes[item]]


def fact(value: int) -> Fact:
    report = Report(str(value), FILED, "", "s", "10-K", "", "", 1, CAPTURE)
    return Fact(1, Decimal(value), report)


def filing(*filings: Mapping[str, int]) -> Lines:
    """The reports of one filing or several."""
    figures = {concept: value for one in filings for concept, value in one.items()}
    facts = {concept: fact(value) for concept, value in figures.items()}
    return Lines(facts, [frozenset(one) for one in filings], END)


def values(lines: Lines, item: str) -> dict[int, Decimal]:
    return {figure.route: figure.value for figure in lines.figures(item)}


def example(route: Route, member_number: int) -> tuple[dict[str, int], int]:
    """A filing with only the inputs of a route, and the value it gives."""
    figures = {term.concept: 5000 >> 2 * n for n, term in enumerate(route.terms)}
    if route.confirm == "nothing":
        first, *rest = route.terms
        figures |= {term.concept: 5000 + 700 * n for n, term in enumerate(rest)}
        figures[first.concept] = -5000 if rest else 0
        if rest:
            balance(figures, route.terms, 0)
    value = sum(term.sign * figures[term.concept] for term in route.terms)
    for name in route.of:
        breakdown = table().breakdowns[name]
        of_kind = [c for c, (_, kind) in breakdown.members.items() if kind == route.members]
        closing = {*figures, *route.unless}
        other = next(c for c, (_, kind) in breakdown.members.items() if not kind and c not in closing)
        members = {other: 42}
        if member_number < len(of_kind):
            member = of_kind[member_number]
            members[member] = figures.get(member, 310)
            value += members[member]
        figures = members | figures
        total = sum(breakdown.members[c][0] * amount for c, amount in members.items())
        balance(figures, breakdown.totals[0], total)
    if route.confirm and route.confirm != "nothing":
        own = {term.concept for term in route.terms}
        equation = next(
            e for e in table().confirmations[route.confirm] if own.isdisjoint(t.concept for t in e)
        )
        others = [term for term in equation if term.concept != SELF]
        figures |= {term.concept: 900 + 7 * n for n, term in enumerate(others)}
        sign = next(term.sign for term in equation if term.concept == SELF)
        balance(figures, others, -sign * value)
    return figures, value


def balance(figures: dict[str, int], terms: Sequence[Term], total: int) -> None:
    """Give the last of some concepts the figure that makes all of them add up to a total."""
    *others, last = terms
    for number, term in enumerate(others):
        figures.setdefault(term.concept, 900 + 7 * number)
    remainder = total - sum(term.sign * figures[term.concept] for term in others)
    figures[last.concept] = last.sign * remainder


def test_every_route_has_a_real_filing_that_uses_it() -> None:
    keys = [route_key(route) for route in routes_with_a_filing()]
    assert len(set(keys)) == len(keys)
    assert read_examples().keys() == set(keys)


@every("route", ROUTES, ids=lambda r: f"{r.item}-{r.number}")
def test_a_route_gives_its_figure_from_a_filing_with_its_parts(route: Route) -> None:
    for member_number in range(40):  # one member must open no better route
        figures, value = example(route, member_number)
        by_number = values(filing(figures), route.item)
        if route.number in by_number:
            assert by_number[route.number] == value
            return
        assert route.members, by_number
    pytest.fail("no filing opens it")


@every("route", [r for r in ROUTES if len(r.terms) > 1], ids=lambda r: f"{r.item}-{r.number}")
def test_without_any_one_of_its_parts_a_route_is_closed(route: Route) -> None:
    figures, _ = example(route, 0)
    for term in route.terms:
        rest = {concept: value for concept, value in figures.items() if concept != term.concept}
        assert route.number not in values(filing(rest), route.item)


@every("route", [r for r in ROUTES if r.unless], ids=lambda r: f"{r.item}-{r.number}")
def test_evidence_that_a_route_is_incomplete_closes_it(route: Route) -> None:
    figures, _ = example(route, 0)
    for concept in route.unless:
        if concept not in figures:
            assert route.number not in values(filing({**figures, concept: 3}), route.item)


@every("route", [r for r in ROUTES if r.confirm], ids=lambda r: f"{r.item}-{r.number}")
def test_a_route_that_needs_confirmation_is_closed_if_no_equation_holds(route: Route) -> None:
    figures, _ = example(route, 0)
    own = route.terms[0].concept
    assert route.number not in values(filing({**figures, own: figures[own] + 1}), route.item)


DEBT = {"us-gaap:DebtCurrent": 30, "us-gaap:LongTermDebtNoncurrent": 70}


def test_parts_of_two_filings_are_never_added() -> None:
    apart = filing({"us-gaap:DebtCurrent": 30}, {"us-gaap:LongTermDebtNoncurrent": 70})
    assert apart.figure("total_debt") is None
    together = filing({"us-gaap:DebtCurrent": 30}, DEBT)
    assert together.figure("total_debt").value == 100  # type: ignore[union-attr]


def test_the_first_filing_that_has_the_terms_decides_and_its_guards_alone() -> None:
    other = {**DEBT, "us-gaap:ConvertibleDebtNoncurrent": 5}
    assert filing(DEBT, other).figure("total_debt") is not None
    assert filing(other, DEBT).figure("total_debt") is None


@every(
    ("item", "figures"),
    [
        # Karooooo 2021: what is called all long-term assets is less than plant.
        (
            "capex",
            {
                "ifrs-full:PurchaseOfPropertyPlantAndEquipmentIntangibleAssetsOtherThanGoodwill"
                "InvestmentPropertyAndOtherNoncurrentAssets": 456,
                "ifrs-full:PurchaseOfPropertyPlantAndEquipmentClassifiedAsInvestingActivities": 4780,
            },
        ),
        # Golden Star 2020: borrowings are their long-term part alone.
        (
            "total_debt",
            {
                "ifrs-full:Borrowings": 557,
                "ifrs-full:LongtermBorrowings": 4223,
                "ifrs-full:CurrentBorrowingsAndCurrentPortionOfNoncurrentBorrowings": 557,
            },
        ),
    ],
)
def test_a_total_smaller_than_its_part_is_skipped_and_counted(item: str, figures: dict[str, int]) -> None:
    lines = filing(figures)
    assert lines.figure(item).value == 4780  # type: ignore[union-attr]
    assert lines.conflicts == 1


def test_a_negative_outflow_is_corrected_only_if_its_filing_proves_the_sign() -> None:
    bought = {"us-gaap:PaymentsToAcquirePropertyPlantAndEquipment": -80}
    assert filing(bought).figure("capex") is None
    investing = {
        **bought,
        "us-gaap:ProceedsFromSaleOfPropertyPlantAndEquipment": 30,
        "us-gaap:NetCashProvidedByUsedInInvestingActivities": -50,
    }
    assert filing(investing).figure("capex").value == 80  # type: ignore[union-attr]
    other = {**investing, "us-gaap:NetCashProvidedByUsedInInvestingActivities": -49}
    lines = filing(other)
    assert lines.figure("capex") is None
    assert lines.conflicts > 0


@pytest.mark.rule("MET-7")
@pytest.mark.parametrize(
    ("item", "figures"),
    [
        ("cost_of_sales", {"revenue": 100, "cost_of_sales": -60, "gross_profit": 40}),
        (
            "cost_of_sales",
            {"ifrs-full:Revenue": 100, "ifrs-full:CostOfSales": -60, "ifrs-full:GrossProfit": 40},
        ),
        ("finance_costs", {"operating_profit": 80, "finance_costs": -60, "profit_before_tax": 20}),
        ("income_tax", {"profit_before_tax": 80, "income_tax": -60, "profit": 20}),
        (
            "finance_costs",
            {
                "ifrs-full:ProfitLossFromOperatingActivities": 75,
                "ifrs-full:FinanceIncome": 5,
                "ifrs-full:FinanceCosts": -60,
                "ifrs-full:ProfitLossBeforeTax": 20,
            },
        ),
    ],
)
def test_costs_reported_as_negative_are_corrected_if_the_totals_prove_it(
    item: str, figures: dict[str, int]
) -> None:
    assert filing(figures).figure(item).value == 60  # type: ignore[union-attr]
    unproven = filing({**figures, list(figures)[-1]: 13}).figure(item)
    assert unproven is None or unproven.value != 60


def test_the_sign_of_a_profit_is_corrected_if_only_the_other_follows_from_the_profit_before_tax() -> None:
    before = "IncomeLossFromContinuingOperationsBeforeIncomeTaxesExtraordinaryItemsNoncontrollingInterest"
    profits = {"ProfitLoss": 24_200_000, before: -24_212_783}
    assert filing(gaap(**profits)).figure("profit").value == -24_200_000  # type: ignore[union-attr]
    # The profit of the owners bears the figure out: it is the profit before tax that is in doubt.
    assert filing(gaap(**profits, NetIncomeLoss=24_200_000)).figure("profit").value == 24_200_000  # type: ignore[union-attr]
    assert filing(gaap(**profits, IncomeTaxExpenseBenefit=5_000_000)).figure("profit").value == -24_200_000  # type: ignore[union-attr]


def balance_sheet(**optional: int) -> Lines:
    sheet = {"Assets": 100, "Liabilities": 55, "StockholdersEquity": 40, **optional}
    lines = filing(gaap(**sheet))
    check_identities(lines)
    return lines


@pytest.mark.rule("MET-7")
def test_a_balance_sheet_that_does_not_balance_gives_neither_liabilities_nor_equity() -> None:
    assert balance_sheet().figure("liabilities") is None
    assert balance_sheet().figure("equity") is None
    assert balance_sheet().figure("assets") is not None
    assert (
        balance_sheet(TemporaryEquityCarryingAmountAttributableToParent=5).figure("liabilities") is not None
    )


def test_a_breakdown_that_does_not_add_up_to_the_last_digit_proves_nothing() -> None:
    sheet = {
        "us-gaap:AssetsCurrent": 100,
        "us-gaap:CashAndCashEquivalentsAtCarryingValue": 60,
        "us-gaap:AccountsReceivableNetCurrent": 40,
    }
    inventories = filing(sheet).figure("inventories")
    assert inventories is not None
    assert inventories.value == 0
    assert [part.concept for part in inventories.parts] == list(sheet), "the total that proves it is named"
    assert filing({**sheet, "us-gaap:AssetsCurrent": 101}).figure("inventories") is None


def test_a_member_that_may_be_of_the_kind_closes_the_route() -> None:
    sheet = {"us-gaap:Liabilities": 100, "us-gaap:Deposits": 90}
    assert filing({**sheet, "us-gaap:OtherLiabilities": 10}).figure("total_debt") is not None
    assert (
        filing({**sheet, "us-gaap:SecuritiesSoldUnderAgreementsToRepurchase": 10}).figure("total_debt")
        is None
    )


def income(revenue: int, cost: int, gross: int, contracts: int) -> Lines:
    return filing(
        {
            "us-gaap:Revenues": revenue,
            "us-gaap:RevenueFromContractWithCustomerExcludingAssessedTax": contracts,
            "us-gaap:CostOfRevenue": cost,
            "us-gaap:GrossProfit": gross,
        }
    )


def values_of(lines: Lines, *items: str) -> list[Decimal]:
    return [figure.value for figure in map(lines.figure, items) if figure is not None]


@pytest.mark.rule("MET-7")
def test_a_route_that_contradicts_an_identity_gives_way_to_one_that_satisfies_it() -> None:
    lines = income(revenue=120, cost=60, gross=40, contracts=100)  # what a segment note calls revenues
    check_identities(lines)
    assert lines.conflicts == 1
    assert values_of(lines, "revenue", "cost_of_sales", "gross_profit") == [100, 60, 40]


def test_a_gross_profit_that_was_reported_needs_no_proof() -> None:
    """Caledonia shows items apart, so that its revenue less its costs is not its gross profit."""
    lines = income(revenue=120, cost=60, gross=45, contracts=100)
    check_identities(lines)
    assert values_of(lines, "revenue", "cost_of_sales", "gross_profit") == [120, 60, 45]


def test_rounding_of_the_last_digit_is_no_contradiction() -> None:
    lines = income(revenue=120_000_000, cost=79_999_000, gross=40_000_000, contracts=120_000_000)
    check_identities(lines)
    assert lines.conflicts == 0


@pytest.mark.rule("MET-5")
def test_both_years_use_the_first_route_that_both_have() -> None:
    years = issuer(
        flow("us-gaap:SalesRevenueNet", "80", year=2021),
        flow("us-gaap:Revenues", "100"),
        flow("us-gaap:SalesRevenueNet", "90"),
    )
    year_on_day = years.on(years.published[-1])
    pair = year_on_day.both("revenue") if year_on_day else None
    assert pair is not None
    assert [figure.value for figure in pair] == [90, 80]
    years = issuer(flow("us-gaap:SalesRevenueNet", "80", year=2021), flow("us-gaap:Revenues", "100"))
    year_on_day = years.on(years.published[-1])
    assert year_on_day is not None
    assert year_on_day.both("revenue") is None


@every(
    ("text", "message"),
    [
        ('x = [{ take = "A B", since = "s", why = "w" }]', "neither a concept"),
        ('x = [{ take = "us-gaap:A us-gaap:B", since = "s", why = "w" }]', "expected [+] or -"),
        ('x = [{ take = "us-gaap:A", unless = "@g", since = "s", why = "w" }]', "no group g"),
    ],
)
def test_a_malformed_route_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse("[groups]\n[items]\n" + text)


def test_the_routes_breakdowns_and_identities_name_each_other() -> None:
    declared = table()
    folder = files("sankofa.model")
    tables = tomllib.loads(
        "\n".join((folder / f"{name}.toml").read_text() for name in ("routes", "breakdowns"))
    )
    fields = {"take", "members", "of", "unless", "at_least", "within", "confirm", "served", "since", "why"}
    names = {"groups", "items", "breakdowns", "confirmations", "identities", "parts", "magnitudes", "wholes"}
    assert tables.keys() == names | {"never_negative", "signed"}
    for entries in tables["items"].values():
        for entry in entries:
            assert {"since", "why"} <= entry.keys() <= fields
            assert ("members" in entry) == ("of" in entry)
            assert entry.get("take") or entry.get("members")
    served: dict[str, str] = {}
    for item, routes in declared.routes.items():
        assert len({route[2:8] for route in routes}) == len(routes), item
        for route in routes:
            where = f"{item}, route {route.number}"
            marks = {mark for name in route.of for _, mark in declared.breakdowns[name].members.values()}
            assert not route.members or route.members in marks, where
            assert not route.confirm or route.confirm in declared.confirmations, where
            assert all(":" in term.concept or term.concept in declared.routes for term in route.terms), where
            assert not route.served or (route.single and served.setdefault(route.single, item) == item), where
    items = {
        *declared.parts,
        *declared.magnitudes,
        *declared.wholes,
        *declared.wholes.values(),
        *declared.signed,
    }
    items |= declared.never_negative
    for one in declared.identities:
        items.update(term.concept for term in one.items if ":" not in term.concept)
        items.update(one.doubted, one.refused)
    assert items <= declared.routes.keys()


def gaap(**figures: int) -> dict[str, int]:
    return {f"us-gaap:{name}": value for name, value in figures.items()}


@every(
    ("item", "figures", "value"),
    [
        # International Game Technology 2009: the line for plant is a seventh of what was bought.
        (
            "capex",
            gaap(
                PaymentsToAcquirePropertyPlantAndEquipment=377,
                PaymentsToAcquireProductiveAssets=2574,
                PaymentsToAcquireOtherProductiveAssets=1808,
                PaymentsToAcquireIntangibleAssets=389,
            ),
            2574,
        ),
        # McDonald's 2009: productive assets are less than plant, so no total of it.
        (
            "capex",
            gaap(PaymentsToAcquirePropertyPlantAndEquipment=19521, PaymentsToAcquireProductiveAssets=1457),
            19521,
        ),
        # CA 2010: more than its plant, and nothing shows what.
        (
            "capex",
            gaap(PaymentsToAcquirePropertyPlantAndEquipment=79, PaymentsToAcquireProductiveAssets=617),
            None,
        ),
        # Range Resources 2009: the line for plant is what it buys beside wells.
        (
            "capex",
            gaap(
                PaymentsToAcquirePropertyPlantAndEquipment=33,
                PaymentsToAcquireOilAndGasPropertyAndEquipment=541,
            ),
            None,
        ),
        # Ford 2009: the cost of cars, and a revenue that includes interest on them.
        (
            "cost_of_sales",
            gaap(
                Revenues=116283,
                SalesRevenueNet=103868,
                FinancialServicesRevenue=12415,
                CostOfGoodsAndServicesSold=98866,
            ),
            None,
        ),
        # Boston Properties 2009: interest is among the costs that its operating income is after.
        (
            "operating_profit",
            gaap(
                OperatingIncomeLoss=250_681,
                InterestExpense=322_833,
                IncomeLossFromEquityMethodInvestments=12_058,
                GainLossOnSaleOfProperties=11_760,
                IncomeLossFromContinuingOperationsIncludingPortionAttributableToNoncontrollingInterest=274_499,
            ),
            None,
        ),
        # Ameren 2009: what is drawn on credit facilities is a line beside long-term debt.
        (
            "total_debt",
            gaap(
                ShortTermBorrowings=20,
                LongTermDebtCurrent=204,
                LongTermDebtNoncurrent=7113,
                LongTermLineOfCredit=830,
            ),
            None,
        ),
        # AngloGold Ashanti 2020: there are minorities, and their share of the profit is not reported.
        ("profit_owners", {"ifrs-full:ProfitLoss": 971, "ifrs-full:NoncontrollingInterests": 45}, None),
        # Arch Coal 2009: the owners' equity is not all of it.
        ("equity", gaap(StockholdersEquity=2115106, MinorityInterest=8962), 2124068),
    ],
)
def test_a_part_is_never_served_as_the_whole(item: str, figures: dict[str, int], value: int | None) -> None:
    figure = filing(figures).figure(item)
    assert (figure.value if figure else None) == value


@every(("item", "section"), [("capex", "investing"), ("dividends_paid", "financing")])
def test_a_section_of_cash_flows_is_missing_only_if_no_line_of_it_is_reported(
    item: str, section: str
) -> None:
    breakdown = table().breakdowns[section]
    proofs = [route for route in table().routes[item] if route.is_nothing]
    assert len(proofs) >= 5
    for route in proofs:
        assert set(route.unless) >= breakdown.concepts


def ifrs(**figures: int) -> dict[str, int]:
    return {f"ifrs-full:{name}": value for name, value in figures.items()}


@pytest.mark.rule("MET-7")
@every(
    ("filed", "liabilities", "equity"),
    [
        (  # mezzanine that liabilities were computed without
            gaap(
                Assets=100,
                LiabilitiesAndStockholdersEquity=100,
                StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest=40,
                RedeemableNoncontrollingInterestEquityCarryingAmount=5,
            ),
            *(55, 40),
        ),
        (
            gaap(
                Assets=100,
                Liabilities=55,
                PartnersCapital=40,
                PartnersCapitalAttributableToNoncontrollingInterest=5,
            ),
            *(55, 45),
        ),
        (
            ifrs(
                Assets=100,
                Liabilities=55,
                Equity=40,
                EquityAttributableToOwnersOfParent=40,
                NoncontrollingInterests=5,
            ),
            55,
            45,
        ),
        (ifrs(Assets=100, Liabilities=55, Equity=47, EquityAttributableToOwnersOfParent=45), 55, 45),
        (ifrs(Assets=100, Liabilities=55, Equity=47, EquityAttributableToOwnersOfParent=44), None, None),
    ],
)
def test_the_routes_to_equity_that_let_a_balance_sheet_add_up(
    filed: Mapping[str, int], liabilities: int | None, equity: int | None
) -> None:
    lines = filing(filed)
    check_identities(lines)
    figures = [lines.figure(item) for item in ("liabilities", "equity")]
    assert [figure and figure.value for figure in figures] == [liabilities, equity]
    assert ("balance_sheet" in lines.unmet) == (equity is None)


@pytest.mark.rule("MET-15")
@every(
    ("filed", "measures"),
    [
        (gaap(EarningsPerShareBasic=3, NetIncomeLoss=-100), ["eps_of_other_sign_years"]),
        (  # preferred dividends
            gaap(
                EarningsPerShareBasic=-3,
                NetIncomeLoss=100,
                NetIncomeLossAvailableToCommonStockholdersBasic=-20,
            ),
            [],
        ),
        (
            gaap(EarningsPerShareBasic=2, NetIncomeLoss=8_000_000, CommonStockSharesOutstanding=4_000),
            ["shares_unlike_eps_years"],
        ),
        (gaap(EarningsPerShareBasic=2, NetIncomeLoss=8_000_000, CommonStockSharesOutstanding=4_100_000), []),
        (ifrs(Equity=90, EquityAttributableToOwnersOfParent=95), ["owners_above_equity_years"]),
        (ifrs(Equity=90, EquityAttributableToOwnersOfParent=95, NoncontrollingInterests=-5), []),
        (gaap(AccountsPayableCurrent=-5), ["negative_balance_years"]),
    ],
)
def test_figures_that_contradict_each_other_are_counted_unless_another_explains_them(
    filed: Mapping[str, int], measures: list[str]
) -> None:
    assert odd_measures(filing(filed)) == measures


@pytest.mark.rule("MET-7")
@every(
    ("eps", "profit", "shares", "remaining"),
    [
        (2, 8_000_000, 4_100_000, ["eps_basic", "shares_outstanding"]),
        (2, 8_000_000, 4_100, ["eps_basic"]),
        (2, 8_000_000, 4_100_000_000, ["eps_basic"]),
        (2, 8_000_000, 50_000, ["eps_basic", "shares_outstanding"]),  # odd, and not by a thousand
        (200, 8_000_000, 4_100_000, ["shares_outstanding"]),  # cents
        (-18_647_468, -3_123_478, 18_647_468, ["shares_outstanding"]),
        (2, 0, 4_100, ["eps_basic", "shares_outstanding"]),
    ],
)
def test_earnings_above_the_profit_and_shares_off_by_thousands_are_skipped(
    eps: int, profit: int, shares: int, remaining: list[str]
) -> None:
    filed = gaap(EarningsPerShareBasic=eps, NetIncomeLoss=profit, CommonStockSharesOutstanding=shares)
    lines = filing(filed)
    pass_over_misscaled(lines)
    assert [item for item in ("eps_basic", "shares_outstanding") if lines.figure(item)] == remaining
    assert lines.conflicts == 2 - len(remaining)


@pytest.mark.rule("MET-7")
def test_a_zero_beside_another_figure_of_the_item_is_a_placeholder() -> None:
    zero = ifrs(DepreciationAndAmortisationExpense=0, Revenue=0)
    lines = filing(zero | ifrs(AdjustmentsForDepreciationAndAmortisationExpense=182))
    figures = [lines.figure(item) for item in ("depreciation_amortisation", "revenue")]
    assert [figure and figure.value for figure in figures] == [182, 0]
    assert lines.conflicts == 1


@pytest.mark.rule("MET-7")
def test_a_zero_beside_a_kind_of_the_item_is_a_placeholder() -> None:
    filed = gaap(Revenues=0, SalesRevenueGoodsNet=578)
    assert filing(filed).figure("revenue") is None, "nothing proves that goods are all of it"
    figure = filing(filed | gaap(GrossProfit=269, CostOfGoodsAndServicesSold=309)).figure("revenue")
    assert (figure and figure.value) == 578


@every(("profit", "tax"), [(110, 40), (-10, None), (310, None), (-400, None)])
def test_a_computed_tax_is_never_larger_than_the_profit_before_it(profit: int, tax: int | None) -> None:
    before = "IncomeLossFromContinuingOperationsBeforeIncomeTaxesExtraordinaryItemsNoncontrollingInterest"
    figure = filing(gaap(**{before: 150, "NetIncomeLoss": profit})).figure("income_tax")
    assert (figure and figure.value) == tax
