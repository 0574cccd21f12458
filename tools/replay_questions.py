"""The questions of `replay.py`: every parameter with every kind of value, drawn by a fixed seed."""

import base64
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx

TIERS = ("professional", "professional", "starter", "sample", "sample", "wrong", "")
FORMATS = ("application/json", "text/csv", "application/vnd.apache.arrow.stream", "text/html", "*/*")
HEADERS = (
    *("content-type", "cache-control", "vary", "link", "allow", "www-authenticate", "retry-after"),
    *("content-range", "accept-ranges", "content-disposition", "content-encoding", "ratelimit-policy"),
    *("deprecation", "sunset", "x-service-api-version", "location", "access-control-allow-origin"),
)
EDITION = re.compile(rb"\b[0-9]{8}T[0-9]{6}Z-[0-9A-Za-z-]+")
TOOK = re.compile(rb'("latency_ms": ?)[0-9.]+')
TOKEN = re.compile(rb"[A-Za-z0-9_-]{60,600}")
"""A cursor anywhere in binary data."""
DIGEST = re.compile(rb"\b[0-9a-f]{64}\b")
"""Members of a Parquet file, which names its edition; the files themselves are compared too."""
DIGESTS = re.compile(rb"[0-9a-f]{64,}")
"""The same names in a text column, one after another."""
BUILD = re.compile(rb"(sankofa-[0-9.]+\+)\w+")
KEY_ID = re.compile(rb"(sankofa:usage#)[0-9a-f]{12}")
CURSOR = re.compile(rb'(cursor\\*"?[:=] ?\\*"?)[A-Za-z0-9_-]{20,600}')


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def normal(body: bytes) -> bytes:
    """Removes ids of editions and keys, values derived from them, and durations. Binary keeps its length."""
    body = KEY_ID.sub(rb"\1<id of key>.", body)
    if b"\0" in body[:200]:
        body = EDITION.sub(lambda match: b"e" * len(match[0]), body)
        body = DIGESTS.sub(lambda match: b"d" * len(match[0]), body)
        return TOKEN.sub(lambda match: b"t" * len(match[0]) if _is_cursor(match[0]) else match[0], body)
    body = DIGEST.sub(b"<digest>", TOOK.sub(rb"\g<1>0", EDITION.sub(b"<edition>", body)))
    body = BUILD.sub(rb"\1<commit>", body)
    return CURSOR.sub(rb"\1<cursor>", body)


