"""Sit the exam: a small agent that answers each question with the tools of the MCP server, and its score.

    python examples/as-of-exam/agent.py KEY [--url URL] [--without-the-day] [--answers FILE]

It reads the question, calls one or two tools and takes the figure from the answer. It never names a day:
inside `/at/DAY/mcp` it cannot see beyond it. `--without-the-day` asks `/mcp` instead, as an agent does that
forgot the date. Needs `mcp`, which brings httpx2.
"""

import argparse
import asyncio
import json
import re
import runpy
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

QUESTIONS = Path(__file__).with_name("questions.jsonl")
UNKNOWN = "not known on that day"
INCOME = ("revenue", "profit", "operating_profit")
PATTERNS = {
    "figure": (
        r"On \S+, what (?P<item>\w+) in (?P<unit>\S+) had (?P<name>.+) reported"
        r" for the year ended (?P<end>\S+)\?"
    ),
    "metric": r"On \S+, what was the (?P<metric>\w+) of (?P<name>.+)\?",
    "series": r"As known on \S+, what was (?P<series>\S+) for (?P<date>\S+)\?",
    "tender": r"By \S+, how many releases of (?P<ocid>\S+) had been published in (?P<country>\w+)\?",
    "name": r"On \S+, which company was known under the SEC's number (?P<cik>\d+)\?",
    "identifier": r"On \S+, how many figures of (?P<name>.+) were public\?",
}


class Agent:
    """Answers questions about one day, or about today."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def answer(self, question: str) -> str:
        """The figure, or that it was not known."""
        for kind, pattern in PATTERNS.items():
            if match := re.fullmatch(pattern, question):
                figure = await getattr(self, f"_{kind}")(**match.groupdict())
                return UNKNOWN if figure is None else str(figure)
        raise ValueError(f"no such question: {question}")

    async def _call(self, tool: str, **arguments: Any) -> list[dict[str, Any]]:
        """The rows of a tool, all pages of them; none where it refuses."""
        rows: list[dict[str, Any]] = []
        while True:
            result = await self._client.call_tool(tool, arguments)
            if result.is_error:
                return rows
            text: str = result.content[0].text  # type: ignore[union-attr]
            body = json.loads(text, parse_float=str, parse_int=str)
            rows += body["data"]
            if not body.get("next_cursor"):
                return rows
            arguments["cursor"] = body["next_cursor"]

    async def _company(self, name: str) -> str | None:
        result = await self._client.call_tool("search_entities", {"query": name, "limit": 5})
        hits = (result.structured_content or {}).get("data", [])
        return next((hit["service_id"] for hit in hits if hit["legal_name"] == name), None)

    async def _figure(self, item: str, unit: str, name: str, end: str) -> str | None:
        company = await self._company(name)
        if company is None:
            return None
        kind = "income" if item in INCOME else "balance"
        rows = await self._call("get_statement", service_id=company, period_type="FY", kind=kind)
        identity = item, end, unit
        return next(
            (r["value_reported"] for r in rows if (r["line_item"], r["period_end"], r["unit"]) == identity),
            None,
        )

    async def _metric(self, metric: str, name: str) -> str | None:
        company = await self._company(name)
        rows = await self._call("get_metrics", service_id=company, metric=metric) if company else []
        return rows[0]["value"] if rows else None

    async def _series(self, series: str, date: str) -> str | None:
        rows = await self._call("get_macro", series=series, from_date=date, to_date=date)
        return rows[0]["value"] if rows else None

    async def _tender(self, ocid: str, country: str) -> str:
        return str(len(await self._call("search_tenders", country=country, ocid=ocid, limit=100)))

    async def _name(self, cik: str) -> str | None:
        rows = await self._call("lookup_identifier", id_type="registry", id_value=cik)
        return rows[0]["legal_name"] if rows else None

    async def _identifier(self, name: str) -> str | None:
        company = await self._company(name)
        if company is None:
            return None
        for row in await self._call("list_issuers"):
            if row["service_id"] == company:
                return str(row["fact_count"])
        return None


async def sit(key: str, url: str, *, locked: bool = True) -> dict[int, str]:
    """The answer to each question, by its id."""
    by_day = defaultdict[str, list[dict[str, Any]]](list)
    for line in QUESTIONS.read_text().splitlines():
        one = json.loads(line)
        by_day[one["day"] if locked else ""].append(one)
    answers = {}
    async with httpx2.AsyncClient(headers={"x-api-key": key}, timeout=60) as http:
        for day, questions in sorted(by_day.items()):
            address = f"{url}/at/{day}/mcp" if day else f"{url}/mcp"
            async with Client(streamable_http_client(address, http_client=http)) as client:
                agent = Agent(client)
                for one in questions:
                    answers[one["id"]] = await agent.answer(one["question"])
    return answers


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("key")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--without-the-day", action="store_true", help="Ask /mcp instead of /at/DAY/mcp.")
    parser.add_argument("--answers", type=Path, help="Also write the answers to this file.")
    options = parser.parse_args()
    answers = asyncio.run(sit(options.key, options.url, locked=not options.without_the_day))
    if options.answers:
        lines = [json.dumps({"id": number, "answer": answers[number]}) for number in sorted(answers)]
        options.answers.write_text("\n".join(lines) + "\n")
    score = runpy.run_path(str(QUESTIONS.with_name("score.py")))
    score["show"](*score["score"](answers))


if __name__ == "__main__":
    main()
