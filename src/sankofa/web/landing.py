"""The page at /: what this is, and the first thing to try."""

import html
from importlib.resources import files

from sankofa.operations.contract import endpoints
from sankofa.settings import Settings

_PAGE = files("sankofa.web").joinpath("landing.html").read_text()


def landing_page(settings: Settings, example_id: str | None) -> bytes:
    """The page as bytes; the example names an organisation that is really there."""
    key = settings.sandbox_key or "YOUR_KEY"
    path = f"/v1/fundamentals/{example_id}" if example_id else "/v1/status"
    example = f"curl -H 'X-API-Key: {key}' {settings.base_url}{path}"
    rows = "".join(
        f"<tr><td><code>{html.escape(o.path)}</code></td><td>{html.escape(o.summary)}</td></tr>"
        for o in endpoints()
    )
    page = _PAGE.format(example=html.escape(example), rows=rows, mcp=html.escape(settings.public_mcp_url))
    return page.encode()
