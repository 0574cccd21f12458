"""Parties with a number of a companies register (contract: ENT-4, ENT-5)."""

from collections.abc import Iterator
from typing import Any

import pytest

from sankofa.model.identifiers import service_id
from tests.spec.market import CITY, Desk, PaidCaller, identified, package, party, release
from tests.spec.market import desk as desk
from tests.spec.register import lei, record

MILLER, GRAIN = lei("MILLER"), lei("GRAIN")
ENTITIES = [
    record(MILLER, "Ukhozi Milling Limited", "ZA", "RA000531:1987/004321/06"),
    record(GRAIN, "Sahel Grain Plc", "NG", "RA000469:0045671"),
]


def won(ocid: str, name: str, scheme: str, number: str, **fields: Any) -> dict[str, Any]:
    supplier = party("s", name, "supplier", **identified(scheme, number), **fields)
    value = {"amount": 1000, "currency": "ZAR"}
    award = {"id": "1", "status": "active", "value": value, "suppliers": [{"id": "s", "name": name}]}
    return release(ocid, parties=[party("c", CITY["name"], "buyer"), supplier], awards=[award])


NUMBERS = {  # as a portal writes them, and the LEI of the owner
    "org-id": ("Ukhozi Flour", "ZA-CIP", "1987/004321/06", MILLER),
    "ours": ("Ukhozi Bread", "za-cipc", "1987/004321/06", MILLER),
    "gleif": ("Ukhozi Baking", "RA000531", "1987-004321-06", MILLER),
    "portal": ("Ukhozi Cakes", "CIPC", "K1987/004321/06", MILLER),
    "name": ("Ukhozi Pies", "Companies and Intellectual Property Commission", "1987/004321/06", MILLER),
    "nigeria": ("Sahel Cereals", "NG-CAC", "RC 45671", GRAIN),
    "nigeria-own": ("Sahel Millet", "CAC", "rc-045671", GRAIN),
}
FREE = "1899/999201/07"
SHARED = "1899/999202/07"
TWIN = "1899/999203/07"
RELEASES = [
    *(won(f"held-{key}", name, scheme, number) for key, (name, scheme, number, _) in NUMBERS.items()),
    won("free-1", "Lonely Sample Works (Pty) Ltd", "ZA-CIP", FREE),
    won("free-2", "LONELY SAMPLE WORKS PROPRIETARY LIMITED", "ZA-CIPC", FREE.replace("/", "-")),
    won("shared-1", "First Sample Fencing (Pty) Ltd", "ZA-CIPC", SHARED),
    won("shared-2", "Second Sample Gardens (Pty) Ltd", "ZA-CIPC", SHARED),
    won("twin", "Ukhozi Milling Ltd", "ZA-CIPC", TWIN),
    won("person", "Marzipan Quibblewick t/a Quibblewick Spares", "ZA-CIPC", "1899/999204/07"),
    won("malformed", "Untidy Sample Holdings (Pty) Ltd", "ZA-CIPC", "99"),
]


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("registered"))
    desk.records(*ENTITIES)
    desk.ingest("portal-za", "za.json", package(*RELEASES))
    with desk.publish_and_serve() as caller:
        yield caller


def supplier(caller: PaidCaller, name: str) -> Any:
    rows = [row for row in caller.parties(role="supplier") if row["name"] == name]
    (row,) = rows
    return row


def sid(caller: PaidCaller, number: str) -> str:
    (row,) = caller.get("/v1/crosswalk", id_type="lei", id_value=number)["data"]
    return str(row["service_id"])


@pytest.mark.rule("ENT-4")
@pytest.mark.parametrize("key", NUMBERS)
def test_a_number_leads_to_its_holder_however_its_register_is_spelled(market: PaidCaller, key: str) -> None:
    name, scheme, number, holder = NUMBERS[key]
    row = supplier(market, name)
    assert (row["service_id"], row["match_method"]) == (sid(market, holder), "identifier")
    assert row["identifier"] == {"scheme": scheme, "id": number}, "as the portal published it"


