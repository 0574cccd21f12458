"""Every formula of metrics-v1 matches its page, is exact, and has no value where it cannot be computed."""

import random
import re
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.derive.metrics.contract import EXACT, Metric, methodology, metrics, slugs
from sankofa.model.figures import quotient, rounded_root
from sankofa.model.line_items import routes
from sankofa.model.provenance import LICENSE_CLASSES, strictest
from tests.every import every

BY_SLUG = {m.slug: m for m in metrics()}
DECIDED = """gross_margin operating_margin ebitda_margin pretax_margin net_margin effective_tax_rate
    return_on_assets return_on_equity return_on_capital_employed asset_turnover current_ratio quick_ratio
    cash_ratio debt_to_equity net_debt_to_ebitda interest_cover liabilities_to_assets free_cash_flow_margin
    cash_conversion capex_intensity payout_ratio accruals_ratio revenue_growth profit_growth loan_to_deposit
    receivable_days inventory_days payable_days""".split()


@pytest.mark.rule("MET-10")
def test_the_set_of_metrics_is_the_decided_one() -> None:
    assert list(slugs()) == sorted(DECIDED)


def figures(chance: random.Random, names: tuple[str, ...]) -> dict[str, Decimal]:
    return {name: Decimal(chance.randrange(1, 10 ** chance.randrange(1, 30))) for name in names}


def value_of(metric: Metric, inputs: dict[str, Decimal]) -> Decimal | None:
    form = next((form for form in metric.forms if form.needs <= inputs.keys()), None)
    with localcontext(EXACT):
        return form.value([inputs[name] for name in form.inputs]) if form else None


def by_the_page(text: str, inputs: dict[str, Decimal]) -> Decimal | None:
    """The formula as the page writes it, computed in fractions."""
    assert re.fullmatch(r"[a-z0-9_ ()+*/-]+", text)
    exact: Fraction = eval(  # noqa: S307 - our own text, just matched
        re.sub(r"\b([0-9]+)\b", r"Fraction(\1)", text),
        {"Fraction": Fraction, **{name: Fraction(value) for name, value in inputs.items()}},
    )
    wide = Context(prec=200).divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return Context(prec=10, rounding=ROUND_HALF_EVEN).plus(wide)


@pytest.mark.rule("MET-10")
@every("slug", DECIDED)
def test_a_metric_matches_its_page(slug: str) -> None:
    chance = random.Random(slug)
    metric = BY_SLUG[slug]
    lines = metric.explanation.split()
    formulas = [line.strip() for line in metric.explanation.splitlines() if line.strip()]
    assert len(formulas) == len(metric.forms), lines
    for form, text in zip(metric.forms, formulas, strict=True):
        assert set(re.findall(r"[a-z_]{2,}", text)) == form.needs
        for _ in range(50):
            inputs = figures(chance, form.inputs)
            value = value_of(metric, inputs)
            if value is not None:
                assert value == by_the_page(text, inputs)
    page = methodology(metric)
    for form in metric.forms:
        for name in form.inputs:
            for route in routes(name.removeprefix("prior_")):
                assert f"`{route.text}`: {route.why}" in page


@pytest.mark.rule("MET-3")
@every("slug", DECIDED)
def test_without_any_one_of_its_inputs_there_is_no_value(slug: str) -> None:
    metric = BY_SLUG[slug]
    names = {name for form in metric.forms for name in form.inputs}
    one = dict.fromkeys(names, Decimal(1)) | {"assets": Decimal(2), "prior_assets": Decimal(2)}
    assert value_of(metric, {k: v for k, v in one.items() if k in names}) is not None
    for name in metric.forms[-1].inputs:
        rest = {k: v for k, v in one.items() if k != name and k != "gross_profit"}
        assert value_of(metric, rest) is None


