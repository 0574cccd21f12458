"""People in files that were filled in by hand: figures, identifiers, and other columns."""

from collections.abc import Iterator

import pytest

from sankofa.model.identifiers import service_id
from tests.spec.ingesting import source_entry
from tests.spec.market import Desk, PaidCaller
from tests.spec.register import lei

PERSON, NAMED, JOINED, NAMELESS, LISTED = (
    "registry:KE-PIN:A001234567B",
    "registry:KE-PIN:P051234567C",
    "registry:PY-RUC:80012345-6",
    "registry:RW-RDB:102030405",
    "ticker:NSE:QSN",
)
HOLDER = f"lei:{lei('QHOLDER')}"
FIGURES = f"""\
entity,legal_name,country,line_item,value,currency,period_start,period_end,available_at,document,location
{PERSON},Zqwanjiru Zqkamau,KE,revenue,101,KES,2023-01-01,2023-12-31,2024-03-01,accounts.pdf,p. 1
{NAMED},Qseen Traders Limited,KE,revenue,102,KES,2023-01-01,2023-12-31,2024-03-01,accounts.pdf,p. 2
{JOINED},,,revenue,103,PYG,2023-01-01,2023-12-31,2024-03-01,accounts.pdf,p. 3
{NAMELESS},,,revenue,104,RWF,2023-01-01,2023-12-31,2024-03-01,accounts.pdf,p. 4
{LISTED},,,revenue,105,KES,2023-01-01,2023-12-31,2024-03-01,By Dr Zqatieno Zqodhiambo.pdf,p. 5
{LISTED},,,profit,106,KES,2023-01-01,2023-12-31,2024-03-01,Zqkamau Zqwanjiru.pdf,call zqmail@zqhost.test
registry:RA000123:B3,,,revenue,107,KES,2023-01-01,2023-12-31,2024-03-01,accounts.pdf,p. 7
registry:ZA-CIPC:2001/1/07,,,revenue,108,ZAR,2023-01-01,2023-12-31,2024-03-01,accounts.pdf,p. 8
registry:NG-CAC:BN123456,,,revenue,109,NGN,2023-01-01,2023-12-31,2024-03-01,accounts.pdf,p. 9
registry:KE-PIN:A007654321Z,Zqotieno Zqbarasa,KE,assets,none,KES,,2023-12-31,2024-03-01,accounts.pdf,p. 6
"""
IDS = f"""\
entity,id_type,id_value,registry,legal_name,country
{HOLDER},registry,80012345-6,PY-RUC,,
registry:UG-RSB:80020001234567,aggregator,ug/80020001234567,,Zqnamutebi Zqkato,UG
"""
SOURCES = source_entry("figures", "filings-csv") + source_entry("ids", "identifiers-csv")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = Desk(tmp_path_factory.mktemp("templates"), SOURCES)
    assert desk.ingest("figures", "figures.csv", FIGURES) == {
        "read": 13, "appended": 8, "unchanged": 0, "withheld": 4, "rejected": 1, "skipped": 0,
    }  # fmt: skip
    desk.ingest("ids", "ids.csv", IDS)
    desk.publish()
    return desk


@pytest.fixture(scope="module")
def caller(desk: Desk) -> Iterator[PaidCaller]:
    with desk.serve() as caller:
        yield caller


def figures(caller: PaidCaller, entity: str) -> list[dict[str, object]]:
    data: list[dict[str, object]] = caller.get(f"/v1/fundamentals/{service_id(entity)}")["data"]
    return data


@pytest.mark.rule("GATE-9")
@pytest.mark.parametrize(
    "entity", [PERSON, NAMELESS, "registry:UG-RSB:80020001234567", "registry:NG-CAC:BN123456"]
)
def test_an_entity_with_only_a_number_that_people_have_too_is_withheld(
    caller: PaidCaller, entity: str
) -> None:
    for path in ("fundamentals", "entities", "crosswalk"):
        answer = caller.server.get(f"/v1/{path}/{service_id(entity)}", caller.key)
        assert answer.status_code == 404, path
    number = entity.rpartition(":")[2]
    assert caller.get("/v1/crosswalk", id_type="registry", id_value=number)["count"] == 0
    assert caller.get("/v1/search", q=number)["count"] == 0


@pytest.mark.rule("GATE-9")
@pytest.mark.parametrize(("entity", "value"), [(NAMED, 102), (JOINED, 103)])
def test_a_name_or_another_identifier_proves_an_organisation(
    caller: PaidCaller, entity: str, value: int
) -> None:
    (row,) = figures(caller, entity)
    assert row["value_reported"] == value


@pytest.mark.rule("GATE-9")
@pytest.mark.parametrize(
    ("entity", "value"), [("registry:RA000123:B3", 107), ("registry:ZA-CIPC:2001/1/07", 108)]
)
def test_a_number_not_known_as_a_persons_is_served(caller: PaidCaller, entity: str, value: int) -> None:
    (row,) = figures(caller, entity)
    assert row["value_reported"] == value


@pytest.mark.rule("GATE-4", "GATE-8")
def test_documents_and_locations_contain_no_name(desk: Desk, caller: PaidCaller) -> None:
    refs = {row["line_item"]: row["source_ref"] for row in figures(caller, LISTED)}
    assert refs == {
        "revenue": "figures:By Dr [withheld].pdf#p. 5",
        "profit": "figures:[withheld].pdf#call [withheld]",
    }
    files = {path.name: path.read_bytes().lower() for path in desk.home.rglob("*") if path.is_file()}
    people = (b"zqwanjiru", b"zqkamau", b"zqodhiambo", b"zqotieno", b"zqnamutebi", b"zqmail")
    assert [name for name, content in files.items() if any(word in content for word in people)] == []
