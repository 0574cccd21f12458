"""Companies and countries side by side, other axes, and charts embedded in other sites."""

import re

import pytest

from tests.live import LiveServer
from tests.web.site import BROWSER, ISSUER, Html

OTHER = "DC46AF1B1AAA424B58D1368176"


def drawn(page: str, number: int = 0) -> str:
    """The points of a line in the first chart of a page."""
    return str(re.findall(r'points="([^"]+)"', page)[number])


def test_companies_are_compared_year_by_year_with_the_figures_of_their_statements(
    server: LiveServer, paid_key: str
) -> None:
    by_company = {}
    for issuer in (ISSUER, OTHER):
        rows = server.get(
            f"/v1/statements/{issuer}?period_type=FY&line_items=revenue&as_of=2024-06-30", paid_key
        ).json()["data"]
        by_company[issuer] = {row["period_end"][:4]: str(row["value_reported"]) for row in rows}
        assert len(rows) > 1
    path = f"/compare?measure=revenue&a={ISSUER}&b={OTHER}&as_of=2024-06-30"
    page = server.http.get(path)
    table = Html.of(page.text)
    values = [element.attributes["value"] for element in table.all("data")][2:]
    years = sorted({year for own in by_company.values() for year in own}, reverse=True)
    assert values == [own[year] for year in years for own in by_company.values() if year in own]
    assert "No company with figures matches" in server.http.get(f"{path}&c=nobody+at+all").text
    assert len(page.content) < 100_000


@pytest.mark.parametrize("scale", ["log", "index"])
def test_other_axes_draw_the_same_values(server: LiveServer, scale: str) -> None:
    for path in ("/macro/series/CPI.ZA?as_of=2023-05-31", "/compare?measure=NY.GDP.MKTP.CD&a=ZA&b=kenya"):
        plain, other = server.http.get(path).text, server.http.get(f"{path}&scale={scale}").text
        assert drawn(plain) != drawn(other)
        assert ("= 100</text>" in other) == (scale == "index")
        csv = {
            s: server.http.get(f"{path}{s}&chart={'compare' if 'compare' in path else 'series'}&format=csv")
            for s in ("", f"&scale={scale}")
        }
        assert csv[""].text == csv[f"&scale={scale}"].text
    assert server.http.get("/compare?scale=cubic").status_code == 400


def test_an_embedded_chart_shows_its_source_and_sets_no_cookie(server: LiveServer, paid_key: str):
    page = server.http.get("/macro/series/CPI.ZA?as_of=2023-05-31")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    address = re.findall(r'iframe src="[^"]*(/embed/[^"]+chart=fan)"', page.text.replace("&#34;", '"'))
    (path,) = address or re.findall(r"(/embed/[^&]+&amp;chart=fan)", page.text)
    path = path.replace("&amp;", "&")
    chart = server.http.get(path)
    assert chart.status_code == 200
    policy = chart.headers["content-security-policy"]
    assert "frame-ancestors *" in policy
    assert "script-src" not in policy
    assert "<script" not in chart.text
    assert drawn(chart.text) in page.text
    sources = server.get("/v1/sources", paid_key).json()["data"]
    cited = server.get("/v1/macro?series=CPI.ZA&limit=1", paid_key).json()["data"][0]["source_ref"]
    (source,) = [row for row in sources if cited.startswith(f"{row['source_id']}:")]
    assert source["attribution"] in chart.text
    with_cookies = server.http.get(
        f"{path}&lang=fr", headers={"cookie": "sankofa_key=wrong; sankofa_lang=ar"}
    )
    assert with_cookies.status_code == 200
    assert "set-cookie" not in with_cookies.headers
    assert 'lang="fr"' in with_cookies.text
    assert server.http.get(f"/at/2023-05-31{path}").status_code == 200
    for nothing in ("/embed/sources", "/embed/key", "/embed/operator", "/embed/nowhere"):
        assert server.http.get(nothing, headers=BROWSER).status_code == 404, nothing
    assert server.http.get("/embed/macro/series/CPI.ZA?chart=matrix").status_code == 400
    assert server.http.post("/embed/key", data={"key": paid_key}).status_code == 405
