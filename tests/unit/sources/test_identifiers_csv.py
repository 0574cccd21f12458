"""Our own template for identifiers."""

import gzip
import json

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.records import EntityRecord, IdentifierLink, Record, Rejected, Skipped
from tests.every import every
from tests.unit.sources.conftest import Read, Written

HEADER = "entity,id_type,id_value,registry"
LEI = "lei:529900T8BM49AURSDO55"


def template(*lines: str, header: str = HEADER) -> str:
    return "".join(f"{line}\n" for line in (header, *lines))


@pytest.mark.rule("ADP-12")
@every(
    ("row", "identifier"),
    [
        ("ticker,JSE:WHL,", "ticker:JSE:WHL"),
        ("ticker,jse:whl,", "ticker:JSE:WHL"),
        ("ticker,WHL,JSE", "ticker:JSE:WHL"),
        ("ticker,BRK.B,NYSE", "ticker:NYSE:BRK.B"),
        ("ticker,M&M,XNSE", "ticker:NSE:M&M"),
        ("ticker,ABC,XPAR", "ticker:XPAR:ABC"),
        ("Registry,1929/001986/06,za-cipc", "registry:ZA-CIPC:1929/001986/06"),
        ("registry,rc  999 006,RA000001", "registry:RA000001:RC 999 006"),
        ("registry,1045810,US-SEC-CIK", "registry:US-SEC-CIK:0001045810"),
        ("aggregator,za/1929001986,OPENCORPORATES", "aggregator:OPENCORPORATES:za/1929001986"),
        ("aggregator,za/1929001986,", "aggregator:AGGREGATOR:za/1929001986"),
        ("isin,ZAE 000 015228,", "isin:ZAE000015228"),
        ("figi,bbg000blnnh6,", "figi:BBG000BLNNH6"),
        ("lei,2138004VFYZFYLELHT92,", "lei:2138004VFYZFYLELHT92"),
    ],
)
def test_a_row_links_an_identifier_to_the_entity(read: Read, written: Written, row: str, identifier: str):
    assert read("identifiers-csv", written("a.csv", template(f"{LEI},{row}"))) == [
        IdentifierLink(identifier, LEI, "row 2")
    ]


def test_the_entity_may_be_known_by_any_strong_identifier(read: Read, written: Written) -> None:
    rows = [
        f"{entity},figi,BBG000BLNNH6," for entity in ("ticker:xjse:whl", "isin:ZAE000015228", "Registry:A:1")
    ]
    records = read("identifiers-csv", written("a.csv", template(*rows)))
    assert [record.subject for record in records if isinstance(record, IdentifierLink)] == [
        "ticker:JSE:WHL",
        "isin:ZAE000015228",
        "registry:A:1",
    ]


def test_an_identifier_of_itself_says_nothing(read: Read, written: Written) -> None:
    rows = (f"{LEI},lei,529900t8bm49aursdo55,", "ticker:JSE:WHL,ticker,whl,XJSE")
    assert read("identifiers-csv", written("a.csv", template(*rows))) == [Skipped(1), Skipped(1)]


@every("separator", [",", ";", "\t"])
def test_the_template_may_come_from_any_spreadsheet(read: Read, written: Written, separator: str) -> None:
    content = "\ufeff" + template(
        f'{LEI},ticker,"WHL",JSE', "", ",,,", header='"Entity",ID type,Id Value,REGISTRY'
    )
    content = content.replace(",", separator).replace("\n", "\r\n")
    assert read("identifiers-csv", written("a.csv", content)) == [
        IdentifierLink("ticker:JSE:WHL", LEI, "row 2")
    ]


def test_the_registry_column_may_be_absent(read: Read, written: Written) -> None:
    content = template(f"isin,{LEI},ZAE000015228", header="id_type,entity,id_value").encode()
    expected: list[Record] = [IdentifierLink("isin:ZAE000015228", LEI, "row 2")]
    assert read("identifiers-csv", written("a.csv.gz", gzip.compress(content))) == expected


