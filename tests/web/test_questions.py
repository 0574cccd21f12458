"""Questions of visitors, each answered within three clicks from the first page.

A click is a followed link or a submitted form. No script is needed, so none runs.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.live import LiveServer
from tests.web.site import Element, Html

pytestmark = pytest.mark.ci

Step = str | tuple[str, dict[str, str]]
"""A link by the beginning of its words or of its address, or a form by its address and what is typed in."""
_MOST_CLICKS = 3
_FIND = "/search"
_GOLD_FIELDS: list[Step] = [(_FIND, {"q": "gold fields"}), "Gold Fields Limited"]
_GDP_THEN = {"measure": "NY.GDP.MKTP.CD", "a": "Nigeria", "b": "South Africa", "as_of": "2013-12-31"}
QUESTIONS: dict[str, tuple[list[Step], list[str]]] = {
    "how much was Nigeria's GDP of 2010 said to be in 2013": (
        ["/macro/series/", ("/macro/series/", {"as_of": "2013-12-31"})],
        ["228637855746.94"],
    ),
    "and how far was that off": (["/macro/series/"], ["In percent", "2010"]),
    "how large were Nigeria and South Africa in 2011, as known in 2013": (
        ["/compare", ("/compare", _GDP_THEN)],
        ["243985812280.317", "408236752339.756"],
    ),
    "how fast do prices rise in South Africa": (["/country/ZA"], ["3.206", "2025"]),
    "how large is Nigeria's economy": (
        [(_FIND, {"q": "Nigeria GDP"}), "GDP (current US$)"],
        ["Nigeria: GDP (current US$)", "290794361542.112"],
    ),
    "how many people live in Nigeria": (["/country/NG"], ["237.5M"]),
    "how many are out of work in South Africa": (["/country/ZA"], ["32.39"]),
    "what does a dollar cost in rand": (["/country/ZA"], ["16.44012275", "Sep 29, 2026"]),
    "what does a dollar cost in naira": (
        ["/country/NG", "Naira (NGN) for one US Dollar (USD), daily"],
        ["NGN"],
    ),
    "what is South Africa's policy rate": (
        [(_FIND, {"q": "policy rate south africa"}), "Policy rate, South Africa"],
        ["Policy rate", "As known on"],
    ),
    "what is the price of gold": (
        [(_FIND, {"q": "commodity gold"}), "/macro/series/COMMODITY.GOLD"],
        ["4,228", "per troy oz"],
    ),
    "what are Nigeria's consumer prices": ([(_FIND, {"q": "CPI.NG"}), "/macro/series/CPI.NG"], ["135.3846"]),
    "how fresh are the figures of Nigeria": (["/country/NG"], ["days ago"]),
    "what was Gold Fields' revenue of 2020": (_GOLD_FIELDS, ["3892100000", "3,892"]),
    "what is its debt": (_GOLD_FIELDS, ["1526900000"]),
    "and which filing says so": (
        [*_GOLD_FIELDS, "Total debt"],
        ["Borrowings", "1526900000", "0001193125-21-101972"],
    ),
    "how profitable is it beside others of the country": (_GOLD_FIELDS, ["Net margin", "19.2"]),
    "what was its profit, as known in 2016": (
        [*_GOLD_FIELDS, ("/company/", {"as_of": "2016-12-31"})],
        ["As known on Dec 31, 2016", "FY 2015"],
    ),
    "what did the statement say on another day": (
        [*_GOLD_FIELDS, ("/company/", {"beside": "2016-12-31"})],
        ["Dec 31, 2016", 'class="statement beside"'],
    ),
    "which of its figures were restated": (_GOLD_FIELDS, ["466800000", "594400000"]),
    "which filing does the figure come from": (
        [*_GOLD_FIELDS, "/company/DC91D49F08F903ABF0D2E95294/figure?line_item=revenue"],
        ["https://www.sec.gov/Archives/edgar/data/1172724/000119312521101972/0001193125-21-101972-index.htm"],
    ),
    "what is its LEI": (_GOLD_FIELDS, ["5299003KXIBJQYCBBD72"]),
    "who trades as NYSE:GFI": ([(_FIND, {"q": "NYSE:GFI"})], ["Gold Fields Limited"]),
    "compare the debt of AngloGold and Gold Fields in 2016": (
        ["/compare", ("/compare", {"measure": "total_debt", "a": "anglogold", "b": "gold fields"})],
        ["2178000000", "1692900000"],
    ),
    "who has the best net margin in South Africa": (
        ["/screen", ("/screen", {"metric": "net_margin", "country": "ZA"})],
        ["0.2193358934", "AngloGold Ashanti"],
    ),
    "who restated figures lately": (["/restatements"], ["MIX TELEMATICS LTD", "1760000"]),
    "when does this tender close": (
        [(_FIND, {"q": "intersite"}), "/tender/ZA/ocds-9t57fa-166479"],
        ["closed Aug 28, 2026", "<h1>Passenger Rail Agency of South Africa: HO/INTERSITE/55/08/2026</h1>"],
    ),
    "what does Eskom buy": ([(_FIND, {"q": "eskom"}), "/tender/ZA/"], ["ESKOM", "data.etenders.gov.za"]),
    "what closed in the last week of August 2026": (
        [
            "/tenders",
            ("/tenders", {"country": "ZA", "closing_from": "2026-08-24", "closing_to": "2026-08-28"}),
        ],
        ["closed Aug 25, 2026", "HO/INTERSITE/55/08/2026"],
    ),
    "how much was awarded to Pekamol Ventures": (
        ["/country/NG", "/parties?country=NG", "/supplier/NG/Pekamol"],
        ["Processes with an award to this supplier: 7", "NGN"],
    ),
    "who supplies the Federal Capital Territory": (
        ["/country/NG", "/parties?country=NG", "/buyer/NG/FEDERAL%20CAPITAL"],
        ["Processes of this buyer: 85", "Concentration"],
    ),
    "may I reuse the World Bank's figures": (["/sources"], ["CC-BY-4.0", "World Development Indicators"]),
    "how do I read this from R": (["/use"], ["read.csv(url("]),
    "how many figures are there": (["/editions"], ["Reported figures"]),
}


@pytest.fixture(scope="module")
def site(starter_part_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """The starter world, or a part of it, for a visitor who opens many pages."""
    home = Path(shutil.copytree(starter_part_home, tmp_path_factory.mktemp("asked") / "home"))
    with LiveServer(home, per_minute_visitor="100000") as live:
        yield live


def followed(page: Html, address: str, step: Step) -> str:
    """The address behind a link of the page, or of one of its forms when filled in."""
    if isinstance(step, str):
        links = [link for link in page.all("a") if _leads(link, step)]
        assert links, f"no link {step!r} on {address}: {[link.text for link in page.all('a')][:60]}"
        return links[0].attributes["href"]
    action, typed = step
    forms = [form for form in page.all("form") if form.attributes.get("action", "").startswith(action)]
    fields = {e.attributes.get("name"): e for e in page.elements if e.name in ("input", "select")}
    assert forms, f"no form {action!r} on {address}"
    assert typed.keys() <= fields.keys(), f"no field for {typed.keys() - fields.keys()} on {address}"
    offered = {option.attributes["value"] for option in page.all("option")}
    chosen = {value for name, value in typed.items() if fields[name].name == "select"}
    assert chosen <= offered, f"{chosen - offered} is no choice on {address}"
    query = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in typed.items())
    return f"{forms[0].attributes['action']}?{query}"


def _leads(link: Element, step: str) -> bool:
    return link.attributes["href"].startswith(step) if step.startswith("/") else link.text.startswith(step)


@pytest.mark.rule("WEB-1")
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_within_three_clicks_of_the_first_page(site: LiveServer, question: str):
    steps, figures = QUESTIONS[question]
    assert len(steps) <= _MOST_CLICKS
    address = "/"
    answer = site.http.get(address)
    for step in steps:
        address = urljoin(address, followed(Html.of(answer.text), address, step))
        answer = site.http.get(address, follow_redirects=True)
        assert answer.status_code == 200, address
    text = answer.text + re.sub(r"<[^>]+>", " ", answer.text)
    assert [figure for figure in figures if figure not in text] == [], address
    assert len(answer.content) < 100_000


def test_the_first_page_and_the_list_of_editions_count_the_same_rows(site: LiveServer) -> None:
    home = Html.of(site.http.get("/").text)
    (counts,) = [e for e in home.all("dl") if "numbers" in e.attributes.get("class", "")]
    numbers = re.findall(r"\d[\d,]*", counts.text)
    assert len(numbers) == 4
    editions = site.http.get("/editions").text
    assert [number for number in numbers if f">{number}<" not in editions] == []


@pytest.mark.rule("WEB-1")
def test_pages_of_real_data_stay_small_for_a_paid_key(site: LiveServer) -> None:
    key = site.key("professional", "--per-minute", "100000")
    issuers = [row["service_id"] for row in site.get("/v1/issuers?limit=20", key).json()["data"]]
    assert issuers
    pages = [
        *(f"/company/{issuer}" for issuer in issuers),
        *(f"/company/{issuer}?beside=2018-06-30&period=quarter&kind=balance" for issuer in issuers),
        *(
            "/country/NG",
            "/macro/series/FX.USD.NGN",
            "/tenders?sort=closing",
            "/parties?country=NG&limit=1000",
        ),
        *("/search?q=Nigeria+GDP", "/signals/fundamentals-revisions", "/restatements", "/coverage"),
        *("/tenders?country=NG&limit=1000", "/tenders?country=ZA&limit=1000", "/screen?limit=1000"),
    ]
    sizes = {}
    for page in pages:
        for language in ("en", "ar"):
            answer = site.http.get(page, headers={"X-API-Key": key, "accept-language": language})
            assert answer.status_code == 200, page
            sizes[page, language] = len(answer.content)
    assert {page: size for page, size in sizes.items() if size >= 100_000} == {}


def test_a_search_names_a_series_by_what_it_measures(site: LiveServer) -> None:
    links = Html.of(site.http.get("/search?q=Nigeria+inflation").text).all("a")
    titles = {link.attributes["href"]: link.text for link in links}
    assert titles["/macro/series/WEO.PCPIPCH.NG"].startswith("Inflation of consumer prices")
