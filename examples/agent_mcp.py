"""For a developer of agents: the same data as tools, over MCP, with the official SDK.

    python examples/agent_mcp.py KEY [URL]

An agent finds an organisation by name and asks what was known of it on a day. If its tier is not enough, the
answer says what to do. Needs `mcp`, which brings httpx2.
"""

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer of a tool: the same body as the endpoint's, or the problem."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        problem: dict[str, Any] = json.loads(result.content[0].text)  # type: ignore[union-attr]
        return problem
    return dict(result.structured_content or {})


async def main(key: str, url: str) -> None:
    async with (
        httpx2.AsyncClient(headers={"x-api-key": key}) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        tools = (await client.list_tools()).tools
        print("tools:", ", ".join(sorted(tool.name for tool in tools)))

        hits = await call(client, "search_entities", query="gold fields")
        best = hits["data"][0]
        print(f"found: {best['legal_name']} ({best['service_id']}), by {best['match']['on']}")

        for day in ("2013-12-31", "2021-07-31"):
            answer = await call(
                client,
                "get_fundamentals",
                service_id=best["service_id"],
                as_of=day,
                period_type="FY",
                line_items=["income_tax"],
            )
            row = next(row for row in answer["data"] if row["fiscal_year"] == 2012)
            print(
                f"as of {day}: income tax of 2012 was {row['value_reported']} {row['currency_reported']},"
                f" vintage {row['vintage']}, from {row['source_ref']}"
            )

        (rate,) = (
            await call(client, "get_cross_rates", base="NGN", quote="KES", as_of="2024-06-30", limit=1)
        )["data"]
        inputs = " and ".join(one["series"] for one in rate["inputs"])
        print(f"{rate['date']}: {rate['value']} {rate['unit']}, {rate['method']} from {inputs}")

        refused = await call(client, "search_tenders", country="ZA", limit=1000)
        if "upgrade" in refused:
            print(f"refused with {refused['status']}: {refused['detail']}")
            print(f"what to tell the user: {refused['upgrade']['checkout_url']}")
        else:
            print(f"tenders: {refused['count']}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "http://127.0.0.1:8000"))
