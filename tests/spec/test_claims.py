"""GET /v1/check, the tool check_claim and `sankofa audit`: whether a source reported a claimed figure."""

import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import openpyxl
import pytest

import sankofa
from sankofa.model.catalogue_rows import CheckRow
from sankofa.model.claims import read_claim
from sankofa.model.identifiers import service_id
from sankofa.operations.claims import judge
from tests.every import every
from tests.live import LiveServer, run
from tests.spec import market
from tests.spec.market import Desk
from tests.spec.register import lei, record

plain_desk = market.plain_desk

RETAILER = service_id("lei:999900SAMPLEZA000189")
TICKER = "JSE:SMPKG"
NAME = "Kgalagadi Sample Retail Holdings Limited"
FILINGS = Path(sankofa.__file__).parent / "starter" / "filings" / "companyfacts"
SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "fundamentals" / "companyfacts"
FIELDS = set(
    "verdict value unit available_at vintage restated_at period_start period_end source_ref license_class"
    " observed_at".split()
)
PARTS = ("Q1", "Q2", "Q3", "Q4", "H1", "H2", "9M")
MIX = "MIX TELEMATICS LTD"


def check(server: LiveServer, key: str, **claim: str) -> dict[str, Any]:
    (row,) = server.rows("/v1/check", key, **claim)
    assert set(row) == FIELDS
    return row


@pytest.mark.rule("CLM-1", "CLM-4")
def test_a_name_with_its_legal_form_is_of_that_organisation_alone(plain_desk: Desk) -> None:
    old, new = lei("OLDGOLD"), lei("NEWGOLD")
    plain_desk.records(record(old, "Harbour Gold Limited", "ZA"), record(new, "HARBOUR GOLD PLC", "GB"))
    figures = (
        "entity,line_item,value,currency,period_start,period_end,available_at,document\n"
        f"lei:{old},revenue,4174000000,USD,2015-01-01,2015-12-31,2016-03-01,afs\n"
    )
    plain_desk.ingest("filings", "figures.csv", figures)
    with plain_desk.publish_and_serve() as caller:
        claim = {"measure": "revenue", "period": "2015", "value": "4174m"}
        (row,) = caller.get("/v1/check", subject="Harbour Gold Limited", **claim)["data"]
        assert (row["verdict"], row["value"]) == ("supported", 4174000000)
        either = caller.get("/v1/check", subject="Harbour Gold", **claim)
        assert either["data"][0]["verdict"] == "unknown"
        assert either["unknown"]["detail"].startswith("2 organisations have this name")


@pytest.mark.rule("CLM-1")
def test_a_claim_is_checked_against_the_figure_of_the_day(server: LiveServer, paid_key: str) -> None:
    """The profit of 2023 was restated on 2024-09-03; the answers name both figures."""
    answer = server.get(f"/v1/restatements?service_id={RETAILER}&line_item=profit&since=2024-09-03", paid_key)
    row = next(one for one in answer.json()["data"] if one["period_end"] == "2023-07-02")
    claim = {"subject": RETAILER, "measure": "profit", "period": "2023", "unit": row["unit"]}
    before, after = str(row["value_before"]), str(row["value_after"])
    earlier = str(date.fromisoformat(row["available_at"]) - timedelta(days=1))
    now = check(server, paid_key, **claim, value=after)
    assert (now["verdict"], now["vintage"], now["restated_at"]) == ("supported", row["vintage"], None)
    assert now["source_ref"] == row["source_ref"]
    then = check(server, paid_key, **claim, value=before)
    assert (then["verdict"], then["restated_at"]) == ("supported_then", row["available_at"])
    assert str(then["value"]) == before
    as_then = check(server, paid_key, **claim, value=before, as_of=earlier)
    assert (as_then["verdict"], as_then["restated_at"]) == ("supported", None)
    assert check(server, paid_key, **claim, value=after, as_of=earlier)["verdict"] == "contradicted"
    wrong = check(server, paid_key, **claim, value="1.23bn")
    assert (wrong["verdict"], str(wrong["value"])) == ("contradicted", after)
    assert check(server, paid_key, **claim, value=after, as_of="2010-01-01")["verdict"] == "unknown"


