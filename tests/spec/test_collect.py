"""`sankofa collect` against a publisher that misbehaves."""

import hashlib
import json
import os
import signal
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import publisher as faults
from tests.depth import deep_after
from tests.live import COMMAND, run, succeed
from tests.publisher import Publisher

TABLE = "Country Name,Country Code,Year,Value\n"


def table(*values: int, filler: int = 0) -> str:
    rows = "".join(f"South Africa,ZAF,{2000 + at},{value}\n" for at, value in enumerate(values))
    return TABLE + rows + "".join(f"Kenya,KEN,{1900 + at},{at}.5\n" for at in range(filler))


class Home:
    """A HOME whose sources come from the local publisher."""

    def __init__(self, folder: Path, publisher: Publisher) -> None:
        self.path = folder / "home"
        self.path.mkdir()
        self.publisher = publisher
        self._entries: list[str] = []

    def source(
        self, name: str, *urls: str, adapter: str = "worldbank", sku: str = "AF-MACRO", **more: Any
    ) -> None:
        """Register a source; `more` is added to its table `collect`."""
        settings = {"rate": 1000, "allow_private": True, **more}
        addresses = [url if "://" in url else self.publisher.url + url for url in urls]
        lines = [f"urls = {json.dumps(addresses)}"]
        lines += [f"{key} = {_toml(value)}" for key, value in settings.items()]
        self._entries.append(
            f'[sources.{name}]\nadapter = "{adapter}"\nsku = "{sku}"\nlicense_class = "cc-by"\n'
            f"commercial_redistribution = true\n[sources.{name}.collect]\n" + "\n".join(lines) + "\n"
        )
        (self.path / "sources.toml").write_text("\n".join(self._entries))

    def collect(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return run(self.path, "collect", *arguments, **settings)

    def report(self, *arguments: str, **settings: str) -> dict[str, dict[str, Any]]:
        done = self.collect("--json", *arguments, **settings)
        assert done.returncode in (0, 1), done.stderr
        assert done.stdout, done.stderr
        whole = json.loads(done.stdout)
        return {one["source"]: one for one in whole["sources"]} | {"": {"published": whole["published"]}}

    def captures(self) -> list[dict[str, Any]]:
        return list(json.loads(run(self.path, "ledger", "captures", "--json").stdout))


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{name}" = {_toml(one)}' for name, one in value.items()) + " }"
    return json.dumps(value)


@pytest.fixture(scope="module")
def server() -> Iterator[Publisher]:
    with Publisher() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, server: Publisher) -> Home:
    server.documents.clear()
    server.faults.clear()
    server.received.clear()
    return Home(tmp_path, server)


@pytest.mark.rule("COL-1")
def test_new_files_are_fetched_stored_ingested_and_published(home: Home) -> None:
    server = home.publisher
    server.put("/ny.gdp.mktp.cd.csv", table(1, 2))
    home.source("bank", "/ny.gdp.mktp.cd.csv", headers={"X-Who": "me"}, every="6h")
    done = home.report("--publish")
    assert (done["bank"]["status"], done["bank"]["appended"]) == ("fetched", 2)
    assert done[""]["published"]
    (request,) = server.received
    assert request.headers["x-who"] == "me"
    assert request.headers["user-agent"].startswith("Sankofa/")
    assert [capture["file"] for capture in home.captures()] == ["ny.gdp.mktp.cd.csv"]
    journal = (home.path / "vault" / "journal.jsonl").read_text()
    received = json.loads(journal)["event"]
    assert received["exchange"]["url"] == f"{server.url}/ny.gdp.mktp.cd.csv"
    assert received["exchange"]["response_headers"]["etag"]
    assert received["sha256"] == hashlib.sha256(table(1, 2).encode()).hexdigest()
    assert home.report()["bank"]["status"] == "fresh", "not due for six hours"
    assert len(server.received) == 1
    assert home.report("bank")["bank"]["status"] == "unchanged", "named, it is asked whatever `every` says"
    assert server.received[-1].headers["if-none-match"]
    server.put("/ny.gdp.mktp.cd.csv", table(1, 3))
    again = home.report("bank", "--publish")
    assert (again["bank"]["appended"], bool(again[""]["published"])) == (1, True)
    succeed(home.path, "vault", "verify")
    replayed = run(home.path, "vault", "replay")
    assert "equal to the ledger of HOME" in replayed.stdout