@pytest.mark.rule("ENT-5")
def test_a_number_without_a_known_owner_makes_an_organisation(market: PaidCaller) -> None:
    first = supplier(market, "Lonely Sample Works (Pty) Ltd")
    second = supplier(market, "LONELY SAMPLE WORKS PROPRIETARY LIMITED")
    assert first["service_id"] == second["service_id"] == service_id(f"registry:ZA-CIPC:{FREE}")
    assert first["match_method"] == "identifier"
    assert first["org_evidence"] == "registry: ZA-CIPC"
    (entity,) = market.get(f"/v1/entities/{first['service_id']}")["data"]
    assert entity["country"] == "ZA"
    assert entity["legal_name"].lower().startswith("lonely sample works")
    (mapping,) = market.get(f"/v1/crosswalk/{first['service_id']}")["data"]
    assert (mapping["id_type"], mapping["scheme"], mapping["id_value"]) == ("registry", "ZA-CIPC", FREE)
    assert mapping["license_class"] == "open-government"
    looked_up = market.get("/v1/crosswalk", id_type="registry", id_value=FREE)
    assert [row["service_id"] for row in looked_up["data"]] == [first["service_id"]]
    facts = market.get("/v1/shared/facts", entity_id=first["service_id"], dataset="AF-TENDER")
    assert [fact["value"] for fact in facts["data"]] == [1000, 1000]
    failed, hits = market.tool("search_entities", query="Lonely Sample Works")
    assert not failed
    assert hits["data"][0]["service_id"] == first["service_id"]
    assert market.get("/v1/tender-parties", service_id=first["service_id"])["count"] == 2


@pytest.mark.rule("ENT-5")
def test_a_number_with_different_names_belongs_to_nobody(market: PaidCaller) -> None:
    for name in ("First Sample Fencing (Pty) Ltd", "Second Sample Gardens (Pty) Ltd"):
        assert (supplier(market, name)["service_id"], supplier(market, name)["match_method"]) == (None, None)
    assert market.get("/v1/crosswalk", id_type="registry", id_value=SHARED)["count"] == 0


def test_the_same_name_with_another_number_is_another_organisation(market: PaidCaller) -> None:
    row = supplier(market, "Ukhozi Milling Ltd")
    assert row["service_id"] == service_id(f"registry:ZA-CIPC:{TWIN}") != sid(market, MILLER)


def test_persons_and_malformed_numbers_make_no_organisation(market: PaidCaller) -> None:
    assert "Quibblewick" not in str(market.parties())
    assert market.get("/v1/crosswalk", id_type="registry", id_value="1899/999204/07")["count"] == 0
    assert supplier(market, "Untidy Sample Holdings (Pty) Ltd")["service_id"] is None


def test_the_id_of_a_party_still_answers_once_its_record_arrives(desk: Desk) -> None:
    desk.ingest("portal-za", "za.json", package(won("a", "Ukhozi Flour", "ZA-CIP", "1987/004321/06")))
    desk.publish()
    early = service_id("registry:ZA-CIPC:1987/004321/06")
    with desk.serve() as caller:
        assert supplier(caller, "Ukhozi Flour")["service_id"] == early
        desk.records(*ENTITIES)
        desk.publish()
    with desk.serve() as caller:
        (entity,) = caller.get(f"/v1/entities/{early}")["data"]
        assert entity["legal_name"] == "Ukhozi Milling Limited"
        assert entity["lei"] == MILLER
        assert caller.get("/v1/tender-parties", service_id=early)["count"] == 1
        assert supplier(caller, "Ukhozi Flour")["service_id"] == entity["service_id"]


@pytest.mark.rule("PIT-8")
def test_any_order_of_ingestion_gives_the_same_organisations(desk: Desk) -> None:
    desk.ingest("portal-za", "b.json", package(*RELEASES[::-1]))
    desk.records(*ENTITIES[::-1])
    with desk.publish_and_serve() as caller:
        free = service_id(f"registry:ZA-CIPC:{FREE}")
        assert supplier(caller, "Lonely Sample Works (Pty) Ltd")["service_id"] == free
        assert supplier(caller, "Ukhozi Flour")["service_id"] == sid(caller, MILLER)
        assert supplier(caller, "First Sample Fencing (Pty) Ltd")["service_id"] is None