@pytest.mark.rule("CLM-1", "CLM-4")
@every("subject", [RETAILER, RETAILER.lower(), TICKER, "999900SAMPLEZA000189", NAME])
@every(
    "period",
    [
        *("2024", "FY2024", "FY24", "fiscal 2024", "financial year 2024", "2023/24", "FY2023/2024"),
        *("2024-06-30", "30 June 2024", "June 30, 2024", "2023-07-03..2024-06-30"),
    ],
)
def test_subjects_and_periods_may_be_written_as_people_do(
    server: LiveServer, paid_key: str, subject: str, period: str
) -> None:
    row = check(server, paid_key, subject=subject, measure="revenue", period=period, value="46.2bn")
    assert (row["verdict"], row["value"], row["unit"]) == ("supported", 46_222_000_000, "ZAR")
    assert (row["period_start"], row["period_end"]) == ("2023-07-03", "2024-06-30")


@pytest.fixture(scope="module")
def starter(starter_part_server: LiveServer) -> tuple[LiveServer, str]:
    return starter_part_server, starter_part_server.key("professional", "--per-minute", "100000")


def spellings(part: str, year: int) -> list[str]:
    """The part of a year as people write it."""
    number = {"1": "first", "2": "second", "3": "third", "4": "fourth"}.get(part[1], "first nine months")
    words = {"Q": f"{number} quarter", "H": f"{number} half", "9": number}[part[0]]
    turned = part if part == "9M" else f"{part[1]}{part[0]}"
    short = f"{year % 100:02}"
    return [
        *(f"{part} {year}", f"{year}-{part}", f"{year}{part}", f"{part.lower()} FY{short}"),
        *(
            f"{turned}{short}",
            f"{turned} {year}",
            f"{words} of {year}",
            f"{words} {year}",
            f"FY{year} {part}",
        ),
    ]


@pytest.mark.ci
@pytest.mark.rule("CLM-2")
@pytest.mark.parametrize(
    ("measure", "value", "verdict"),
    [
        ("loss before tax", "410.7m", "supported"),
        ("loss_before_tax", "-410.7m", "supported"),
        ("profit_before_tax", "-410.7m", "supported"),
        ("profit_before_tax", "410.7m", "contradicted"),
        ("net loss", "344.8m", "supported"),
        ("net loss", "410.7m", "contradicted"),
    ],
)
def test_a_loss_is_a_negative_profit(
    starter: tuple[LiveServer, str], measure: str, value: str, verdict: str
) -> None:
    server, key = starter
    claim = {"subject": "NYSE:GFI", "measure": measure, "value": value, "period": "2018"}
    assert check(server, key, **claim)["verdict"] == verdict


@pytest.mark.ci
@pytest.mark.rule("CLM-1", "CLM-4")
def test_parts_of_a_financial_year_are_distinguished(starter: tuple[LiveServer, str]) -> None:
    """The year of MiX ends in March. A figure of one part supports no claim about another."""
    server, key = starter
    (service_id,) = [row["service_id"] for row in server.rows("/v1/issuers", key) if row["legal_name"] == MIX]
    rows = server.rows(f"/v1/statements/{service_id}", key)
    flows = [row for row in rows if row["period_type"] in (*PARTS, "FY") and row["line_item"] == "revenue"]
    balances = {"Q1": "Q1", "H1": "Q2", "9M": "Q3", "FY": "Q4"}
    chance = random.Random(5)
    judged = 0
    for row in chance.sample(flows, min(len(flows), 25)):
        claim = {"subject": MIX, "measure": "revenue", "value": str(row["value_reported"])}
        year, part = row["fiscal_year"], row["period_type"]
        names = [f"FY{year}"] if part == "FY" else spellings(part, year)
        for name in names:
            claimed = check(server, key, **claim, period=name)
            assert claimed["verdict"] == "supported", (name, row)
            assert (claimed["period_start"], claimed["period_end"]) == (
                row["period_start"],
                row["period_end"],
            )
        for other in {*PARTS, "FY"} - {part}:
            period = f"FY{year}" if other == "FY" else f"{other} {year}"
            assert check(server, key, **claim, period=period)["verdict"] in ("contradicted", "unknown")
            judged += 1
    assert judged > 50
    sheets = [row for row in rows if row["line_item"] == "assets" and row["period_type"] in balances]
    for row in chance.sample(sheets, 8):
        claim = {"subject": MIX, "measure": "assets", "value": str(row["value_reported"])}
        claim["period"] = f"{balances[row['period_type']]} {row['fiscal_year']}"
        assert check(server, key, **claim)["verdict"] == "supported", row