@pytest.mark.rule("COL-2")
@pytest.mark.parametrize(
    ("fault", "message"),
    deep_after(
        4,
        [
            (faults.page(), "HTML page"),
            (faults.sends(b"<html>wrong</html>"), "HTML page"),
            (faults.not_gzip, "not valid gzip"),
            (faults.sends(b""), "empty"),
            (faults.sends(table(7).encode(), content_md5=b64encode(b"0" * 16).decode()), "md5"),
            (
                faults.sends(table(7).encode(), repr_digest=f"sha-256=:{b64encode(b'0' * 32).decode()}:"),
                "sha-256",
            ),
            (faults.redirect("/login?back=1"), "login"),
            (faults.redirect("/NY.GDP.MKTP.CD.csv"), "circle"),
            (faults.sends(table(7).encode()), "shrank"),
            (faults.status(403), "status 403"),
            (faults.sends(b"PK\x03\x04" + b" nothing" * 99, content_type="application/zip"), "archive"),
        ],
    ),
)
def test_a_false_reply_is_refused_and_existing_data_stays(
    home: Home, fault: faults.Fault, message: str
) -> None:
    server = home.publisher
    server.put("/NY.GDP.MKTP.CD.csv", table(1, 2, filler=20))
    server.put("/login?back=1", "please log in")
    server.put("/other/FP.CPI.TOTL.ZG.csv", table(5))
    home.source("bank", "/NY.GDP.MKTP.CD.csv")
    home.source("other", "/other/FP.CPI.TOTL.ZG.csv")
    home.collect()
    before = home.captures()
    server.fail("/NY.GDP.MKTP.CD.csv", fault)
    server.put("/other/FP.CPI.TOTL.ZG.csv", table(6))
    done = home.collect("bank", "other")
    assert done.returncode == 1
    assert f"Error: bank: {server.url}/NY.GDP.MKTP.CD.csv" in done.stderr
    assert message in done.stderr
    assert "other: fetched" in done.stdout, "the others are still done"
    assert len(home.captures()) == len(before) + 1
    assert home.collect("bank").returncode == 0
    assert len(home.captures()) == len(before) + 1


@pytest.mark.rule("COL-2")
def test_an_interrupted_transfer_resumes(home: Home) -> None:
    server = home.publisher
    content = table(*range(50), filler=100)
    server.put("/NY.GDP.MKTP.CD.csv", content)
    server.fail("/NY.GDP.MKTP.CD.csv", *(faults.cut_after(cut) for cut in (0, 1, 700)))
    home.source("bank", "/NY.GDP.MKTP.CD.csv")
    assert home.report()["bank"]["status"] == "fetched"
    ranges = [request.headers.get("range") for request in server.received]
    assert ranges == [None, None, "bytes=1-", "bytes=701-"]
    assert home.captures()[0]["sha256"] == hashlib.sha256(content.encode()).hexdigest()


@pytest.mark.rule("COL-2")
def test_retry_after_is_obeyed(home: Home) -> None:
    server = home.publisher
    server.put("/NY.GDP.MKTP.CD.csv", table(1))
    server.fail(
        "/NY.GDP.MKTP.CD.csv", faults.status(429, retry_after="1"), faults.status(503), faults.as_gzip
    )
    home.source("bank", "/NY.GDP.MKTP.CD.csv")
    began = time.monotonic()
    assert home.report()["bank"]["appended"] == 1
    assert time.monotonic() - began >= 1
    assert len(server.received) == 3


def test_pages_are_fetched_by_number_and_again_if_the_list_changes(home: Home) -> None:
    server = home.publisher

    def listed(page: int, total: int, value: int) -> str:
        row = {
            "indicator": {"id": "NY.GDP.MKTP.CD", "value": "GDP"},
            "country": {"id": "ZA", "value": "South Africa"},
            "countryiso3code": "ZAF", "date": str(2018 + page), "value": value, "unit": "", "decimal": 0,
        }  # fmt: skip
        return json.dumps([{"page": page, "pages": 2, "per_page": 1, "total": total}, [row]])

    for page in (1, 2):
        server.put(f"/v2/{page}.json", listed(page, 2, page))
    server.fail("/v2/2.json", faults.sends(listed(2, 3, 9).encode()))
    home.source("bank", "/v2/{page}.json", pages="/0/pages", same=["/0/total"], file="gdp.json")
    done = home.report()["bank"]
    assert (done["status"], done["documents"], done["appended"]) == ("fetched", 2, 2), done
    assert [request.path for request in server.received] == ["/v2/1.json", "/v2/2.json"] * 2
    assert [capture["file"] for capture in home.captures()] == ["gdp-00001.json", "gdp-00002.json"]