@every(
    ("row", "reason"),
    [
        ("Woolworths,ticker,JSE:WHL,", "entity: expected one of"),
        ("figi:BBG000BLNNH6,ticker,JSE:WHL,", "entity: a figi does not identify"),
        ("aggregator:OC:ZA/1,ticker,JSE:WHL,", "entity: a aggregator does not identify"),
        ("lei:529900T8BM49AURSDO56,ticker,JSE:WHL,", "entity: not a valid LEI"),
        (f"{LEI},cusip,037833100,", "id_type: expected one of"),
        (f"{LEI},isin,ZAE000015229,", "id_value: not a valid ISIN"),
        (f"{LEI},figi,BBG000BLNNH7,", "id_value: not a valid FIGI"),
        (f"{LEI},lei,529900T8BM49AURSDO56,", "id_value: not a valid LEI"),
        (f"{LEI},isin,,", "id_value is missing"),
        (f"{LEI},ticker,WHL,", "registry is missing: expected the exchange"),
        (f"{LEI},ticker,NSX:WHL,JSE", "registry: another exchange"),
        (f"{LEI},ticker,JSE:,", "id_value: a ticker of 1 to 64"),
        (f"{LEI},ticker,N/A,JSE", "id_value: a placeholder"),
        (f"{LEI},registry,1929/001986/06,", "registry is missing: expected the registry"),
        (f"{LEI},registry,ZA-CIPC:1929/001986/06,", "registry is missing: expected the registry"),
        (f"{LEI},registry,N/A,ZA-CIPC", "id_value: a placeholder"),
        (f"{LEI},registry,1,ZA CIPC", "id_value: expected registry:SCHEME:VALUE"),
        (f"{LEI},registry,{'9' * 65},ZA-CIPC", "id_value: a registry of 1 to 64"),
        (f"{LEI},isin", "2 fields where the header has 4"),
        (f'{LEI},isin,"ZAE000015228,', "quote"),
    ],
)
def test_a_malformed_row_is_rejected_with_its_line_and_others_are_read(
    read: Read, written: Written, row: str, reason: str
) -> None:
    good = f"{LEI},ticker,JSE:WHL,"
    first, rejected, last = read("identifiers-csv", written("a.csv", template(good, row, good)))
    assert (first, last) == (
        IdentifierLink("ticker:JSE:WHL", LEI, "row 2"),
        IdentifierLink("ticker:JSE:WHL", LEI, "row 4"),
    )
    assert isinstance(rejected, Rejected)
    assert rejected.position == "row 3"
    assert reason in rejected.reason


def test_the_entity_can_be_named_and_placed(read: Read, written: Written) -> None:
    rows = [f"{LEI},ticker,JSE:WHL,,Woolworths Holdings Limited,ZA", f"{LEI},isin,ZAE000015228,,,"]
    text = template(*rows, header=HEADER + ",legal_name,country")
    *links, record = read("identifiers-csv", written("a.csv", text))
    assert len(links) == 2
    assert isinstance(record, EntityRecord)
    assert (record.subject, record.profile.legal_name, record.profile.country, record.profile.secondary) == (
        *(LEI, "Woolworths Holdings Limited", "ZA", True),
    )


IBM = {
    "figi": "BBG000BLNQ16",
    "name": "INTL BUSINESS MACHINES CORP",
    "ticker": "IBM",
    "exchCode": "UN",
    "compositeFIGI": "BBG000BLNNH6",
    "securityType": "Common Stock",
    "marketSector": "Equity",
    "shareClassFIGI": "BBG001S5S399",
    "securityType2": "Common Stock",
    "securityDescription": "IBM",
}
LINKS: list[Record] = [
    IdentifierLink(f"figi:{figi}", "ticker:NYSE:IBM", "0/data/0")
    for figi in ("BBG000BLNQ16", "BBG000BLNNH6", "BBG001S5S399")
]


def mapping(*instruments: object) -> str:
    return json.dumps([{"data": list(instruments)}])


@pytest.mark.rule("ADP-11")
def test_each_figi_of_a_listed_share_is_linked_to_its_ticker(read: Read, written: Written) -> None:
    assert read("openfigi", written("a.json", mapping(IBM))) == LINKS


def test_a_search_or_filter_reply_is_one_reply(read: Read, written: Written) -> None:
    reply = json.dumps({"data": [IBM], "total": 1, "next": "QW9"})
    at_top = [link._replace(location="data/0") for link in LINKS if isinstance(link, IdentifierLink)]
    assert read("openfigi", written("a.json", reply)) == at_top


@every(
    "changes",
    [{"compositeFIGI": "BBG000BLNQ16", "shareClassFIGI": None}, {"compositeFIGI": "", "shareClassFIGI": ""}],
)
def test_a_figi_that_is_its_own_composite_is_linked_once(
    read: Read, written: Written, changes: dict[str, object]
) -> None:
    assert read("openfigi", written("a.json", mapping(IBM | changes))) == LINKS[:1]


@every(
    ("changes", "subject"),
    [
        ({"exchCode": "SJ", "ticker": "NPN"}, "ticker:JSE:NPN"),
        ({"exchCode": "UN", "ticker": "BRK/B"}, "ticker:NYSE:BRK.B"),
        ({"exchCode": "LN", "ticker": "BP/"}, "ticker:LSE:BP."),
        ({"exchCode": "IS", "ticker": "m&m"}, "ticker:NSE:M&M"),
        ({"exchCode": "KN", "ticker": " SCOM "}, "ticker:NSE-KE:SCOM"),
        ({"securityType": "ADR", "securityType2": "Depositary Receipt"}, "ticker:NYSE:IBM"),
        ({"securityType": "REIT", "securityType2": None}, "ticker:NYSE:IBM"),
    ],
)
def test_the_ticker_is_written_as_people_write_it(
    read: Read, written: Written, changes: dict[str, object], subject: str
) -> None:
    records = read("openfigi", written("a.json", mapping(IBM | changes)))
    assert [record.subject for record in records if isinstance(record, IdentifierLink)] == [subject] * 3


