"""Webhooks: news is sent at least once and in order, and only to allowed addresses."""

import base64
import hashlib
import hmac
import json
import os
import signal
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.live import Copies, LiveServer, run, succeed
from tests.patience import until
from tests.publisher import answering_posts, slowly
from tests.spec import market
from tests.spec.market import ENTITIES, Desk, release

desk = market.desk
RESTATED = """\
entity,line_item,value,currency,period_start,period_end,period_type,available_at,document,location,confidence
lei:999900SAMPLEZA000189,revenue,49400000000,ZAR,2024-07-01,2025-06-29,FY,2025-10-01,restated-2025,p. 1,0.98
"""


class Receiver:
    """Records messages and answers with scripted statuses, then with 204."""

    def __init__(self) -> None:
        self.url = ""
        self.attempts: list[tuple[float, str, dict[str, str], bytes, int]] = []
        self.statuses: list[int] = []
        self.refused = b""
        """A body with these bytes is answered with 503."""

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        status = self.statuses.pop(0) if self.statuses else 204
        status = 503 if self.refused and self.refused in body else status
        fields = {name.lower(): value for name, value in request.headers.items()}
        self.attempts.append((time.monotonic(), request.path, fields, body, status))
        return status, b""

    def accepted(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(a[3]) for a in list(self.attempts) if a[1] == path and a[4] == 204]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with answering_posts(receiver.answer) as receiver.url:
        yield receiver


def ids(messages: list[dict[str, Any]]) -> list[str]:
    return [message["data"]["release_id"] for message in messages]


def add(desk: Desk, url: str, *options: str) -> str:
    done = succeed(desk.home, "hooks", "add", url, *options, hooks_private="true", **desk.settings)
    secret = done.stdout.strip()
    assert (secret[:6], len(base64.b64decode(secret[6:]))) == ("whsec_", 32)
    return secret


def listed_failure(desk: Desk) -> str:
    return str(json.loads(desk.command("hooks", "list", "--json").stdout)[0]["failure"])


@pytest.mark.rule("HOOK-1", "HOOK-2")
def test_new_releases_are_sent_in_order_despite_failures(desk: Desk, receiver: Receiver) -> None:
    desk.records(*ENTITIES)
    desk.ingest("portal-za", "a.json", [release("A0")])
    desk.publish()
    secret = add(desk, f"{receiver.url}/za", "--on", "release", "--filter", "country=ZA")
    add(desk, f"{receiver.url}/editions", "--on", "edition")
    receiver.statuses = [500, 302]
    with LiveServer(desk.home, workers=1, hooks_private="true", **desk.settings) as server:
        days = [f"2025-06-{day:02}T10:00:00Z" for day in (3, 1, 2)]
        desk.ingest("portal-za", "b.json", [release(f"B{n}", day) for n, day in enumerate(days)])
        desk.ingest("portal-ke", "c.json", [release("C", days[0])])
        second = desk.publish()
        until(lambda: len(receiver.accepted("/za")) == 3)
        until(lambda: len(receiver.accepted("/editions")) == 1)
        assert server.get("/health").status_code == 200
    assert list(dict.fromkeys(ids(receiver.accepted("/za")))) == ["B1-1", "B2-1", "B0-1"]
    assert {message["type"] for message in receiver.accepted("/za")} == {"release.published"}
    (edition,) = receiver.accepted("/editions")
    assert (edition["type"], edition["data"]["edition"]) == ("edition.published", second)
    assert edition["data"]["rows"]["tenders"]["count"] == 5
    assert not any(path == "/elsewhere" for _, path, *_ in receiver.attempts)
    failed = [one for one in receiver.attempts if one[4] != 204]
    assert len(failed) == 2
    for at, path, fields, *_ in failed:
        again = next(one for one in receiver.attempts if one[0] > at and one[1] == path)
        assert again[0] - at < 5
        assert again[2]["webhook-id"] == fields["webhook-id"]
    for _, path, fields, body, _ in receiver.attempts:
        if path == "/za":
            assert Webhook(secret).verify(body, fields) == json.loads(body)
            signed = f"{fields['webhook-id']}.{fields['webhook-timestamp']}.".encode() + body
            own = hmac.new(base64.b64decode(secret[6:]), signed, hashlib.sha256).digest()
            assert fields["webhook-signature"] == f"v1,{base64.b64encode(own).decode()}"
    # Published while nothing delivers, and killed after the first message: the rest follows.
    time.sleep(1.1)
    desk.ingest("portal-za", "d.json", [release(f"D{n}", f"2025-07-0{n}T10:00:00Z") for n in (1, 2, 3)])
    desk.publish()
    receiver.statuses = [204, 503, 503, 503]
    with LiveServer(desk.home, workers=1, hooks_private="true", **desk.settings) as server:
        until(lambda: any(one[4] == 503 for one in receiver.attempts))
        os.killpg(server.pid, signal.SIGKILL)
    receiver.statuses = []
    with LiveServer(desk.home, workers=1, hooks_private="true", **desk.settings):
        until(lambda: set(ids(receiver.accepted("/za"))) >= {"D1-1", "D2-1", "D3-1"})
        until(lambda: len(receiver.accepted("/editions")) >= 2)
    # At least once: a message that was not confirmed before the service stopped may come again.
    assert list(dict.fromkeys(ids(receiver.accepted("/za")))) == "B1-1 B2-1 B0-1 D1-1 D2-1 D3-1".split()
    # Refused until the service stopped, and another edition published in between: the same message.
    for name, refused in (("E-1", True), ("F-1", False)):
        time.sleep(1.1)
        desk.ingest("portal-za", f"{name}.json", [release(name[0], "2025-08-01T10:00:00Z")])
        desk.publish()
        receiver.refused = b'"E-1"' if refused else b""
        with LiveServer(desk.home, workers=1, hooks_private="true", **desk.settings):
            until(lambda: any(name.encode() in one[3] for one in receiver.attempts))  # noqa: B023
    bodies: dict[str, set[bytes]] = {}
    for _, _, fields, body, _ in receiver.attempts:
        bodies.setdefault(fields["webhook-id"], set()).add(body)
    assert [len(same) for same in bodies.values()] == [1] * len(bodies)