def test_pages_are_fetched_by_their_next_link(home: Home) -> None:
    server = home.publisher
    for number, following in ((1, "b.json"), (2, "")):
        package = {
            "links": {"next": following},
            "releases": [
                {"ocid": f"ocds-x-{number}", "id": "1", "date": "2025-01-01T00:00:00Z", "tag": ["tender"]}
            ],
        }
        server.put(f"/{'ab'[number - 1]}.json", json.dumps(package))
    home.source("portal", "/a.json", adapter="ocds", sku="AF-TENDER", next="/links/next")
    assert home.report()["portal"]["appended"] == 2
    assert not list((home.path / "vault").rglob("*.zst")), "of tenders only the hash is kept"
    assert list((home.path / "collect" / "partial").rglob("*.validator")) == []


def test_templates_are_filled_and_a_dry_run_fetches_nothing(home: Home) -> None:
    home.source(
        "facts",
        "/{country}/{id}/{year}.csv",
        countries=["ZA", "KE"],
        ids=["A.B"],
        years=[2020],
        may_be_missing=True,
    )
    planned = json.loads(home.collect("--dry-run", "--json").stdout)["requests"]
    assert [one["url"].removeprefix(home.publisher.url) for one in planned] == [
        "/ZA/A.B/2020.csv",
        "/KE/A.B/2020.csv",
    ]
    assert home.publisher.received == []
    assert home.report()["facts"]["status"] == "unchanged", "nothing is published there yet"


def test_ids_are_posted_in_batches(home: Home) -> None:
    server = home.publisher
    answer = [
        {
            "data": [
                {"figi": "BBG000B9XRY4", "ticker": "AAPL", "exchCode": "US", "compositeFIGI": "BBG000B9XRY4"}
            ]
        }
    ]
    server.put("/v3/mapping", json.dumps(answer))
    home.source(
        "figi", "/v3/mapping", adapter="openfigi", method="POST", batch=2, ids=["A", "B", "C"],
        file="figi.json", job={"idType": "ID_ISIN", "idValue": "{id}"},
        headers={"X-OPENFIGI-APIKEY": "{openfigi_key}"},
    )  # fmt: skip
    home.collect(openfigi_key="very-secret")
    sent = [json.loads(request.body) for request in server.received]
    assert [[job["idValue"] for job in jobs] for jobs in sent] == [["A", "B"], ["C"]]
    assert {request.headers["x-openfigi-apikey"] for request in server.received} == {"very-secret"}
    written = b"".join(path.read_bytes() for path in home.path.rglob("*") if path.is_file())
    assert b"very-secret" not in written


def test_no_credential_of_a_publisher_is_logged_or_stored(home: Home) -> None:
    server = home.publisher
    server.put("/signed/NY.GDP.MKTP.CD.csv?v=2&X-Amz-Signature=sign4ture&e=expir1ng", table(1, 2))
    server.fail(
        "/NY.GDP.MKTP.CD.csv?v=2&api_key=typ3d",
        faults.redirect("/signed/NY.GDP.MKTP.CD.csv?v=2&X-Amz-Signature=sign4ture&e=expir1ng"),
    )
    server.put("/NY.GDP.MKTP.CD.csv?v=2&api_key=typ3d", table(1, 2))
    headers = {"authorization": "Bearer be4rer", "X-Publisher-Pass": "p4ss", "Accept": "text/csv"}
    home.source("gdp", "/NY.GDP.MKTP.CD.csv?v=2&api_key=typ3d", headers=headers)
    home.collect()
    assert server.received[-1].path.startswith("/signed/")
    assert server.received[0].headers["x-publisher-pass"] == "p4ss"
    files = {path.name: path.read_bytes() for path in home.path.rglob("*") if path.is_file()}
    del files["sources.toml"]
    for secret in (b"sign4ture", b"expir1ng", b"typ3d", b"be4rer", b"p4ss"):
        assert not [name for name, content in files.items() if secret in content], secret
    journal = next(content for name, content in files.items() if b"api_key=***" in content)
    assert b"/signed/NY.GDP.MKTP.CD.csv?v=2&X-Amz-Signature=***&e=***" in journal
    assert b"text/csv" in journal