@every(
    "changes",
    [
        {"securityType": "Equity Option", "securityType2": "Option"},
        {"securityType": "Equity WRT", "securityType2": "Warrant"},
        {"securityType": "ETP", "securityType2": "Mutual Fund"},
        {"securityType": None, "securityType2": None},
        {"marketSector": "Corp"},
        {"marketSector": None},
        {"exchCode": "US"},
        {"exchCode": "B3"},
        {"exchCode": None},
    ],
)
def test_instruments_other_than_listed_shares_are_skipped(
    read: Read, written: Written, changes: dict[str, object]
) -> None:
    assert read("openfigi", written("a.json", mapping(IBM | changes))) == [Skipped(1)]


def test_a_nasdaq_share_traded_on_the_nyse_is_not_listed_there(read: Read, written: Written) -> None:
    nasdaq = IBM | {"exchCode": "UW", "figi": "BBG000BLNR78"}
    records = read("openfigi", written("a.json", mapping(IBM, nasdaq, IBM | {"compositeFIGI": None})))
    assert records[0] == Skipped(1)
    assert [record.subject for record in records if isinstance(record, IdentifierLink)] == [
        *["ticker:NASDAQ:IBM"] * 3,
        *["ticker:NYSE:IBM"] * 2,
    ]


@every(
    ("changes", "reason"),
    [
        ({"figi": "BBG000BLNQ17"}, "not a valid FIGI"),
        ({"compositeFIGI": "BBG000BLNNH"}, "not a valid FIGI"),
        ({"shareClassFIGI": "BSG001S5S399"}, "not a valid FIGI"),
    ],
)
def test_a_bad_figi_is_rejected_and_others_are_read(
    read: Read, written: Written, changes: dict[str, object], reason: str
) -> None:
    records = read("openfigi", written("a.json", mapping(IBM | changes)))
    [rejected] = [record for record in records if isinstance(record, Rejected)]
    assert rejected.position == "0/data/0"
    assert reason in rejected.reason
    assert len(records) == 3


@every(
    ("instrument", "reason"),
    [
        ("x", "malformed instrument"),
        (IBM | {"ticker": None}, "a ticker of 1 to 64"),
        (IBM | {"ticker": ":"}, "a ticker of 1 to 64"),
        (IBM | {"figi": None, "compositeFIGI": None, "shareClassFIGI": None}, "no FIGI is given"),
    ],
)
def test_a_malformed_instrument_is_rejected_and_others_are_read(
    read: Read, written: Written, instrument: object, reason: str
) -> None:
    records = read("openfigi", written("a.json", mapping(IBM, instrument)))
    assert records[:-1] == LINKS
    [rejected] = records[3:]
    assert isinstance(rejected, Rejected)
    assert rejected.position == "0/data/1"
    assert reason in rejected.reason


def test_a_job_without_an_answer_is_rejected_in_the_words_of_the_reply(read: Read, written: Written) -> None:
    jobs = [
        {"error": "Invalid idValue format."},
        {"warning": "No identifier\nfound."},
        {"data": [IBM]},
        {"data": "x"},
        7,
    ]
    records = read("openfigi", written("a.json", json.dumps(jobs)))
    assert [record for record in records if isinstance(record, Rejected)] == [
        Rejected("0/error", "nothing was mapped: Invalid idValue format."),
        Rejected("1/warning", "nothing was mapped: No identifier found."),
        Rejected("3", "malformed reply"),
        Rejected("4", "malformed reply"),
    ]
    assert len([record for record in records if isinstance(record, IdentifierLink)]) == 3


@every(
    ("content", "reason"),
    [
        ("", "not JSON"),
        ("LEI,ISIN", "not JSON"),
        ("7", "other JSON"),
        ("{}", "other JSON"),
        ("[1, 2]", "other JSON"),
        ('{"meta": {}, "data": []}', "other JSON"),
        ('{"data": [{"type": "isins"}]}', "other JSON"),
    ],
)
def test_a_file_of_another_format_is_refused(read: Read, written: Written, content: str, reason: str) -> None:
    with pytest.raises(FormatError, match=rf"^a\.json: expected a reply of the OpenFIGI API .*{reason}"):
        read("openfigi", written("a.json", content))
