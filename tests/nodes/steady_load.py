"""Clients that never stop asking, and check every answer against what its edition must say."""

import json
import threading
import time
from collections import Counter
from decimal import Decimal
from http.client import HTTPConnection, HTTPException
from types import TracebackType
from typing import NamedTuple

from tests.patience import PATIENCE

RETAILER = "DC46AF1B1AAA424B58D1368176"
PATH = f"/v1/fundamentals/{RETAILER}?line_items=revenue&period_type=FY"
CORRECTED = "2020-06-30"


class Outcome(NamedTuple):
    at: float
    kind: str
    """`answered`, `unavailable` (a clean 503), `broken` (no answer), or what was wrong with it."""
    detail: str = ""


class SteadyLoad:
    """`with SteadyLoad(port, key, expected) as load:`; `expected` has the figure by edition, and may grow."""

    def __init__(self, port: int, key: str, expected: dict[str, Decimal], clients: int = 3) -> None:
        self.outcomes: list[Outcome] = []
        self.editions: Counter[str] = Counter()
        self._port, self._key, self._expected = port, key, expected
        self._unknown: list[tuple[float, str, Decimal]] = []
        self._over = threading.Event()
        self._clients = [threading.Thread(target=self._run) for _ in range(clients)]
        self.clients = clients
        self.events: list[tuple[float, str]] = []
        """What was done meanwhile, and when."""

    def __enter__(self) -> "SteadyLoad":
        for client in self._clients:
            client.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for client in self._clients:
            client.join()
        for at, edition, value in self._unknown:  # published a moment before the test had its name
            self.outcomes.append(Outcome(at, self._judged(edition, value)))

    def counts(self) -> Counter[str]:
        return Counter(outcome.kind for outcome in self.outcomes)

    def trouble(self, since: float) -> list[float]:
        """When something other than an answer came, since a moment."""
        return [outcome.at for outcome in self.outcomes if outcome.at >= since and outcome.kind != "answered"]

    def story(self) -> list[tuple[str, str, str]]:
        """Everything but answers: after which event, what, and why."""
        told = []
        for outcome in self.outcomes:
            if outcome.kind != "answered":
                before = [what for at, what in self.events if at <= outcome.at]
                told.append(
                    (before[-1] if before else "", f"{outcome.at:.1f} {outcome.kind}", outcome.detail)
                )
        return told

    def answers(self, since: float) -> int:
        return sum(outcome.at >= since and outcome.kind == "answered" for outcome in self.outcomes)

    def _run(self) -> None:
        link = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        while not self._over.is_set():
            began = time.monotonic()
            try:
                link.request("GET", PATH, headers={"X-API-Key": self._key})
                answer = link.getresponse()
                body = answer.read()
            except (OSError, HTTPException) as failure:
                link.close()
                self.outcomes.append(Outcome(began, "broken", repr(failure)))
            else:
                self._judge(began, answer.status, dict(answer.getheaders()), body)
            time.sleep(0.02)
        link.close()

    def _judge(self, at: float, status: int, headers: dict[str, str], body: bytes) -> None:
        fields = {name.lower(): value for name, value in headers.items()}
        if status == 503 and "retry-after" in fields and "problem+json" in fields.get("content-type", ""):
            self.outcomes.append(Outcome(at, "unavailable", json.loads(body)["detail"]))
        elif status == 502 and "x-request-id" not in fields:  # of the balancer: the node was killed meanwhile
            self.outcomes.append(Outcome(at, "broken", "502"))
        elif status != 200:
            self.outcomes.append(Outcome(at, f"status {status}: {body[:200]!r}"))
        else:
            document = json.loads(body)
            rows = [row for row in document["data"] if row["period_end"] == CORRECTED]
            value = Decimal(str(rows[0]["value_reported"])) if len(rows) == 1 else Decimal(-1)
            self.editions[document["edition"]] += 1
            if document["edition"] not in self._expected:
                self._unknown.append((at, document["edition"], value))
            else:
                self.outcomes.append(Outcome(at, self._judged(document["edition"], value)))

    def _judged(self, edition: str, value: Decimal) -> str:
        expected = self._expected.get(edition)
        return "answered" if value == expected else f"wrong: {edition} says {value}, not {expected}"