@pytest.mark.rule("COL-3")
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://example.org/a.csv", "plain http needs allow_private"),
        ("https://user:secret@example.org/a.csv", "password"),
        ("https://{id}.example.org/a.csv", "not contain a template"),
        ("https://example.org/{planet}.csv", "unknown {planet}"),
    ],
)
def test_an_entry_that_cannot_be_fetched_safely_is_refused(home: Home, url: str, message: str) -> None:
    home.publisher.put("/FP.CPI.TOTL.ZG.csv", table(5))
    home.source("other", "/FP.CPI.TOTL.ZG.csv")
    home.source("bank", url, allow_private=False)
    refused = home.collect()
    assert (refused.returncode, message in refused.stderr) == (1, True), refused.stderr
    assert len(home.captures()) == (message != "unknown {planet}"), "the others are still done"


@pytest.mark.rule("COL-3")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "169.254.169.254", "[::ffff:10.0.0.1]"])
def test_private_addresses_are_never_connected_to(home: Home, host: str) -> None:
    port = home.publisher.url.rpartition(":")[2]
    home.source("bank", f"https://{host}:{port}/a.csv", allow_private=False)
    refused = home.collect(collect_attempts="1")
    assert refused.returncode == 1
    assert "not an address of the public internet" in refused.stderr, refused.stderr
    assert home.publisher.received == []


def test_a_built_in_source_is_fetched_once_it_has_a_table(home: Home) -> None:
    assert "nothing to collect" in home.collect().stdout
    (home.path / "sources.toml").write_text('[sources.ecb-fx.collect]\nevery = "12h"\n')
    (planned,) = json.loads(home.collect("--dry-run", "--json").stdout)["requests"]
    assert (planned["source"], planned["url"].startswith("https://www.ecb.europa.eu/")) == ("ecb-fx", True)


def test_an_unknown_source_in_the_setting_is_named(home: Home) -> None:
    for name, message in (
        ("ecb-fxx", "no source 'ecb-fxx'"),
        ("starter-fx", "starter-fx has no table `collect`"),
    ):
        for arguments in ((), ("--dry-run",), ("--watch",)):
            refused = home.collect(*arguments, collect_sources=f"ecb-fx, {name}")
            assert refused.returncode == 1
            assert refused.stderr.startswith(f"Error: SANKOFA_COLLECT_SOURCES: {message}"), refused.stderr


def test_ingested_but_unpublished_files_are_published_by_the_next_run(home: Home) -> None:
    home.publisher.put("/NY.GDP.MKTP.CD.csv", table(1, 2))
    home.source("bank", "/NY.GDP.MKTP.CD.csv", every="6h")
    assert home.report()[""]["published"] is None
    late = home.report("--publish")
    assert late["bank"]["status"] == "fresh"
    assert late[""]["published"] is not None
    assert home.report("--publish")[""]["published"] is None, "there is nothing more"


def test_a_missing_key_and_a_bad_setting_are_named(home: Home) -> None:
    home.source("fred", "/a?key={fred_key}", adapter="alfred")
    assert "SANKOFA_FRED_KEY is not set" in home.collect().stderr
    home.source("bank", "/a.csv", every="often")
    assert "every 'often'" in home.collect().stderr


@pytest.mark.deep
def test_watch_fetches_only_when_due_and_ends_cleanly(home: Home) -> None:
    server = home.publisher
    server.put("/NY.GDP.MKTP.CD.csv", table(1))
    home.source("bank", "/NY.GDP.MKTP.CD.csv", every="1s")
    environment = {**os.environ, "SANKOFA_HOME": str(home.path)}
    with subprocess.Popen([COMMAND, "collect", "--watch", "--publish"], env=environment) as watching:
        try:
            _until(lambda: len(server.received) >= 2)
            server.fail("/NY.GDP.MKTP.CD.csv", faults.slow(5))
            _until(lambda: not server.faults["/NY.GDP.MKTP.CD.csv"])
            other = home.collect("bank")
            assert (other.returncode, "another `sankofa collect`" in other.stderr) == (1, True)
        finally:
            watching.send_signal(signal.SIGTERM)
        assert watching.wait(60) == 0
    assert len(home.captures()) == 1
    assert json.loads(run(home.path, "editions", "--json").stdout)


def _until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
