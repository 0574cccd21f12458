"""Visitors without a key (contract: WEB-14): each address has its own budget of pages, and a search few
words.
"""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.live import LiveServer
from tests.patience import in_one_minute
from tests.web.site import BROWSER, Html

PER_MINUTE = 5
SANDBOX = "sankofa-sandbox"
Serve = Callable[..., LiveServer]


@pytest.fixture
def serve(tmp_path: Path, sample_home: Path) -> Iterator[Serve]:
    fresh = shutil.ignore_patterns("keys*", "usage*")
    home = Path(shutil.copytree(sample_home, tmp_path / "home", ignore=fresh))
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(
            LiveServer(home, per_minute_visitor=str(PER_MINUTE), **settings)
        )


def statuses(live: LiveServer, times: int, path: str = "/search?q=sample%20{}", **headers: str) -> list[int]:
    """The statuses of so many different pages."""
    return [live.get(path.format(n), **headers).status_code for n in range(times)]


@pytest.mark.rule("WEB-14")
@in_one_minute
@pytest.mark.limit("SANKOFA_PER_MINUTE_VISITOR")
def test_one_visitor_cannot_use_up_the_pages_of_others(serve: Serve) -> None:
    live = serve(proxies="127.0.0.0/8", per_minute_sample="3", workers=2)
    first = {"x_forwarded_for": "10.0.0.1, 192.0.2.7"}
    assert statuses(live, PER_MINUTE + 3, **first) == [200] * PER_MINUTE + [429] * 3
    assert live.get("/screen?metric=net_margin", x_forwarded_for="192.0.2.8").status_code == 200
    refused = live.get("/screen?metric=net_margin&order=asc", accept=BROWSER["accept"], **first)
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert '"minute";r=0' in refused.headers["ratelimit"]
    assert "without a key" in Html.of(refused.text).all("main")[0].text
    assert live.get("/key", **first).status_code == 200  # where a visitor enters a key
    assert live.get("/docs", **first).status_code == 200
    assert live.get("/screen?metric=net_margin&order=asc", live.key("starter"), **first).status_code == 200
    api = [live.get("/v1/screen?metric=net_margin", SANDBOX, **first).status_code for _ in range(4)]
    assert api == [200, 200, 200, 429]  # the sandbox key has its own quota
    assert live.get("/companies", x_forwarded_for="192.0.2.9").status_code == 200


@pytest.mark.rule("WEB-14")
@in_one_minute
def test_an_ipv6_visitor_counts_by_subnet_and_unknown_proxies_are_ignored(serve: Serve) -> None:
    live = serve(proxies="127.0.0.1")
    subnet = [live.get(f"/search?q=a{n}", x_forwarded_for=f"2001:db8::{n + 1}").status_code for n in range(7)]
    assert subnet == [200] * PER_MINUTE + [429] * 2
    assert live.get("/search?q=a9", x_forwarded_for="2001:db8:0:1::1").status_code == 200
    direct = serve()
    codes = [direct.get(f"/search?q=b{n}", x_forwarded_for=f"192.0.2.{n}").status_code for n in range(7)]
    assert codes == [200] * PER_MINUTE + [429] * 2


@pytest.mark.rule("WEB-14")
@in_one_minute
def test_a_page_from_the_cache_is_free(serve: Serve) -> None:
    live = serve()
    answers = [live.get("/companies") for _ in range(3 * PER_MINUTE)]
    assert {answer.status_code for answer in answers} == {200}
    assert f'"minute";r={PER_MINUTE - 1};' in answers[0].headers["ratelimit"]
    assert all("ratelimit" not in answer.headers for answer in answers[1:])
    assert statuses(live, PER_MINUTE + 1) == [200] * (PER_MINUTE - 1) + [429] * 2
    assert live.get("/companies").status_code == 200
    (limits,) = re.findall(r"<caption>.*?</table>", live.get("/key").text, re.DOTALL)
    assert ">Minute<" in limits
    assert ">Day<" in limits


@pytest.mark.rule("WEB-14")
@in_one_minute
@pytest.mark.limit("SANKOFA_PER_DAY_VISITOR")
def test_a_visitor_has_a_maximum_of_pages_per_day(serve: Serve) -> None:
    live = serve(per_day_visitor="2", proxies="127.0.0.1")
    visitor = {"x_forwarded_for": f"192.0.2.{int(time.time() // 60) % 250}"}  # another when tried again
    assert statuses(live, 3, **visitor) == [200, 200, 429]
    assert "pages a day" in live.get("/search?q=other", **visitor).text


@pytest.mark.rule("WEB-14")
@in_one_minute
@pytest.mark.limit("words of a documentation search")
def test_a_search_of_the_documentation_has_eight_words_and_is_counted(serve: Serve) -> None:
    live = serve()
    words = [f"word{n}" for n in range(1000)]
    assert live.get(f"/docs?q={quote(' '.join(words[:8]))}").status_code == 200
    refused = live.get(f"/docs?q={quote(' '.join(words[:9]))}")
    assert refused.status_code == 400
    assert "8 different words" in refused.text
    assert live.get(f"/docs?q={quote(' '.join(['the'] * 500))}").status_code == 200
    longest = "+".join(f"{n:x}" for n in range(1000))[:4090]
    assert live.get(f"/docs?q={longest}").status_code == 400
    assert statuses(live, 3, "/docs?q=word{}") == [200, 429, 429]
    assert live.get("/docs?q=again", "sk_any_key_at_all").status_code == 429
    assert live.get("/docs/readme").status_code == 200
