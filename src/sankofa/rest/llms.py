"""/llms.txt: the service in one page, for a model that has seen nothing else of it (llmstxt.org)."""

from sankofa.model.provenance import LICENSE_NOTICE
from sankofa.operations.contract import endpoints, operations
from sankofa.settings import Settings


def guide_for_models(settings: Settings) -> str:
    """What is here, how to present a key, and where each thing is asked for."""
    base_url, sandbox = settings.base_url, settings.sandbox_key
    key = f" `{sandbox}` works without signing up, for a few rows." if sandbox else ""
    tools = "\n".join(f"- `{o.tool}`: {o.summary}" for o in operations() if o.tool)
    paths = "\n".join(f"- [{o.path}]({base_url}{o.path}): {o.summary}" for o in endpoints())
    return f"""\
# Sankofa

> Point-in-time data on African and emerging-market companies, public tenders and economies. Every row names \
its source, licence class and time of observation; nothing is estimated; `as_of=YYYY-MM-DD` gives what was \
knowable on that day.

A key is sent as `X-API-Key: KEY` or `Authorization: Bearer KEY`, the same for REST and MCP.{key} Answers \
are JSON, or CSV and Arrow with `?format=csv` and `?format=arrow`. A list has `data` (`observations` on \
signals), `count`, `truncated` and `next_cursor`; pass that back as `cursor` with the same filters for the \
next page. Errors are RFC 9457 problems: `parameter` names what is wrong, 402 means the tier does not cover \
it, 429 means wait.

{LICENSE_NOTICE}

## MCP

Streamable HTTP at {settings.public_mcp_url}/mcp. Tools, each read-only:

{tools}

## REST

{paths}

## More

- [OpenAPI 3.1]({base_url}/openapi.json): every parameter and field
- [Files]({base_url}/v1/export): Parquet in bulk, open panels without a key
"""
