"""Our own template for figures taken from documents."""

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.records import EntityRecord, Fact, Profile, Rejected, Withheld
from tests.every import every
from tests.unit.sources.conftest import Read, Written

COLUMNS = """
    entity line_item value currency period_start period_end period_type available_at document location
    confidence
""".split()
ROW = [
    "ticker:JSE:WHL",
    "revenue",
    "1234.50",
    "ZAR",
    "2022-07-01",
    "2023-06-30",
    "FY",
    "2023-08-30",
    "results-2023.pdf",
    "p. 12",
    "0.97",
]
FACT = Fact(
    subject="ticker:JSE:WHL",
    concept="revenue",
    unit="ZAR",
    period_start="2022-07-01",
    period_end="2023-06-30",
    available_at="2023-08-30",
    document="results-2023.pdf",
    value="1234.5",
    location="p. 12",
    declared_period="FY",
    confidence="0.97",
)


def line(**changes: str) -> str:
    return ",".join(changes.get(column, value) for column, value in zip(COLUMNS, ROW, strict=True))


def template(*lines: str, header: str = ",".join(COLUMNS)) -> str:
    return "".join(f"{each}\n" for each in (header, *lines))


@pytest.mark.rule("ADP-4")
def test_a_row_becomes_a_fact(read: Read, written: Written) -> None:
    assert read("filings-csv", written("a.csv", template(line()))) == [FACT]


def test_optional_columns_may_be_absent_or_empty(read: Read, written: Written) -> None:
    required = "entity,line_item,value,currency,period_end,document"
    row = "lei:5493001KJTIIGC8Y1R12,shares_outstanding,5,,2023-06-30,a.pdf"
    bare = [
        Fact("lei:5493001KJTIIGC8Y1R12", "shares_outstanding", "", "", "2023-06-30", "", "a.pdf", "5", "")
    ]
    assert read("filings-csv", written("a.csv", template(row, header=required))) == bare
    empty = line(
        entity="lei:5493001KJTIIGC8Y1R12", line_item="shares_outstanding", value="5", document="a.pdf"
    )
    empty = empty.replace("2022-07-01", "").replace("FY,2023-08-30", ",").replace("p. 12,0.97", ",")
    assert read("filings-csv", written("a.csv", template(empty.replace("ZAR", "")))) == bare


@every("separator", [",", ";", "\t"])
def test_the_separator_is_found_from_the_header(read: Read, written: Written, separator: str) -> None:
    content = template(line()).replace(",", separator)
    assert read("filings-csv", written("a.csv", content)) == [FACT]


def test_the_header_may_be_in_any_order_case_and_spacing(read: Read, written: Written) -> None:
    pairs = list(zip(COLUMNS, ROW, strict=True))[::-1]
    header = ",".join(f' "{name.replace("_", " ").title()}" ' for name, _ in pairs)
    content = "\ufeff" + template(",".join(value for _, value in pairs), header=header).replace("\n", "\r\n")
    assert read("filings-csv", written("a.csv", content)) == [FACT]


@every(
    ("written_as", "line_item"),
    [("Revenue", "revenue"), ("Gross Profit", "gross_profit"), ("EPS basic", "eps_basic")],
)
def test_a_line_item_is_written_in_snake_case(read: Read, written: Written, written_as: str, line_item: str):
    assert read("filings-csv", written("a.csv", template(line(line_item=written_as)))) == [
        FACT._replace(concept=line_item)
    ]


@every(
    ("changes", "reason"),
    [
        ({"entity": "Woolworths"}, "entity: expected one of"),
        ({"entity": "ticker:WHL"}, "entity: expected ticker:SCHEME:VALUE"),
        ({"entity": "figi:BBG000BF0KW3"}, "entity: a figi does not identify"),
        ({"entity": "lei:5493001KJTIIGC8Y1R13"}, "entity: not a valid LEI"),
        ({"line_item": ""}, "line_item"),
        ({"line_item": "ifrs-full:Revenue"}, "line_item"),
        ({"value": '"1,234"'}, "value: not a number"),
        ({"value": "1 234"}, "value: not a number"),
        ({"value": "NaN"}, "value: not a finite number"),
        ({"value": "١٢"}, "value: not a finite number"),
        ({"currency": "Rand"}, "currency: expected an ISO 4217 code"),
        ({"period_end": "2023-02-30"}, "period_end: no such day"),
        ({"period_end": "30/06/2023"}, "period_end: expected a date"),
        ({"period_start": "2023-07-01"}, "period_start is after period_end"),
        ({"period_start": "2022"}, "period_start: expected a date"),
        ({"period_type": "H3"}, "period_type: expected one of FY"),
        ({"available_at": "soon"}, "available_at: expected a date"),
        ({"document": ""}, "document is missing"),
        ({"document": "a\x01b"}, "control character"),
        ({"confidence": "1.01"}, "confidence: expected a number from 0 to 1"),
        ({"confidence": "high"}, "confidence: not a number"),
        ({"location": "p. 1,extra"}, "12 fields where the header has 11"),
        ({"location": "p.\0 1"}, "NUL"),
        ({"location": '"p. 1'}, "quote"),
    ],
)
def test_a_malformed_row_is_rejected_with_its_line_and_others_are_read(
    read: Read, written: Written, changes: dict[str, str], reason: str
) -> None:
    first, rejected, last = read("filings-csv", written("a.csv", template(line(), line(**changes), line())))
    assert first == last == FACT
    assert isinstance(rejected, Rejected)
    assert rejected.position == "row 3"
    assert reason in rejected.reason


