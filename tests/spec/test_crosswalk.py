"""GET /v1/crosswalk and /v1/crosswalk/{service_id}: identifiers and their owners."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.live import LiveServer, succeed
from tests.patience import until
from tests.spec import register
from tests.spec.register import BANK, BREWER, DISPUTED, HELD, LAPSED, MINER, PERSON, lei, sid

live, sample, paid = register.live, register.sample, register.paid


def lookup(live: LiveServer, key: str, id_type: str, id_value: str) -> dict[str, Any]:
    return live.body("/v1/crosswalk", key, id_type=id_type, id_value=id_value)


def ids_of(live: LiveServer, key: str, id_type: str, id_value: str) -> list[str]:
    rows = lookup(live, key, id_type, id_value)["data"]
    assert isinstance(rows, list)
    return [row["service_id"] for row in rows]


@pytest.mark.rule("CROSS-1", "CROSS-6")
def test_every_identifier_of_an_organisation_is_listed_free_ones_first(live: LiveServer, paid: str) -> None:
    body = live.get(f"/v1/crosswalk/{sid(f'lei:{BREWER}')}", paid).json()
    assert [(r["id_type"], r["id_value"], r["scheme"]) for r in body["data"]] == [
        ("lei", BREWER, None),
        ("ticker", "JSE:THV", "JSE"),
        ("registry", "2001/000777/07", "RA990300"),
        ("registry", "2001/000777/07", "ZA-CIPC"),
    ]
    assert body["withheld_id_types"] == []
    assert body["crosswalk_loaded"] is True
    for row in body["data"]:
        assert row["service_id"] == sid(f"lei:{BREWER}")
        assert row["source_ref"]
        assert row["license_class"]
        assert row["observed_at"]


@pytest.mark.rule("CROSS-1")
def test_the_answer_for_the_sample_tier_names_the_kinds_it_leaves_out(live: LiveServer, sample: str) -> None:
    body = live.get(f"/v1/crosswalk/{sid(f'lei:{MINER}')}", sample).json()
    assert [row["id_type"] for row in body["data"]] == ["lei"]
    assert body["withheld_id_types"] == ["registry", "aggregator"]
    assert "12345" not in live.get(f"/v1/crosswalk/{sid(f'lei:{MINER}')}", sample).text


@pytest.mark.rule("CROSS-2")
@pytest.mark.parametrize("typed", [BANK, BANK.lower(), f" {BANK} ", f"{BANK[:4]}-{BANK[4:10]} {BANK[10:]}"])
def test_a_lei_is_found_however_it_is_typed(live: LiveServer, sample: str, typed: str) -> None:
    assert ids_of(live, sample, "lei", typed) == [sid(f"lei:{BANK}")]


@pytest.mark.parametrize("typed", ["JSE:THV", "jse:thv", "XJSE:THV", "xjse:thv"])
def test_a_ticker_is_found_by_the_exchange_name_or_its_mic(live: LiveServer, sample: str, typed: str) -> None:
    assert ids_of(live, sample, "ticker", typed) == [sid(f"lei:{BREWER}")]


@pytest.mark.rule("CROSS-4")
@pytest.mark.parametrize("typed", ["THV", ":THV", "JSE:", ":"])
def test_a_ticker_without_its_exchange_is_a_400(live: LiveServer, sample: str, typed: str) -> None:
    answer = live.get(f"/v1/crosswalk?id_type=ticker&id_value={quote(typed)}", sample)
    assert (answer.status_code, answer.json()["parameter"]) == (400, "id_value")


@pytest.mark.rule("CROSS-2")
def test_paid_kinds_are_looked_up_on_a_paid_tier(live: LiveServer, paid: str) -> None:
    assert ids_of(live, paid, "isin", HELD.lower()) == [sid(f"lei:{BANK}")]
    assert ids_of(live, paid, "registry", "rc4411") == [sid(f"lei:{BANK}")]
    assert ids_of(live, paid, "aggregator", "SN/12345") == [sid(f"lei:{MINER}")]


@pytest.mark.rule("CROSS-2")
@pytest.mark.parametrize("id_type", ["registry", "aggregator", "isin", "figi"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_paid_lookup_on_the_sample_tier_is_a_402_with_the_link(
    live: LiveServer, sample: str, id_type: str, method: str
) -> None:
    headers = {"X-API-Key": sample}
    for name in (id_type, quote(id_type, safe="").replace("i", "%69")):
        answer = live.http.request(method, f"/v1/crosswalk?id_type={name}&id_value=1", headers=headers)
        assert answer.status_code == 402
        assert answer.headers["x-upgrade-url"]
    if method == "GET":
        upper = live.get(f"/v1/crosswalk?id_type={id_type.upper()}&id_value=1", sample)
        assert (upper.status_code, upper.json()["parameter"]) == (400, "id_type")


@pytest.mark.rule("CROSS-3")
def test_a_registry_number_held_by_many_is_ambiguous_and_limited_to_twenty(
    live: LiveServer, paid: str
) -> None:
    body = lookup(live, paid, "registry", "777")
    assert (body["count"], body["ambiguous"], body["truncated"]) == (20, True, True)
    ids = ids_of(live, paid, "registry", "777")
    assert ids == sorted(ids)
    assert set(ids) < {sid(f"lei:{lei(f'SHARED{n}')}") for n in range(25)}


@pytest.mark.rule("PAR-6")
def test_a_cursor_leads_to_the_remaining_matches(live: LiveServer, paid: str) -> None:
    path = "/v1/crosswalk?id_type=registry&id_value=777"
    first = live.get(path, paid).json()
    assert first["count"] == 20
    rest = live.get(f"{path}&limit=20&cursor={first['next_cursor']}", paid).json()
    assert (rest["ambiguous"], rest["truncated"], rest["next_cursor"]) == (True, False, None)
    refused = live.get(f"{path}&limit=21", paid)
    assert (refused.status_code, refused.json()["parameter"]) == (400, "limit")
    ids = [row["service_id"] for row in (*first["data"], *rest["data"])]
    assert ids == sorted(sid(f"lei:{lei(f'SHARED{n}')}") for n in range(25))
    other = live.get(f"/v1/crosswalk?id_type=lei&id_value={BREWER}&cursor={first['next_cursor']}", paid)
    assert (other.status_code, other.json()["parameter"]) == (400, "cursor")


def test_a_number_in_two_registers_of_one_organisation_is_not_ambiguous(live: LiveServer, paid: str):
    body = lookup(live, paid, "registry", "2001/000777/07")
    assert (body["count"], body["ambiguous"]) == (1, False)
    assert ids_of(live, paid, "registry", "2001/000777/07") == [sid(f"lei:{BREWER}")]


@pytest.mark.rule("PAR-9")
def test_an_unknown_identifier_is_no_rows_and_not_ambiguous(live: LiveServer, paid: str) -> None:
    for id_type in ("lei", "registry", "isin", "figi", "aggregator"):
        body = lookup(live, paid, id_type, "NOBODY")
        assert (body["count"], body["ambiguous"], body["truncated"]) == (0, False, False)


@pytest.mark.rule("ENT-7")
def test_an_isin_claimed_by_two_leis_is_left_unresolved(live: LiveServer, paid: str) -> None:
    assert ids_of(live, paid, "isin", DISPUTED) == []
    for number in (BREWER, BANK):
        assert DISPUTED not in live.get(f"/v1/crosswalk/{sid(f'lei:{number}')}", paid).text
    assert sid(f"lei:{BREWER}") != sid(f"lei:{BANK}")


def test_a_lei_stays_with_its_organisation_although_another_claims_it(live: LiveServer, sample: str) -> None:
    assert ids_of(live, sample, "lei", LAPSED) == [sid(f"lei:{LAPSED}")]
    assert LAPSED not in live.get(f"/v1/crosswalk/{sid(f'lei:{MINER}')}", sample).text


def test_a_sole_proprietor_is_never_found(live: LiveServer, paid: str) -> None:
    assert live.get(f"/v1/crosswalk/{sid(f'lei:{PERSON}')}", paid).status_code == 404
    assert live.get(f"/v1/entities/{sid(f'lei:{PERSON}')}", paid).status_code == 404
    assert ids_of(live, paid, "lei", PERSON) == ids_of(live, paid, "ticker", "JSE:QZM") == []
    assert ids_of(live, paid, "registry", "42") == []
    for query in (PERSON, "Quentin Zebulon Marchbanks", "JSE:QZM", "42"):
        answer = str(live.tool("search_entities", paid, {"query": query})["data"])
        assert not [text for text in ("Marchbanks", sid(f"lei:{PERSON}")) if text in answer]


@pytest.mark.rule("CROSS-5", "LOCK-2")
def test_there_are_no_rows_without_identifiers_or_before_the_first_day(tmp_path: Path) -> None:
    csv, listed = tmp_path / "a.csv", tmp_path / "listed.csv"
    csv.write_text(
        "entity,line_item,value,currency,period_end,available_at,document\n"
        "registry:ZA-CIPC:2001/1/07,revenue,5,ZAR,2023-12-31,2024-03-01,doc\n"
    )
    listed.write_text(
        "entity,id_type,id_value,registry,from\nregistry:ZA-CIPC:2001/1/07,ticker,JSE:ONE,,2024-06-01\n"
    )
    home = tmp_path / "home"
    succeed(home, "ingest", "filings", csv)
    succeed(home, "publish")
    path = f"/v1/crosswalk/{sid('registry:ZA-CIPC:2001/1/07')}"
    with LiveServer(home) as server:
        body = server.get(path, "sankofa-sandbox").json()
        assert (body["crosswalk_loaded"], body["withheld_id_types"]) == (False, ["registry"])
        succeed(home, "ingest", "identifiers", listed)
        succeed(home, "publish")
        until(lambda: server.get(path, "sankofa-sandbox").json()["crosswalk_loaded"])
        for day, loaded in (("2024-05-31", False), ("2024-06-01", True)):
            inside = server.get(f"/at/{day}{path}", "sankofa-sandbox").json()
            assert (inside["crosswalk_loaded"], len(inside["data"])) == (loaded, int(loaded))