def _is_cursor(token: bytes) -> bool:
    """Texts of a column have no separators, so only text in the form of a cursor counts as one."""
    try:
        content = base64.b64decode(token + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return False
    return content[16:17] == b"\x93" and EDITION.search(content) is not None


class Question(NamedTuple):
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes = b""

    @property
    def name(self) -> str:
        query = "&".join(f"{name}={value}" for name, value in self.query)
        headers = " ".join(f"{name}:{value}" for name, value in self.headers if name != "content-type")
        return normal(
            f"{self.method} {self.path}?{query} [{headers}] {self.content.decode()}".encode()
        ).decode()


class Asker:
    """Queries one world, with questions drawn from its description and first answers."""

    def __init__(
        self, http: httpx.Client, keys: dict[str, str], editions: list[str], record: Callable[..., None]
    ) -> None:
        self.http, self.keys, self.editions, self.record = http, keys, editions, record
        self.chance = random.Random(1)  # noqa: S311 - no secret
        self.values = _VALUES | {"edition": [*self.editions, "none", "?"], "since": [*self.editions, "none"]}
        self.values |= {"service_id": self._ids()}
        self.values["entity_id"] = [*self.values["service_id"][:4], "ZAF", "KEN"]

    def ask(self, question: Question) -> Answer:
        """Ask, and record the answer; a key is named by its tier."""
        method, path, query, headers, content = question
        sent = [(n, self.keys.get(v, v) if n == "x-api-key" else v) for n, v in headers]
        got = self.http.request(method, path, params=list(query), headers=sent, content=content)
        told = {name: got.headers[name] for name in HEADERS if name in got.headers}
        answer = Answer(got.status_code, told, got.content)
        self.record(question.name, answer, got.headers.get("x-request-id", "-"), str(self.http.base_url))
        return answer

    def rest(self, each: int) -> None:
        description = self.http.get("/openapi.json").json()
        for path, methods in sorted(description["paths"].items()):
            for method in ("POST", "HEAD", "OPTIONS"):
                self.ask(Question(method, path.replace("{", "").replace("}", "")))
            parameters = methods["get"].get("parameters", [])
            for question in self._questions(path, parameters, each):
                self.ask(question)
        for path in ("/", "/nothing", "/v1/", "/docs", "/problems", "/problems/not-found", "/v1/screen/"):
            self.ask(Question("GET", path))

    def pages(self, most: int = 4) -> None:
        """Walks, cursor by cursor."""
        walks = [("/v1/tenders", {"country": country, "limit": "7"}) for country in ("ZA", "KE", "MD", "NG")]
        for dataset in ("tenders", "fundamentals", "entities", "macro-series"):
            for since in self.editions:
                walks.append(("/v1/changes", {"since": since, "dataset": dataset, "limit": "7"}))
        for path, query in walks:
            cursor: dict[str, str] = {}
            for page in range(most):
                headers = (("x-api-key", "professional"), ("x-page", str(page)))
                answer = self.ask(Question("GET", path, tuple({**query, **cursor}.items()), headers))
                found = json.loads(answer.body).get("next_cursor") if answer.status == 200 else None
                if found is None:
                    break
                cursor = {"cursor": found}

    def files(self) -> None:
        """Every Parquet file, whole and in parts."""
        headers = (("x-api-key", "professional"),)
        answer = self.ask(Question("GET", "/v1/export", headers=headers))
        for row in json.loads(answer.body)["data"]:
            path = httpx.URL(row["url"]).path
            self.ask(Question("HEAD", path, headers=headers))
            for part in ("", "bytes=0-3", "bytes=-8", "bytes=5-5,10-20", "bytes=999999999-", "bytes=x"):
                self.ask(Question("GET", path, headers=(*headers, ("range", part)) if part else headers))
            self.ask(Question("GET", path, headers=(("x-api-key", "sample"),)))

    def tools(self, each: int) -> None:
        """Every MCP tool, by messages that need no session."""
        listed = json.loads(self._message("tools/list", {}).body)["result"]["tools"]
        self._message("initialize", {})
        self._message("nothing", {})
        self._message("tools/call", {"name": "nothing", "arguments": {}})
        for tool in sorted(listed, key=lambda tool: str(tool["name"])):
            fields, needed = (tool["inputSchema"].get(name, {}) for name in ("properties", "required"))
            for _ in range(each):
                chosen = [n for n in sorted(fields) if n in needed or self.chance.random() < 0.35]
                arguments: dict[str, Any] = {n: self._value(n, fields[n]) for n in chosen}
                if "limit" in arguments and str(arguments["limit"]).isdigit():
                    arguments["limit"] = int(arguments["limit"])
                self._message("tools/call", {"name": tool["name"], "arguments": arguments})

    def _message(self, method: str, params: dict[str, Any]) -> Answer:
        content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers = (
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2025-11-25"),
            ("x-api-key", self.chance.choice(("sample", "starter", "professional", "professional"))),
        )
        return self.ask(Question("POST", "/mcp", headers=headers, content=content))

    def _questions(self, path: str, parameters: list[dict[str, Any]], each: int) -> Iterator[Question]:
        inside = [p for p in parameters if p["in"] == "path"]
        others = [p for p in parameters if p["in"] == "query"]
        needed = [p for p in others if p.get("required")]
        alone = [(p, value) for p in others for value in self._all(p["name"], p["schema"])]
        self.chance.shuffle(alone)
        for number in range(each):
            chosen = {p["name"]: self._value(p["name"], p["schema"]) for p in needed}
            if number % 2 and alone:
                parameter, value = alone[number // 2 % len(alone)]
                chosen[parameter["name"]] = value
            else:
                few = self.chance.sample(others, min(len(others), self.chance.randint(0, 3)))
                chosen |= {p["name"]: self._value(p["name"], p["schema"]) for p in few}
            target = path.format(**{p["name"]: self._value(p["name"], p["schema"]) for p in inside})
            tier = self.chance.choice(TIERS)
            accept = FORMATS[number % 3] if self.chance.random() < 0.9 else self.chance.choice(FORMATS)
            headers = (("accept", accept), *([("x-api-key", tier)] if tier else []))
            yield Question("GET", target, tuple(chosen.items()), headers)

    def _all(self, name: str, schema: dict[str, Any]) -> list[str]:
        known = [*map(str, schema.get("enum", [])), *self.values.get(name, [])]
        return [*known, "nonsense", ""] if known else ["nonsense", ""]

    def _value(self, name: str, schema: dict[str, Any]) -> str:
        values = self._all(name, schema)
        return self.chance.choice(values[:-2] if len(values) > 2 and self.chance.random() < 0.93 else values)

    def _ids(self) -> list[str]:
        """Organisations of this world, besides those that no world has."""
        found: dict[str, None] = {}
        for path in ("/v1/screen?metric=net_margin&limit=15", "/v1/tender-parties?limit=40"):
            body = self.http.get(path, headers={"x-api-key": self.keys["professional"]}).json()
            found |= {row["service_id"]: None for row in body.get("data", []) if row.get("service_id")}
        ids = list(found)[:24]
        return [*ids, *(one.lower() for one in ids[:1]), "DC000000000000000000000000"]


_DAYS = ["2024-06-30", "2010-02-28", "2018-08-01", "2021-03-31", "2026-01-01", "2026-11-02", "1999-12-31"]
_VALUES: dict[str, list[str]] = {
    "as_of": [*_DAYS, "2999-01-01", "2024-02-30", "0000-01-01"],
    "from": [*_DAYS, "2015", "2024-13-01"],
    "to": [*_DAYS, "2020", "1900-01-01"],
    "limit": ["1", "2", "25", "100", "10000", "10001", "0", "-1", "1.5"],
    "country": ["ZA", "KE", "NG", "za", "MD", "PY", "US", "ZAF", "KEN", "XX", "Z"],
    "indicator": ["NY.GDP.MKTP.CD", "SP.POP.TOTL", "FP.CPI.TOTL.ZG", "ny.gdp.mktp.cd"],
    "series": ["CPI.ZA", "FX.USD.ZAR", "FX.EUR.ZAR", "fx.eur.usd"],
    "series_type": ["cpi", "fx", "rate"],
    "id_value": ["999900SAMPLEZA000189", "JSE:SMP", "US67066G1040", "BBG000BBJQV0", "777", "A" * 65],
    "measure": ["revenue", "profit", "value", "NY.GDP.MKTP.CD"],
    "category": ["Services: Civil", "goods", "works"],
    "role": ["supplier", "buyer", "tenderer", "Buyer"],
    "sku": ["AF-FUND", "AF-TENDER", "AF-MACRO", "af-fund"],
    "signal_key": ["macro-momentum", "fundamentals-factors", "procurement-demand", "issuer-persistence"],
    "query": ["sample", "bank", "nvidia", "ministry", "x"],
    "name": ["sample", "bank", "nvidia"],
    "file": ["procurement-demand.parquet", "af-fund-fundamentals.parquet", "none.parquet"],
    "cursor": ["A" * 40],
}