@pytest.mark.rule("MET-3")
@every(
    ("slug", "inputs", "value"),
    [
        ("gross_margin", {"gross_profit": "40", "revenue": "160", "cost_of_sales": "1"}, "0.25"),
        ("gross_margin", {"revenue": "160", "cost_of_sales": "120"}, "0.25"),
        ("net_margin", {"profit": "-1", "revenue": "3"}, "-0.3333333333"),
        ("net_margin", {"profit": "1", "revenue": "-3"}, None),
        ("net_margin", {"profit": "0", "revenue": "0"}, None),
        ("net_margin", {"profit": "0", "revenue": "5"}, "0"),
        ("return_on_assets", {"profit": "3", "assets": "10", "prior_assets": "20"}, "0.2"),
        ("return_on_assets", {"profit": "3", "assets": "10", "prior_assets": "-10"}, None),
        ("revenue_growth", {"revenue": "150", "prior_revenue": "100"}, "0.5"),
        ("profit_growth", {"profit": "5", "prior_profit": "-5"}, None),
        ("receivable_days", {"receivables": "1", "revenue": "365"}, "1"),
        ("effective_tax_rate", {"income_tax": "-2", "profit_before_tax": "8"}, "-0.25"),
        ("interest_cover", {"operating_profit": "9007199254740993", "finance_costs": "1"}, "9.007199255E+15"),
        ("payout_ratio", {"dividends_paid": "0", "profit_owners": "7"}, "0"),
    ],
)
def test_each_formula_gives_its_example(slug: str, inputs: dict[str, str], value: str | None) -> None:
    result = value_of(BY_SLUG[slug], {name: Decimal(text) for name, text in inputs.items()})
    assert result == (None if value is None else Decimal(value))


@pytest.mark.rule("MET-4")
@given(st.decimals(allow_nan=False, allow_infinity=False, places=4), st.integers(1, 10**30))
def test_a_value_is_rounded_once_half_to_even(above: Decimal, below: int) -> None:
    rounded = quotient(above, Decimal(below))
    assert len(rounded.as_tuple().digits) <= 10
    exact = Fraction(above) / below
    unit = Fraction(10) ** (rounded.adjusted() - 9)
    assert abs(Fraction(rounded) - exact) * 2 <= unit
    if abs(Fraction(rounded) - exact) * 2 == unit and rounded:
        assert int(Fraction(rounded) / unit) % 2 == 0


@pytest.mark.rule("MET-4")
def test_ties_go_to_the_even_digit() -> None:
    assert quotient(Decimal("1.0000000005"), Decimal(1)) == Decimal("1.000000000")
    assert quotient(Decimal("1.0000000015"), Decimal(1)) == Decimal("1.000000002")
    assert quotient(Decimal("-1.0000000025"), Decimal(1)) == Decimal("-1.000000002")


@every(
    ("formula", "refused"),
    [
        ("enterprise_value / revenue", "no line item enterprise_value"),
        ("revenue / prior_assets", "prior_assets without that of the year itself"),
        ("revenue ** 2", "expected names, whole numbers"),
        ("revenue / 1.5", "expected names, whole numbers"),
    ],
)
def test_a_formula_may_only_ask_for_line_items_and_plain_arithmetic(formula: str, refused: str) -> None:
    with pytest.raises(TypeError, match=refused):
        Metric("new", {"unit": "ratio", "is": "New.", "formulas": [formula]})


TEN = Context(prec=10, rounding=ROUND_HALF_EVEN)
fractions = st.fractions(min_value=0, max_value=10**30)


@every(
    ("value", "root"),
    [
        (Fraction(0), "0"),
        (Fraction(4, 9), "0.6666666667"),
        (Fraction(2), "1.414213562"),
        (Fraction(1, 10**40), "1E-20"),
        (Fraction(10000000005**2, 100), "1000000000"),  # an exact half: to the even digit
        (Fraction(10000000005**2 * 10**60 + 1, 10**62), "1000000001"),  # a hair above it
    ],
)
def test_a_root_is_rounded_from_all_its_digits(value: Fraction, root: str) -> None:
    assert rounded_root(value) == Decimal(root)


@given(fractions)
def test_a_root_is_the_decimal_next_to_it(value: Fraction) -> None:
    """Checked by squaring the midpoints on either side, without taking a root."""
    root = rounded_root(value)
    if not value:
        assert root == 0
        return
    below, above = (Fraction(TEN.next_minus(root)), Fraction(TEN.next_plus(root)))
    exact = Fraction(root)
    assert ((below + exact) / 2) ** 2 <= value <= ((above + exact) / 2) ** 2


@pytest.mark.rule("PROV-10")
def test_a_derived_value_has_the_strictest_licence_class_of_its_inputs() -> None:
    assert strictest(["cc-by", "public-domain"]) == "cc-by"
    assert strictest(reversed(LICENSE_CLASSES)) == "licensed-redistribution"