@pytest.mark.ci
@pytest.mark.rule("CLM-1", "CLM-4")
def test_a_figure_that_the_statement_passes_over_supports_nothing(starter: tuple[LiveServer, str]) -> None:
    """Several concepts of one line item: the figure of the statement counts, and no other."""
    server, key = starter
    other = 0
    for row in server.rows("/v1/issuers", key):
        own = f"/{row['service_id']}"
        reported = server.rows(f"/v1/fundamentals{own}", key, period_type="FY")
        chosen = {
            (one["line_item"], one["period_end"], one["concept"]): one["value_reported"]
            for one in server.rows(f"/v1/statements{own}", key, period_type="FY")
        }
        stated = {names[:2] for names in chosen}
        for one in reported:
            names = one["line_item"], one["period_end"]
            values = {value for identity, value in chosen.items() if identity[:2] == names}
            if names not in stated or (*names, one["concept"]) in chosen or one["value_reported"] in values:
                continue
            other += 1
            if other > 60:
                break
            claim = {"measure": names[0], "period": names[1], "value": str(one["value_reported"])}
            judged = check(server, key, subject=row["service_id"], unit=one["unit"], **claim)
            assert judged["verdict"] != "supported" or judged["value"] in values, one
    assert other > 10


@pytest.mark.rule("CLM-1", "ABS-1")
@every(
    ("changed", "reason", "words"),
    [
        ({"measure": "sales"}, "unknown_line_item", "did you mean `revenue`"),
        ({"measure": "loans"}, "not_reported", "`loans`"),
        ({"period": "1999"}, "outside_dates", "2021-06-27 to 2025-06-29"),
        ({"unit": "USD"}, "other_unit", "the figure is in ZAR"),
        ({"subject": "Nobody Limited"}, "unknown_organisation", "Nobody Limited"),
        ({"subject": "CPI.ZAF", "measure": ""}, "unknown_code", "CPI.ZA"),
        ({"subject": "CPI.ZA", "measure": "", "period": "2023"}, "no_match", "monthly"),
        ({"measure": "net_margin", "period": "Q1 2024"}, "outside_dates", "full year"),
    ],
)
def test_an_unknown_claim_says_why(
    server: LiveServer, paid_key: str, changed: dict[str, str], reason: str, words: str
) -> None:
    claim = {"subject": TICKER, "measure": "revenue", "period": "2024", "value": "46.2bn", **changed}
    for prefix in ("", "/at/2026-01-31"):
        body = server.body(f"{prefix}/v1/check?{urlencode(claim)}", paid_key)
        assert body["data"][0]["verdict"] == "unknown"
        assert body["absent"] is None
        assert body["unknown"]["reason"] == reason
        assert words in body["unknown"]["detail"]
        for one in body["unknown"]["try"]:
            assert not prefix
            assert server.body(f"{one['path']}?{urlencode(one['arguments'])}", paid_key)["count"]
    if reason == "unknown_line_item":
        (led,) = server.body(f"/v1/check?{urlencode(claim)}", paid_key)["unknown"]["try"]
        assert led["arguments"]["measure"] == "revenue"
        assert server.rows("/v1/check", paid_key, **led["arguments"])[0]["verdict"] == "supported"
    answerable = {**claim, "subject": TICKER, "measure": "revenue", "period": "2024"}
    answerable.pop("unit", None)
    assert server.body(f"/v1/check?{urlencode(answerable)}", paid_key)["unknown"] is None


