"""GET /v1/tender-parties and the tool get_resolved_parties."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.spec.market import (
    BREWER,
    CITY,
    ENTITIES,
    MINER,
    TRADER,
    TWIN_ONE,
    UNKNOWN,
    Desk,
    PaidCaller,
    identified,
    package,
    party,
    release,
    without_mark,
)
from tests.spec.market import desk as desk

FIELDS = {
    *("service_id", "name", "role", "country", "identifier", "org_evidence", "match_method", "match_score"),
    *("release_count", "first_seen", "last_seen", "source_ref", "license_class", "observed_at"),
}
NOBODY = "DC000000000000000000000000"


def won(ocid: str, date: str, *suppliers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    refs = [{"id": s["id"], "name": s["name"]} for s in suppliers]
    return release(
        ocid,
        date,
        parties=[party(CITY["id"], CITY["name"], "buyer"), *suppliers],
        buyer=CITY,
        awards=[{"id": "1", "suppliers": refs}],
        **fields,
    )


def supplier(key: str, name: str, **fields: Any) -> dict[str, Any]:
    return party(key, name, "supplier", **fields)


RELEASES = [
    won("lei", "2025-01-01", supplier("1", "Thornveld (some spelling) Ltd", **identified("XI-LEI", BREWER))),
    won(
        "lei-lower", "2025-02-01", supplier("1", "Thornveld Brewing Ltd", **identified("LEI", BREWER.lower()))
    ),
    won("registry", "2025-03-01", supplier("1", "TB Ltd", **identified("RA990300", "2001/000777/07"))),
    won("name", "2025-04-01", supplier("1", "THORNVELD BREWERIES PROPRIETARY LIMITED")),
    won(
        "other-name", "2025-04-02", supplier("1", "Thornveld Beer", **identified("ZA-CIPC", "2001/000777/07"))
    ),
    won("twins", "2025-05-01", supplier("1", "Twin Baobab Trading Ltd")),
    won("twin", "2025-05-02", supplier("1", "Twin Baobab Trading Ltd", **identified("XI-LEI", TWIN_ONE))),
    won(
        "abroad",
        "2025-06-01",
        supplier("1", "SOCIETE MINIERE DU FOUTA, S.A.", address={"countryName": "Senegal"}),
        supplier("2", "Thornveld Breweries (Pty) Ltd", address={"countryName": "Kenya"}),
    ),
    won("unknown-lei", "2025-06-02", supplier("1", "Somebody Somewhere", **identified("XI-LEI", UNKNOWN))),
    won("trader", "2025-06-03", supplier("1", "Marchbanks Spares Ltd", **identified("XI-LEI", TRADER))),
    won("plain", "2025-06-04", supplier("1", "Unheard Of Holdings Limited")),
    won(
        "three",
        "2025-06-05",
        supplier("1", "Unheard Of Holdings Limited"),
        supplier("2", "Second Sample Supplies (Pty) Ltd", **identified("ZA-CIPC", "1899/999009/07")),
    ),
    release(
        "roles",
        "2025-06-06",
        parties=[
            party("1", "Oferta Sample S.A. Limited", "proveedor", "licitante"),
            party("2", "Municipalidad de Prueba Municipality", "comprador", "entidadConvocante"),
        ],
        tender={"procuringEntity": {"id": "2"}, "tenderers": [{"id": "1"}]},
    ),
    release("embedded", "2025-06-07", buyer={"name": "Department of Sample Affairs"}),
]
KENYA = [
    won(
        "ke",
        "2025-01-01",
        supplier("1", "Kisample Limited"),
        supplier("2", "Second Sample Supplies (Pty) Ltd"),
    )
]


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("parties"))
    desk.records(*ENTITIES)
    desk.ingest("portal-za", "za.json", package(*RELEASES))
    desk.ingest("portal-ke", "ke.json", package(*KENYA))
    with desk.publish_and_serve(per_minute_sample="100000", per_month_sample="1000000") as caller:
        yield caller


def sid(caller: PaidCaller, number: str) -> str:
    (row,) = caller.get("/v1/crosswalk", id_type="lei", id_value=number)["data"]
    return str(row["service_id"])


def rows_named(caller: PaidCaller, name: str, role: str = "supplier") -> list[dict[str, Any]]:
    return [row for row in caller.parties() if (row["name"], row["role"]) == (name, role)]


@pytest.mark.rule("PART-2")
def test_a_row_has_every_field(market: PaidCaller) -> None:
    rows = market.parties()
    assert rows
    assert all(set(row) == FIELDS for row in rows)
    row = next(r for r in rows_named(market, "Second Sample Supplies (Pty) Ltd") if r["identifier"])
    del row["observed_at"]
    row["source_ref"] = without_mark(row["source_ref"])
    (match,) = market.get("/v1/crosswalk", id_type="registry", id_value="1899/999009/07")["data"]
    assert row == {
        "service_id": match["service_id"],
        "name": "Second Sample Supplies (Pty) Ltd",
        "role": "supplier",
        "country": "ZA",
        "identifier": {"scheme": "ZA-CIPC", "id": "1899/999009/07"},
        "org_evidence": "registry: ZA-CIPC",
        "match_method": "identifier",
        "match_score": 1.0,
        "release_count": 1,
        "first_seen": "2025-06-05",
        "last_seen": "2025-06-05",
        "source_ref": "portal-za:za.json#releases[11]",
        "license_class": "open-government",
    }


@pytest.mark.rule("PART-2")
def test_numbers_that_a_portal_published_are_served_on_every_tier(market: PaidCaller) -> None:
    service_id = next(
        row["service_id"] for row in market.parties() if row["identifier"] and row["service_id"]
    )
    sample = PaidCaller(market.server, "sankofa-sandbox").parties(service_id=service_id, limit=25)
    assert sample == market.parties(service_id=service_id)
    assert any(row["identifier"] for row in sample)


@pytest.mark.rule("PART-1")
@pytest.mark.parametrize(
    ("name", "number", "method", "evidence"),
    [
        ("Thornveld (some spelling) Ltd", BREWER, "lei", f"lei: {BREWER}"),
        ("Thornveld Brewing Ltd", BREWER, "lei", f"lei: {BREWER}"),
        ("TB Ltd", BREWER, "identifier", "legal_form: Ltd"),
        ("THORNVELD BREWERIES PROPRIETARY LIMITED", BREWER, "name", "legal_form: PROPRIETARY LIMITED"),
        ("Thornveld Beer", BREWER, "name", "registry: ZA-CIPC"),
        ("SOCIETE MINIERE DU FOUTA, S.A.", MINER, "name", "legal_form: S.A."),
    ],
)
def test_a_party_is_resolved_by_lei_registry_number_or_name(
    market: PaidCaller, name: str, number: str, method: str, evidence: str
) -> None:
    (row,) = rows_named(market, name)
    assert (row["service_id"], row["match_method"]) == (sid(market, number), method)
    assert row["org_evidence"] == evidence


@pytest.mark.rule("ENT-3")
def test_a_name_that_two_organisations_have_resolves_to_neither_but_an_identifier_decides(market: PaidCaller):
    rows = rows_named(market, "Twin Baobab Trading Ltd")
    assert {(row["service_id"], row["match_method"]) for row in rows} == {
        (None, None),
        (sid(market, TWIN_ONE), "lei"),
    }


@pytest.mark.rule("ENT-3")
def test_a_name_of_another_country_resolves_to_nobody(market: PaidCaller) -> None:
    (row,) = [r for r in rows_named(market, "Thornveld Breweries (Pty) Ltd") if r["country"] == "KE"]
    assert (row["service_id"], row["match_method"]) == (None, None)


@pytest.mark.rule("GATE-2")
def test_an_lei_without_a_record_or_with_a_sole_proprietor_proves_nothing(market: PaidCaller) -> None:
    names = {row["name"] for row in market.parties()}
    assert not {"Somebody Somewhere", "Quentin Zebulon Marchbanks"} & names
    assert market.tender("unknown-lei")["withheld_parties"] == 1


def test_releases_are_counted_by_name_and_role(market: PaidCaller) -> None:
    (row,) = rows_named(market, "Unheard Of Holdings Limited")
    assert (row["release_count"], row["first_seen"], row["last_seen"]) == (2, "2025-06-04", "2025-06-05")
    (buyer,) = [r for r in rows_named(market, CITY["name"], "buyer") if r["country"] == "ZA"]
    assert buyer["release_count"] == sum("buyer" in r and r["buyer"] == CITY for r in RELEASES)


@pytest.mark.rule("PART-1")
def test_parties_are_ordered_by_releases_and_then_by_name(market: PaidCaller) -> None:
    rows = [
        (-row["release_count"], row["name"], row["role"], row["country"] or "") for row in market.parties()
    ]
    assert rows == sorted(rows)


COUNTRIES = (None, "ZA", "ke", "XX")
ROLES = (None, "buyer", "supplier", "SUPPLIER", "proveedor", "procuringEntity", "procuringentity", "payer")


@pytest.mark.rule("PART-1")
def test_every_combination_of_filters_gives_exactly_the_matching_rows(market: PaidCaller) -> None:
    everything = market.parties()
    ids = (None, sid(market, BREWER), sid(market, BREWER).lower(), sid(market, TWIN_ONE), NOBODY)
    met = 0
    for country, role, service_id in product(COUNTRIES, ROLES, ids):
        query = {"country": country, "role": role, "service_id": service_id}
        rows = market.parties(**{name: value for name, value in query.items() if value})
        word = "supplier" if role == "proveedor" else (role or "").lower()
        assert rows == [
            row
            for row in everything
            if (not country or row["country"] == country.upper())
            and (not role or row["role"].lower() == word)
            and (not service_id or row["service_id"] == service_id.upper())
        ], query
        met += bool(rows)
    assert met > 20
