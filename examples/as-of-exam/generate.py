"""Write the exam: 500 questions about the starter world whose right answer depends on the day.

    python examples/as-of-exam/generate.py KEY [URL] > examples/as-of-exam/questions.jsonl

KEY is of the tier starter or above; URL is a service with the starter world (`sankofa starter`). The answers
come from the API with `as_of`, not from locked views, so the exam also checks those. The seed is fixed: the
same data gives the same questions.
"""

import json
import random
import sys
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import httpx

UNKNOWN = "not known on that day"
COUNTS = {
    "figure": 130,
    "metric": 90,
    "series": 120,
    "tender": 50,
    "name": 30,
    "identifier": 20,
    "absence": 60,
}
METRICS = ("net_margin", "revenue_growth", "return_on_equity", "debt_to_equity", "current_ratio")
ITEMS = ("revenue", "profit", "assets", "equity", "operating_profit", "cash")
Question = dict[str, Any]


class Source:
    """The service that the questions are about."""

    def __init__(self, key: str, url: str) -> None:
        self._http = httpx.Client(base_url=url, headers={"x-api-key": key}, timeout=60)

    def rows(self, path: str, **query: Any) -> list[dict[str, Any]]:
        answer = self._http.get(path, params={k: v for k, v in query.items() if v is not None})
        answer.raise_for_status()
        return list(json.loads(answer.text, parse_float=str, parse_int=str)["data"])


def figure(
    source: Source, chance: random.Random, issuers: list[dict[str, Any]], *, is_public: bool
) -> Question | None:
    """A figure that was restated, on a day before or after; or one that was not public yet."""
    issuer = chance.choice(issuers)
    item = chance.choice(ITEMS)
    every = source.rows("/v1/restatements", service_id=issuer["service_id"], line_item=item, limit=50)
    years = [one for one in every if one["period_start"] and _is_year(one)]
    if not years:
        return None
    one = chance.choice(years)
    end = one["period_end"]
    first = date.fromisoformat(one["available_before"])
    if is_public:
        changed = date.fromisoformat(one["available_at"])
        day = first + timedelta(days=chance.randrange(max((changed - first).days, 1)))
    else:
        day = first - timedelta(days=chance.randrange(1, 60))
    statement = source.rows(f"/v1/statements/{issuer['service_id']}", as_of=day, period_type="FY")
    identity = item, end, one["unit"]
    row = next((r for r in statement if (r["line_item"], r["period_end"], r["unit"]) == identity), None)
    if (row is not None) != is_public:
        return None
    question = f"what {item} in {one['unit']} had {issuer['legal_name']} reported for the year ended {end}?"
    return {
        "kind": "figure" if is_public else "absence",
        "day": str(day),
        "question": f"On {day}, {question}",
        "answer": row["value_reported"] if row else UNKNOWN,
    }


def _is_year(one: dict[str, Any]) -> bool:
    return (
        350 <= (date.fromisoformat(one["period_end"]) - date.fromisoformat(one["period_start"])).days <= 380
    )


def metric(source: Source, chance: random.Random, issuers: list[dict[str, Any]]) -> Question | None:
    """A metric as it was known on a day."""
    issuer, name, day = chance.choice(issuers), chance.choice(METRICS), _day(chance, 2012, 2024)
    rows = source.rows(f"/v1/metrics/{issuer['service_id']}", metric=name, as_of=day, basis="as_known")
    if not rows:
        return None
    text = f"On {day}, what was the {name} of {issuer['legal_name']}?"
    return {"kind": "metric", "day": str(day), "question": text, "answer": rows[0]["value"]}


def series(source: Source, chance: random.Random, keys: list[str]) -> Question | None:
    """A value of a series that was revised, on one of its days."""
    key = chance.choice(keys)
    days = [row["release_date"] for row in source.rows(f"/v1/series/{key}/vintages", limit=200)]
    if len(days) < 2:
        return None
    day = chance.choice(days)
    values = source.rows("/v1/macro", series=key, as_of=day, limit=30)
    if not values:
        return None
    value = chance.choice(values)
    if value["value"] is None:
        return None
    text = f"As known on {day}, what was {key} for {value['date']}?"
    return {"kind": "series", "day": day, "question": text, "answer": value["value"]}