@pytest.mark.rule("CLM-2")
@every(
    ("value", "unit", "verdict"),
    [
        ("46.2bn", "ZAR", "supported"),
        ("46,222m", "zar", "supported"),
        ("46.2", "ZAR billion", "supported"),
        ("ZAR 46.2bn", "", "supported"),
        ("R46.2bn", "", "supported"),
        ("46,2 billion rand", "", "supported"),
        ("46.222.000.000,00", "ZAR", "supported"),
        ("46\u00a0222\u202f000'000", "ZAR", "supported"),
        ("+46.2", "bn ZAR", "supported"),
        ("(R46.2bn)", "", "contradicted"),
        ("$46.2bn", "", "unknown"),
        ("46.3bn", "ZAR", "contradicted"),
        ("46222000001", "ZAR", "contradicted"),
        ("46.2 million", "ZAR", "contradicted"),
        ("46.2bn", "USD", "unknown"),
        ("46.2bn", "ZAR/shares", "unknown"),
        ("46.2%", "", "unknown"),
        ("46,222mm", "ZAR", "supported"),
        ("4.62E+10", "ZAR", "supported"),
        ("4,6222e10", "", "supported"),
        ("4.63E+10", "ZAR", "contradicted"),
        ("4.62E+01", "ZAR bn", "supported"),
        ("-4.62E+10", "ZAR", "contradicted"),
    ],
)
def test_rounding_follows_the_digits_of_the_claim_and_units_are_never_guessed(
    server: LiveServer, paid_key: str, value: str, unit: str, verdict: str
) -> None:
    units = {"unit": unit} if unit else {}
    row = check(server, paid_key, subject=TICKER, measure="revenue", period="2024", value=value, **units)
    assert row["verdict"] == verdict
    assert (row["value"] is None) is (verdict == "unknown")


@pytest.mark.rule("CLM-1")
def test_series_and_metrics_are_checked_too(server: LiveServer, paid_key: str) -> None:
    series = {"subject": "cpi.za", "period": "2022-01-31"}
    assert check(server, paid_key, **series, value="103.5")["verdict"] == "supported"
    assert check(server, paid_key, **series, value="104")["verdict"] == "supported"
    month = {**series, "period": "2022-01-01..2022-01-31"}
    assert check(server, paid_key, **month, value="103.5")["verdict"] == "supported"
    for whole in ("January 2022", "2022-01", "Jan 2022"):
        assert check(server, paid_key, **{**series, "period": whole}, value="103.5")["verdict"] == "supported"
    for no_month in ("2022-01-20..2022-02-10", "2022-01-01..2022-01-30", "Q1 2022", "H1 2022", "2021/22"):
        row = check(server, paid_key, **{**series, "period": no_month}, value="103.5")
        assert row["verdict"] == "unknown", no_month
    year = {**series, "period": "2022-01-01..2022-12-31"}
    assert check(server, paid_key, **year, value="103.5")["verdict"] == "unknown"
    assert check(server, paid_key, **series, value="104.5")["verdict"] == "contradicted"
    assert check(server, paid_key, **series, value="103.5", as_of="2022-02-01")["verdict"] == "unknown"
    assert check(server, paid_key, subject="CPI.ZA", period="2022", value="103.5")["verdict"] == "unknown"
    metric = {"subject": TICKER, "measure": "net_margin", "period": "2025"}
    assert check(server, paid_key, **metric, value="4.7%")["verdict"] == "supported"
    assert check(server, paid_key, **metric, value="0.0473")["verdict"] == "supported"
    assert check(server, paid_key, **metric, value="4.8%")["verdict"] == "contradicted"
    assert check(server, paid_key, **{**metric, "period": "2019"}, value="4.7%")["verdict"] == "unknown"
    assert check(server, paid_key, **metric, value="4.7%", unit="ZAR")["verdict"] == "unknown"
    assert (
        check(server, paid_key, **{**metric, "measure": "Net margin"}, value="4.7%")["verdict"] == "supported"
    )


