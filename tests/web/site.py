"""Shared by tests of pages: the list of pages, an HTML parser, and a world with hostile names."""

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from sankofa.model.identifiers import service_id
from tests.live import succeed
from tests.spec.register import COLUMNS, lei, record

ISSUER = "DC0DBD6CD9CB9E410EE2BEEB08"
"""Kilimani Sample Cement: its profit of 2022 was restated twice."""
COMPANY = f"/company/{ISSUER}"
BROWSER = {"accept": "text/html,application/xhtml+xml"}
PAGES = (
    "/",
    "/search?q=sample",
    "/companies",
    f"/company/{ISSUER}?as_of=2024-06-01",
    f"/company/{ISSUER}/figure?line_item=profit&period_end=2022-12-31",
    "/country/ZA",
    "/macro",
    "/macro?q=gdp&country=ZA",
    "/macro/series/CPI.ZA?as_of=2023-05-31",
    "/macro/indicator/NY.GDP.MKTP.CD",
    "/tenders?country=KE",
    "/parties?country=KE",
    "/screen?metric=net_margin&as_of=2024-12-31&beside=2023-12-31",
    "/restatements",
    "/compare?measure=revenue&a=kilimani&b=riftline&scale=index",
    "/signals",
    "/signals/procurement-demand",
    "/signals/fundamentals-revisions",
    "/quality",
    "/downloads",
    "/editions",
    "/sources",
    "/coverage",
    "/status",
    "/key",
    "/use",
    "/docs",
    "/docs/api",
    "/docs/api/get_fundamentals",
    "/docs/reference/line-items?page=2",
    "/docs/readme",
    "/docs/explanation/ideas",
    "/docs/how-to/agents",
)
SOME_PAGES = (f"/company/{ISSUER}?as_of=2024-06-01", "/macro/series/CPI.ZA?as_of=2023-05-31")
"""A table with restated figures, and a chart."""
HOSTILE_NAME = "Zebra <script>alert('name')</script> & \"Sons\" Ltd"
HOSTILE_TITLE = "Roads \"><img src=x onerror=alert('title')> of Zebra"
ZEBRA = lei("ZEBRA")
ZEBRA_ID = service_id(f"lei:{ZEBRA}")
_SOURCES = """
[sources.portal]
adapter = "ocds"
sku = "AF-TENDER"
country = "ZA"
license_class = "open-government"
commercial_redistribution = true

[sources.reports]
adapter = "filings-csv"
sku = "AF-FUND"
license_class = "statutory-filing"
commercial_redistribution = true
"""


@dataclass
class Element:
    """An element of a page: its name, attributes and the text in it."""

    name: str
    attributes: dict[str, str]
    text: str = ""
    inside: tuple[str, ...] = ()


@dataclass
class Html(HTMLParser):
    """Every element of a page, in order. Parsing fails if elements are not well nested."""

    elements: list[Element] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)
    _VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())

    def __post_init__(self) -> None:
        super().__init__()

    @classmethod
    def of(cls, text: str) -> "Html":
        page = cls()
        page.feed(text)
        page.close()
        assert not page._open, f"never closed: {[e.name for e in page._open]}"
        return page

    def all(self, name: str, **attributes: str) -> list[Element]:
        """All elements with that name and these attributes."""
        expected = {key.replace("_", "-"): value for key, value in attributes.items()}
        return [
            e
            for e in self.elements
            if e.name == name and all(e.attributes.get(key) == value for key, value in expected.items())
        ]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        path = tuple(element.name for element in self._open)
        element = Element(tag, {key: value or "" for key, value in attrs}, inside=path)
        self.elements.append(element)
        if tag not in self._VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        path = tuple(element.name for element in self._open)
        self.elements.append(Element(tag, {key: value or "" for key, value in attrs}, inside=path))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1].name == tag, f"</{tag}> closes <{self._open[-1].name}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data


def figures(text: str) -> dict[tuple[str, str, str], tuple[str, bool]]:
    """A statement: the value of each line item and period, and the mark "restated"."""
    cells = {}
    for cell in re.findall(r'<td class="n">(.*?)</td>', text, re.DOTALL):
        page = Html.of(cell)
        if not page.all("a"):
            continue
        address = page.all("a")[0].attributes["href"]
        parts = dict(part.split("=", 1) for part in address.partition("?")[2].split("&"))
        (value,) = page.all("data")
        marked = page.all("mark")
        assert not marked or "restated" in marked[0].text
        cells[parts["line_item"], parts["period_end"], parts.get("period_start", "")] = (
            value.attributes["value"],
            bool(marked),
        )
    return cells


def publish_hostile_world(home: Path) -> None:
    """An organisation and a tender with markup in their names; a second edition restates a figure."""
    home.mkdir(parents=True)
    (home / "sources.toml").write_text(_SOURCES)
    registers = home.parent / "lei.csv"
    name = HOSTILE_NAME.replace('"', '""')
    registers.write_text(f"{COLUMNS}\n{record(ZEBRA, name, 'ZA', 'RA990300:1')}\n")
    reports = home.parent / "reports.csv"
    reports.write_text(
        "entity,line_item,value,currency,period_start,period_end,available_at,document,location\n"
        f"lei:{ZEBRA},revenue,1200000,ZAR,2024-01-01,2024-12-31,2025-03-31,<b>afs</b>,p. 10\n"
        f"lei:{ZEBRA},revenue,1250000,ZAR,2024-01-01,2024-12-31,2026-03-31,afs-2025,p. 11\n"
    )
    releases = home.parent / "releases.json"
    city = {"id": "city", "name": "City of <i>Zebra</i> Metropolitan Municipality", "roles": ["buyer"]}
    release = {
        "ocid": "ocds-zebra-1",
        "id": "zebra-1",
        "date": "2025-06-01T10:00:00Z",
        "tag": ["tender"],
        "buyer": {"id": "city", "name": city["name"]},
        "parties": [city],
        "tender": {"id": "1", "title": HOSTILE_TITLE},
    }
    later = {**release, "id": "zebra-2", "date": "2025-07-01T10:00:00Z"}
    later["tender"] = {"id": "1", "title": HOSTILE_TITLE, "status": "active"}
    releases.write_text(
        json.dumps({"uri": "https://example.org", "version": "1.1", "releases": [release, later]})
    )
    restated = home.parent / "restated.csv"
    restated.write_text(
        "entity,line_item,value,currency,period_start,period_end,available_at,document,location\n"
        f"lei:{ZEBRA},revenue,1300000,ZAR,2024-01-01,2024-12-31,2026-06-30,afs-2026,p. 12\n"
    )
    for arguments in (
        ("ingest", "gleif-lei", registers),
        ("ingest", "reports", reports),
        ("ingest", "portal", releases),
        ("publish",),
        ("ingest", "reports", restated),
        ("publish",),
    ):
        succeed(home, *arguments)