def tender(source: Source, chance: random.Random, processes: list[tuple[str, str]]) -> Question:
    """How much of a contracting process was published by a day."""
    country, ocid = chance.choice(processes)
    days = [
        row["release_date"][:10]
        for row in source.rows("/v1/tenders", country=country, ocid=ocid, detail="compact")
    ]
    day = date.fromisoformat(chance.choice(days)) - timedelta(days=chance.choice((0, 0, 1)))
    text = f"By {day}, how many releases of {ocid} had been published in {country}?"
    return {
        "kind": "tender",
        "day": str(day),
        "question": text,
        "answer": str(sum(one <= str(day) for one in days)),
    }


def identifier(source: Source, chance: random.Random, issuers: list[dict[str, Any]]) -> Question | None:
    """Whether an issuer was known at all on a day."""
    issuer = chance.choice(issuers)
    first = date.fromisoformat(issuer["first_available"])
    day = first + timedelta(days=chance.choice((-30, -1, 0, 30)))
    listed = source.rows("/v1/issuers", as_of=day, limit=10_000)
    counts = [one["fact_count"] for one in listed if one["service_id"] == issuer["service_id"]]
    text = f"On {day}, how many figures of {issuer['legal_name']} were public?"
    return {
        "kind": "identifier",
        "day": str(day),
        "question": text,
        "answer": counts[0] if counts else UNKNOWN,
    }


def name(source: Source, chance: random.Random, issuers: list[dict[str, Any]]) -> Question | None:
    """Which company an identifier belonged to, a few days before or after the company was first known."""
    issuer = chance.choice(issuers)
    own = source.rows(f"/v1/crosswalk/{issuer['service_id']}")
    cik = next((one["id_value"] for one in own if one["scheme"] == "US-SEC-CIK"), None)
    if cik is None:
        return None
    days = chance.choice((-400, -30, -1, 0, 30))
    day = date.fromisoformat(issuer["first_available"]) + timedelta(days=days)
    found = source.rows("/v1/crosswalk", id_type="registry", id_value=cik, as_of=day)
    return {
        "kind": "name",
        "day": str(day),
        "question": f"On {day}, which company was known under the SEC's number {cik}?",
        "answer": found[0]["legal_name"] if found else UNKNOWN,
    }


def _day(chance: random.Random, first: int, last: int) -> date:
    return date(first, 1, 1) + timedelta(days=chance.randrange((last - first) * 365))


def questions(source: Source) -> Iterator[Question]:
    chance = random.Random(20261117)  # noqa: S311 - the same questions each time
    issuers = [one for one in source.rows("/v1/issuers", limit=10_000) if one["legal_name"]]
    names = [one["legal_name"] for one in issuers]
    issuers = [one for one in issuers if names.count(one["legal_name"]) == 1]
    listed = source.rows("/v1/series", limit=10_000)
    keys = [one["series"] for one in listed if int(one["vintages"]) > 1]
    processes = list(
        {
            (country, row["ocid"])
            for country in ("NG", "ZA", "KE")
            for row in source.rows("/v1/tenders", country=country, limit=300, detail="compact")
        }
    )
    processes.sort()
    make: dict[str, Callable[[], Question | None]] = {
        "figure": lambda: figure(source, chance, issuers, is_public=True),
        "metric": lambda: metric(source, chance, issuers),
        "series": lambda: series(source, chance, keys),
        "tender": lambda: tender(source, chance, processes),
        "name": lambda: name(source, chance, issuers),
        "identifier": lambda: identifier(source, chance, issuers),
        "absence": lambda: figure(source, chance, issuers, is_public=False),
    }
    used: set[str] = set()
    for kind, count in COUNTS.items():
        remaining = count
        while remaining:
            one = make[kind]()
            if one is not None and one["question"] not in used:
                used.add(one["question"])
                remaining -= 1
                yield one


def main(key: str, url: str = "http://127.0.0.1:8000") -> None:
    for number, one in enumerate(questions(Source(key, url)), 1):
        print(json.dumps({"id": number, **one}, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