@pytest.mark.rule("CLM-1")
@every(
    ("changed", "parameter"),
    [
        ({"value": "lots"}, "value"),
        ({"value": "(5"}, "value"),
        ({"value": "$5", "unit": "ZAR"}, "value"),
        ({"period": "2024-13-01"}, "period"),
        ({"period": "2024.."}, "period"),
        ({"period": "2024-13"}, "period"),
        ({"period": "2024/26"}, "period"),
        ({"period": "Q5 2024"}, "period"),
        ({"period": "Q1 2024/25"}, "period"),
        ({"period": "31 June 2024"}, "period"),
        ({"period": "last year"}, "period"),
        ({"as_of": "2999-01-01"}, "as_of"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_malformed_claim_is_a_400(
    server: LiveServer, paid_key: str, changed: dict[str, str], parameter: str
) -> None:
    claim = {"subject": TICKER, "measure": "revenue", "period": "2024", "value": "1bn", **changed}
    answer = server.get(f"/v1/check?{urlencode(claim)}", paid_key)
    assert (answer.status_code, answer.json()["parameter"]) == (400, parameter)


def restated_figures() -> Iterator[list[tuple[date, Decimal]]]:
    """The vintages of real restated figures, read from the filings by the words of the rule."""
    paths = [*FILINGS.glob("*.json.gz"), *sorted(SHARED.glob("*.json"))[:6]]
    for path in sorted(paths):
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        document = json.loads(raw, parse_float=Decimal)
        for taxonomy in document["facts"].values():
            for concept in taxonomy.values():
                for reported in concept["units"].values():
                    facts: defaultdict[tuple[str, str], list[tuple[date, Decimal]]] = defaultdict(list)
                    for one in sorted(reported, key=lambda one: (one["filed"], one["accn"])):
                        history = facts[one.get("start", ""), one["end"]]
                        value = Decimal(one["val"])
                        if not history or history[-1][1] != value:
                            history.append((date.fromisoformat(one["filed"]), value))
                    yield from (history for history in facts.values() if len(history) > 1)


def written(value: Decimal, digits: int, style: int) -> tuple[str, Decimal]:
    """A value rounded to so many digits, and the number that this states."""
    if not value:
        return "0", Decimal(0)
    exponent = value.adjusted() - digits + 1
    rounded = value.quantize(Decimal(1).scaleb(exponent), ROUND_HALF_EVEN)
    if style == 0 or abs(value) < 1000:
        return f"{rounded:f}", rounded
    power, word = {1: (3, "k"), 2: (6, " million"), 3: (9, "bn")}[style]
    return f"{rounded.scaleb(-power):f}{word}", rounded


def last_digit(text: str, stated: Decimal) -> Decimal:
    """The unit of the last digit of a claim; trailing zeros of a whole number may be rounding."""
    if not stated:
        return Decimal(0)
    whole = re.fullmatch("-?([0-9]+)(k| million|bn)?", text)
    if whole is not None:
        digits, power = whole[1], {None: 0, "k": 3, " million": 6, "bn": 9}[whole[2]]
        zeros = len(digits) - len(digits.rstrip("0"))
        return Decimal(10) ** (max(min(zeros, len(digits) - 3), 0) + power)
    return Decimal(1).scaleb(int(stated.as_tuple().exponent))


def figure_of(value: Decimal, unit: str, day: date, vintage: int, restated_at: date | None) -> CheckRow:
    return CheckRow(
        verdict="unknown",
        value=value,
        unit=unit,
        available_at=day,
        vintage=vintage,
        restated_at=restated_at,
        period_start=None,
        period_end=None,
        source_ref="filing",
        license_class="public-domain",
        observed_at="",
    )


@pytest.mark.ci
@pytest.mark.rule("CLM-2")
def test_no_claim_of_five_thousand_is_falsely_supported() -> None:
    """A claim is supported exactly if the latest figure, rounded to the digits of the claim, equals it."""
    chance = random.Random(33)
    restated = list(restated_figures())
    assert len(restated) > 1000
    verdicts: defaultdict[str, int] = defaultdict(int)
    for number in range(5000):
        history = chance.choice(restated)
        latest = history[-1][1]
        figures = [
            figure_of(value, "USD", day, n + 1, history[n + 1][0] if n + 1 < len(history) else None)
            for n, (day, value) in enumerate(history)
        ]
        base = chance.choice([latest, history[0][1], latest * Decimal("1.02"), -latest, latest + 1])
        text, stated = written(base, chance.choice([3, 4, 5]), chance.choice([0, 1, 2, 3]))
        unit = chance.choice([None, "USD", "USD", "ZAR"])
        verdict, figure = judge(read_claim(text, unit), figures)
        verdicts[verdict] += 1
        if unit == "ZAR":
            assert verdict == "unknown", (number, text)
            continue
        agrees = [abs(value - stated) <= last_digit(text, stated) / 2 for _, value in history]
        expected = "supported" if agrees[-1] else "supported_then" if any(agrees) else "contradicted"
        assert verdict == expected, (number, text, history)
        assert figure is not None
    assert min(verdicts[name] for name in ("supported", "supported_then", "contradicted", "unknown")) > 200


@pytest.mark.rule("CLM-2")
@every(
    ("value", "unit", "figure", "own", "verdict"),
    [
        ("477bn", None, "477.4", "billion US dollars", "supported"),
        ("477 billion US dollars", None, "477.4", "billion US dollars", "supported"),
        ("477.4", None, "477.4", "billion US dollars", "supported"),
        ("477.4bn", "USD", "477.4", "billion US dollars", "supported"),
        ("477.4", "USD", "477.4", "billion US dollars", "contradicted"),
        ("477.4 million", None, "477.4", "billion US dollars", "contradicted"),
        ("R477bn", None, "477.4", "billion US dollars", "unknown"),
        ("99.7 million", "persons", "99.7", "million persons", "supported"),
        ("99,700,000", None, "99.7", "million persons", "supported"),
        ("$369bn", None, "369062464570", "current US$", "supported"),
        ("369bn", "constant 2015 US$", "369062464570", "current US$", "unknown"),
        ("$2.10", None, "2.1", "USD/shares", "supported"),
        ("R2.10", None, "2.1", "USD/shares", "unknown"),
        ("2.1", "t CO2e/capita", "2.1", "t CO2e/capita", "supported"),
        ("2.1 trillion", None, "2.1", "t CO2e/capita", "contradicted"),
        ("28%", None, "0.28", "pure", "supported"),
        ("12%", "annual %", "12", "% of GDP", "unknown"),
        ("12%", "% of GDP", "12", "% of GDP", "supported"),
        ("26974", "US$ million", "26974000000", "USD", "supported"),
        ("26974", "Rm", "26974000000", "ZAR", "supported"),
        ("N4.2bn", None, "4200000000", "NGN", "supported"),
        ("N4.2bn", None, "4200000000", "USD", "unknown"),
        ("N$4.2bn", None, "4200000000", "NAD", "supported"),
        ("26974000", "R'000", "26974000000", "ZAR", "supported"),
    ],
)
def test_a_scale_in_a_unit_counts(value: str, unit: str | None, figure: str, own: str, verdict: str) -> None:
    latest = figure_of(Decimal(figure), own, date(2020, 1, 1), 1, None)
    assert judge(read_claim(value, unit), [latest])[0] == verdict


AUDITED = """subject,measure,period,value,unit,date
JSE:SMPKG,revenue,2024,46.2bn,ZAR,2024-10-01
JSE:SMPKG,revenue,2024,46.2bn,ZAR,2024-07-15
JSE:SMPKG,revenue,2025,49.4bn,ZAR,2024-07-15
JSE:SMPKG,profit,2023,{before},ZAR,2025-01-01
JSE:SMPKG,revenue,2024,99bn,ZAR,2024-10-01
Nobody Limited,revenue,2024,1bn,ZAR,2024-10-01
"""


@pytest.mark.rule("CLM-3")
def test_audit_ranks_look_ahead_first_and_exits_with_1(server: LiveServer, paid_key: str, tmp_path: Path):
    rows = server.get(f"/v1/restatements?service_id={RETAILER}&line_item=profit", paid_key).json()["data"]
    before = next(row["value_before"] for row in rows if row["period_end"] == "2023-07-02")
    table = tmp_path / "figures.csv"
    table.write_text(AUDITED.format(before=before))
    done = run(server.home, "audit", table)
    assert done.returncode == 1, done.stderr
    findings = [line.split("  ")[0].strip() for line in done.stdout.splitlines()[:-1]]
    assert [line[:12].strip() for line in done.stdout.splitlines()[:-1]] == [
        *("look-ahead", "look-ahead", "restated", "contradicted", "not found", "supported")
    ], findings
    first, second, *_ = done.stdout.splitlines()
    assert "line 4" in first
    assert "public on 2025-08-26" in first
    assert "sample-filings:" in first
    assert "line 3" in second
    assert (
        done.stdout.splitlines()[-1] == "2 look-ahead, 1 restated, 1 contradicted, 1 not found, 1 supported"
    )
    audited = json.loads(run(server.home, "audit", table, "--json").stdout)
    assert [one["line"] for one in audited] == [4, 3, 5, 6, 7, 2]


@pytest.mark.rule("CLM-3")
def test_audit_without_look_ahead_exits_with_0_and_a_bad_table_is_a_clear_error(
    server: LiveServer, tmp_path: Path
) -> None:
    good = tmp_path / "good.csv"
    good.write_text("Subject,Measure,Period,Value,Date\nJSE:SMPKG,revenue,2024,46.2bn,2024-10-01\n")
    done = run(server.home, "audit", good)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 supported")
    bad = tmp_path / "bad.csv"
    bad.write_text("company,amount\nx,1\n")
    refused = run(server.home, "audit", bad)
    assert refused.returncode == 1
    assert "no column subject, period, value, date" in refused.stderr


@pytest.mark.rule("CLM-3")
def test_audit_lists_unreadable_rows_and_continues(server: LiveServer, tmp_path: Path) -> None:
    table = tmp_path / "mixed.csv"
    table.write_text(
        "subject,measure,period,value,date\n"
        "JSE:SMPKG,revenue,2024,46.2bn,yesterday\n"
        "JSE:SMPKG,revenue,2024,lots,2024-10-01\n"
        "JSE:SMPKG,revenue,2024,46.2bn,2024-10-01\n"
    )
    done = run(server.home, "audit", table)
    first, second, third, last = done.stdout.splitlines()
    assert done.returncode == 2
    assert "line 2" in first
    assert "'yesterday' is not a date" in first
    assert "line 3" in second
    assert "expected a number" in second
    assert third.startswith("supported")
    assert last == "2 unreadable, 1 supported"


@pytest.mark.rule("CLM-1")
def test_a_later_restatement_does_not_change_the_check_of_a_metric(server: LiveServer, paid_key: str):
    """On a day before the restatement the claim is checked against the value computable then."""
    path = f"/v1/metrics/{RETAILER}?as_of="
    restated = server.get(f"/v1/restatements?service_id={RETAILER}", paid_key).json()["data"]
    judged = 0
    for day in sorted({date.fromisoformat(row["available_at"]) - timedelta(days=1) for row in restated}):
        as_known = server.get(f"{path}{day}&basis=as_known", paid_key).json()["data"]
        current = {row["metric"] for row in server.get(f"{path}{day}", paid_key).json()["data"]}
        for row in as_known:
            if row["metric"] not in current and row["unit"] == "ratio":
                claim = {"measure": row["metric"], "period": row["period_end"], "value": str(row["value"])}
                verdict = check(server, paid_key, subject=RETAILER, as_of=f"{day}", **claim)["verdict"]
                assert verdict == "supported", (day, row)
                today = check(server, paid_key, subject=RETAILER, **claim)
                assert today["verdict"] != "supported" or today["value"] == row["value"], (day, row)
                judged += 1
    assert judged


@pytest.mark.rule("CLM-3")
@every(
    ("separator", "encoding", "thousands", "decimal"),
    [
        (",", "utf-8", "46222", "46.2"),
        (";", "utf-8-sig", "46.222", "46,2"),
        ("\t", "utf-16", "46,222", "46.2"),
        (";", "cp1252", "46.222", "46,2"),
    ],
)
def test_audit_reads_the_tables_that_spreadsheets_write(
    server: LiveServer, tmp_path: Path, separator: str, encoding: str, thousands: str, decimal: str
) -> None:
    """A table shows by its other values whether 46.222 is 46 or 46 thousand."""
    table = tmp_path / "figures.csv"
    lines = ["subject;measure;period;value;unit;date", f"JSE:SMPKG;revenue;2024;{decimal};ZAR bn;01.10.2024"]
    lines += [f"JSE:SMPKG;Revenue;FY24;{thousands};ZAR million;2024-10-01 09:30:00", ";;;;;"]
    lines.append(f"JSE:SMPKG;revenue;2024;4{decimal[2]}62E+10;ZAR;2024-10-01")
    lines.append("Société é;revenue;2024;1;ZAR;30 June 2025")
    text = "\r\n".join(lines).replace(";", separator)
    table.write_bytes(text.encode(encoding))
    done = run(server.home, "audit", table)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "1 not found, 3 supported"
    assert "Société é" in done.stdout


@pytest.mark.rule("CLM-3")
@every(
    ("content", "reason"),
    [
        (
            "x;measure;period;subject;value;date\n;revenue;2024;JSE:SMPKG;46.222;2024-10-01\n",
            "leave the separator",
        ),
        (
            "subject,measure,period,value,date\nJSE:SMPKG,revenue,2024,46,222,2024-10-01\n",
            "6 cells under 5 headings",
        ),
        (
            'subject,period,value,date\na,2024,"46,222",2024-10-01\na,2024,1.5,2024-10-01\n'
            'a,2024,"1,5",2024-10-01\n',
            "46,222 may be thousands or a decimal",
        ),
    ],
)
def test_audit_does_not_guess_a_value(server: LiveServer, tmp_path: Path, content: str, reason: str) -> None:
    table = tmp_path / "figures.csv"
    table.write_text(content)
    done = run(server.home, "audit", table)
    assert done.returncode == 2
    assert reason in done.stdout.splitlines()[0]
    assert "1 unreadable" in done.stdout.splitlines()[-1]


@pytest.mark.rule("CLM-3")
def test_audit_reads_a_workbook(server: LiveServer, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Figures of the model"])
    sheet.append(["Subject", "Measure", "Period", "Value", "Unit", "Date"])
    sheet.append([TICKER, "revenue", 2024, 46_222_000_000, "ZAR", date(2024, 10, 1)])
    sheet.append([TICKER, "revenue", 2024, 46_222, "ZAR million", date(2024, 7, 15)])
    sheet.append([TICKER, "net_margin", "FY2025", "=1/21.14", None, date(2026, 1, 31)])
    table = tmp_path / "figures.xlsx"
    book.save(table)
    done = run(server.home, "audit", table)
    first, second, third, last = done.stdout.splitlines()
    assert done.returncode == 1
    assert first.startswith("look-ahead   line 4:")
    assert "formula without a result" in second
    assert third.startswith("supported    line 3:")
    assert last == "1 look-ahead, 1 unreadable, 1 supported"
    (tmp_path / "figures.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    refused = run(server.home, "audit", tmp_path / "figures.xls")
    assert refused.returncode == 1
    assert "figures.xls" in refused.stderr
    assert "Traceback" not in refused.stderr