@pytest.mark.deep
@pytest.mark.rule("HOOK-1")
def test_a_restatement_is_sent_to_hooks_that_filter_for_it(
    copy_small: Copies, tmp_path: Path, receiver: Receiver
) -> None:
    home = copy_small()
    company = "DC46AF1B1AAA424B58D1368176"
    for name, item in (("/own", "revenue"), ("/other", "assets")):
        options = (
            "--on",
            "restatement",
            "--filter",
            f"service_id={company}",
            "--filter",
            f"line_item={item}",
        )
        succeed(home, "hooks", "add", receiver.url + name, *options, hooks_private="true")
    file = tmp_path / "restated.csv"
    file.write_text(RESTATED)
    for command in (("ingest", "sample-filings", str(file)), ("publish",)):
        succeed(home, *command)
    with LiveServer(home, hooks_private="true") as server:
        until(lambda: receiver.accepted("/own"))
        key = server.key("starter")
        rows = server.get(f"/v1/restatements?service_id={company}&line_item=revenue&limit=1", key).json()
    (message,) = receiver.accepted("/own")
    assert (message["type"], message["data"]) == ("restatement.restated", rows["data"][0])
    assert not receiver.accepted("/other")


@pytest.mark.rule("HOOK-3")
def test_private_addresses_are_refused_unless_permitted(desk: Desk, receiver: Receiver) -> None:
    for url in (
        receiver.url,
        "http://localhost/x",
        "http://[::1]/",
        "https://10.0.0.1/x",
        "http://169.254.169.254/latest",
        "ftp://example.org/x",
        "https://user:secret@example.org/",
    ):
        refused = desk.command("hooks", "add", url, "--on", "edition")
        assert (refused.returncode, refused.stdout) == (1, ""), url
    metadata = ("hooks", "add", "http://169.254.169.254/", "--on", "edition")
    assert run(desk.home, *metadata, hooks_private="true", **desk.settings).returncode == 1
    assert desk.command("hooks", "list").stdout.splitlines() == ["id  on  filter  url  failure"]
    # Permitted when it was added, but not when it is delivered.
    desk.records(*ENTITIES)
    add(desk, receiver.url, "--on", "edition")
    desk.publish()
    with LiveServer(desk.home, workers=1, **desk.settings):
        assert "not an address of the public internet" in until(lambda: listed_failure(desk))
    assert not receiver.attempts


@pytest.mark.deep
@pytest.mark.rule("HOOK-2")
def test_an_endless_answer_times_out_after_15_seconds(desk: Desk) -> None:
    desk.records(*ENTITIES)
    with (
        answering_posts(slowly) as url,
        LiveServer(desk.home, workers=1, hooks_private="true", **desk.settings),
    ):
        add(desk, url, "--on", "edition")
        desk.publish()
        assert until(lambda: listed_failure(desk)) == "no answer in 15 s"


@pytest.mark.rule("HOOK-3")
def test_hooks_are_listed_and_removed_and_a_bad_filter_is_refused(desk: Desk) -> None:
    add(desk, "http://127.0.0.1:9/x", "--on", "release", "--filter", "country=KE", "--filter", "min_value=5")
    (hook,) = json.loads(desk.command("hooks", "list", "--json").stdout)
    assert (hook["on"], hook["filter"]) == ("release", "country=KE min_value=5")
    assert "whsec_" not in desk.command("hooks", "list").stdout
    for on, condition in (("release", "country=Kenya"), ("release", "x=1"), ("edition", "country=KE"),
                      ("release", "limit=3"), ("restatement", "country")):  # fmt: skip
        wrong = run(
            desk.home,
            *("hooks", "add", "http://127.0.0.1:9/", "--on", on, "--filter", condition),
            hooks_private="true",
            **desk.settings,
        )
        assert wrong.returncode == 2, condition
    assert desk.command("hooks", "remove", hook["id"]).returncode == 0
    assert desk.command("hooks", "remove", hook["id"]).returncode == 1
    assert json.loads(desk.command("hooks", "list", "--json").stdout) == []