def test_a_short_row_and_a_row_not_in_utf_8_are_rejected(read: Read, written: Written) -> None:
    content = template(line(), "ticker:JSE:WHL,revenue").encode() + line().replace(
        "results", "r\xe9s"
    ).encode("latin-1")
    records = read("filings-csv", written("a.csv", content))
    assert records[1:] == [
        Rejected("row 3", "2 fields where the header has 11"),
        Rejected("row 4", "not UTF-8"),
    ]


@every(
    ("header", "reason"),
    [
        ("", "expected the filings-csv template"),
        ("<!DOCTYPE html>", "expected the filings-csv template"),
        (",".join([*COLUMNS, "comment"]), "unknown column 'comment'"),
        (",".join([*COLUMNS, "value"]), "column value is given twice"),
        (",".join(c for c in COLUMNS if c != "document"), "the required column document is missing"),
    ],
)
def test_another_header_is_refused_by_name(read: Read, written: Written, header: str, reason: str) -> None:
    with pytest.raises(FormatError, match=rf"^a\.csv: {reason}"):
        read("filings-csv", written("a.csv", template(line(), header=header)))


def test_the_entity_can_be_named_and_placed(read: Read, written: Written) -> None:
    columns = ",".join((*COLUMNS, "legal_name", "country"))
    rows = [
        ",".join((*ROW, "Woolworths Holdings (old)", "")),
        ",".join((*ROW, "Woolworths Holdings Limited", "zaf")),
        ",".join((*ROW, "", "")),
    ]
    *facts, record = read("filings-csv", written("a.csv", "\n".join((columns, *rows)) + "\n"))
    assert facts == [FACT, FACT, FACT]
    assert isinstance(record, EntityRecord)
    assert (record.subject, record.incidental) == ("ticker:JSE:WHL", True)
    assert record.profile == Profile(
        legal_name="Woolworths Holdings Limited",
        other_names=("Woolworths Holdings (old)",),
        country="ZA",
        identifiers=("ticker:JSE:WHL",),
        document="a.csv",
        secondary=True,
    )


@every(
    ("legal_name", "country", "reason"),
    [
        ("Woolworths Holdings", "XX", "country"),
        ("Woolworths", "South Afrika", "country"),
        ("a" * 301, "", "legal_name"),
    ],
)
def test_a_row_with_an_unknown_country_is_rejected(
    read: Read, written: Written, legal_name: str, country: str, reason: str
) -> None:
    text = "\n".join((",".join((*COLUMNS, "legal_name", "country")), ",".join((*ROW, legal_name, country))))
    (rejected,) = read("filings-csv", written("a.csv", text + "\n"))
    assert isinstance(rejected, Rejected)
    assert rejected.reason.startswith(reason)


@every(
    ("entity", "legal_name", "is_read"),
    [
        ("ticker:JSE:WHL", "Woolworths", True),
        ("ticker:JSE:WHL", "Dr Wilhelmina Fruitzky", False),
        ("registry:ZA-CIPC:1929/001986/06", "Woolworths", True),
        ("registry:US-SEC-CIK:1045810", "Jane Doe", False),
        ("registry:US-SEC-CIK:1045810", "Jane Doe Holdings Inc", True),
        ("lei:529900T8BM49AURSDO55", "Jane Doe", False),
        ("lei:529900T8BM49AURSDO55", "Jane Doe Trading Limited", True),
    ],
)
def test_a_possible_persons_name_is_withheld_but_the_issuers_figure_is_read(
    read: Read, written: Written, entity: str, legal_name: str, is_read: bool
) -> None:
    text = "\n".join((",".join((*COLUMNS, "legal_name")), ",".join((entity, *ROW[1:], legal_name))))
    fact, other = read("filings-csv", written("a.csv", text + "\n"))
    assert isinstance(fact, Fact)
    assert isinstance(other, EntityRecord if is_read else Withheld)
