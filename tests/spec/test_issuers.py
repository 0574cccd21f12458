"""GET /v1/issuers: the universe as it was known on a day."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.live import LiveServer

FIELDS = set(
    "service_id legal_name country lei listings first_available last_available fact_count source_ref "
    "license_class observed_at".split()
)
Rows = list[dict[str, Any]]


def universe(server: LiveServer, key: str, query: str = "") -> Rows:
    return server.rows(f"/v1/issuers?limit=1000&{query}", key)


@pytest.mark.rule("ISS-2")
def test_rows_have_the_documented_fields_and_order(server: LiveServer, paid_key: str) -> None:
    rows = universe(server, paid_key)
    assert all(set(row) == FIELDS for row in rows)
    order = [(row["country"] or "~", row["service_id"]) for row in rows]
    assert order == sorted(order)
    assert len({row["service_id"] for row in rows}) == len(rows)
    for row in rows:
        entity = server.rows(f"/v1/entities/{row['service_id']}", paid_key)[0]
        same = ("legal_name", "country", "lei", "listings")
        assert {name: row[name] for name in same} == {name: entity[name] for name in same}


@pytest.mark.rule("ISS-2")
def test_issuers_can_be_filtered_by_country_and_exchange(server: LiveServer, paid_key: str) -> None:
    everybody = universe(server, paid_key)
    for country in {row["country"] for row in everybody if row["country"]}:
        assert universe(server, paid_key, f"country={country.lower()}") == [
            row for row in everybody if row["country"] == country
        ]
    on_jse = [row for row in everybody if any(one["exchange"] == "JSE" for one in row["listings"])]
    assert len(on_jse) > 1
    assert universe(server, paid_key, "exchange=JSE") == on_jse
    assert universe(server, paid_key, "exchange=xjse") == on_jse
    assert universe(server, paid_key, "exchange=JSE&country=ZA") == [
        row for row in on_jse if row["country"] == "ZA"
    ]
    assert universe(server, paid_key, "exchange=NONE") == universe(server, paid_key, "country=AQ") == []


@pytest.mark.rule("ISS-1", "PIT-2")
def test_the_envelope_states_the_day_and_a_future_day_is_refused(server: LiveServer, paid_key: str) -> None:
    assert server.body("/v1/issuers?as_of=2023-06-30", paid_key)["as_of"] == "2023-06-30"
    now = server.body("/v1/issuers", paid_key)
    assert universe(server, paid_key, f"as_of={now['as_of']}") == now["data"]
    later = datetime.now(UTC).date() + timedelta(days=2)
    assert server.get(f"/v1/issuers?as_of={later}", paid_key).status_code == 400
    assert server.get("/v1/issuers?asof=2023-06-30", paid_key).json()["parameter"] == "asof"
