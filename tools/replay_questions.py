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
        fields = {name: got.headers[name] for name in HEADERS if name in got.headers}
        answer = Answer(got.status_code, fields, got.content)
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
        """Follow cursor after cursor."""
        lists = [("/v1/tenders", {"country": country, "limit": "7"}) for country in ("ZA", "KE", "MD", "NG")]
        for dataset in ("tenders", "fundamentals", "entities", "macro-series"):
            for since in self.editions:
                lists.append(("/v1/changes", {"since": since, "dataset": dataset, "limit": "7"}))
        for path, query in lists:
            cursor: dict[str, str] = {}
            for page in range(most):
                headers = (("x-api-key", "professional"), ("x-page", str(page)))
                answer = self.ask(Question("GET", path, tuple({**query, **cursor}.items()), headers))
                next_cursor = json.loads(answer.body).get("next_cursor") if answer.status == 200 else None
                if next_cursor is None:
                    break
                cursor = {"cursor": next_cursor}

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

    def dialects(self, each: int) -> None:
        """Other people's APIs, some of the questions on the locked path of a day."""
        headers = {"x-api-key": self.keys["professional"]}
        listed = self.http.get("/v1/series?limit=10000", headers=headers).json()["data"]
        series = [row["series"] for row in listed if row["vintages"]]
        values = {name: text.split(" ") for name, text in _OF_DIALECTS.items()}
        values |= {"series_id": [*series[::3], "NONE"], "id": [",".join(series[::30]), *series[::9], "NONE"]}
        values |= {"key": [re.sub("[^A-Za-z0-9]", "_", one) for one in values["series_id"]]}
        values |= {"cik": [*self._registrants(), "CIK0000000001", "CIKx"]}
        for path, names in _DIALECTS.items():
            for _ in range(each):
                few = self.chance.sample(names.split(), self.chance.randint(0, min(5, len(names.split()))))
                chosen = [one.strip("+") for one in names.split() if one in few or "+" in one]
                drawn = {name: self._mostly(own) for name, own in values.items()}
                query = {name: drawn[name.lower()] for name in chosen}
                inside = path.format(**drawn)
                day = self.chance.choice(("", "", f"/at/{self.chance.choice(_DAYS)}"))
                headers = {"accept": self.chance.choice(_SDMX) if "sdmx" in path else "*/*"}
                headers["x-api-key"] = self.chance.choice(TIERS[:4])
                self.ask(Question("GET", day + inside, tuple(query.items()), tuple(headers.items())))

    def _mostly(self, values: list[str]) -> str:
        """One of these; seldom the last, which is often not valid."""
        return self.chance.choice(values[:-1] if self.chance.random() < 0.9 else values)

    def _registrants(self) -> list[str]:
        """The organisations of this world with a CIK, as the SEC's API writes it."""
        headers = {"x-api-key": self.keys["professional"]}
        tickers = self.http.get("/sec/files/company_tickers.json", headers=headers).json()
        return sorted({f"CIK{row['cik_str']:010d}" for row in tickers.values()})

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
        values = [*map(str, schema.get("enum", [])), *self.values.get(name, [])]
        return [*values, "nonsense", ""] if values else ["nonsense", ""]

    def _value(self, name: str, schema: dict[str, Any]) -> str:
        values = self._all(name, schema)
        return self.chance.choice(values[:-2] if len(values) > 2 and self.chance.random() < 0.93 else values)

    def _ids(self) -> list[str]:
        """Organisations of this world, besides those that no world has."""
        ids_: dict[str, None] = {}
        for path in ("/v1/screen?metric=net_margin&limit=15", "/v1/tender-parties?limit=40"):
            body = self.http.get(path, headers={"x-api-key": self.keys["professional"]}).json()
            ids_ |= {row["service_id"]: None for row in body.get("data", []) if row.get("service_id")}
        ids = list(ids_)[:24]
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
_DIALECTS = {
    "/fred/series": "+series_id realtime_start realtime_end file_type",
    "/fred/series/observations": "+series_id realtime_start realtime_end file_type output_type vintage_dates "
    "units frequency aggregation_method observation_start observation_end limit offset sort_order",
    "/fred/series/vintagedates": "+series_id realtime_start realtime_end file_type limit offset sort_order",
    "/fred/series/release": "+series_id realtime_end file_type",
    "/fred/series/search": "+search_text file_type limit offset sort_order order_by",
    "/fred/graph/fredgraph.csv": "+id cosd coed vintage_date",
    "/worldbank/v2/country/{country}/indicator/{indicator}": "date mrv mrnev per_page page source format",
    "/worldbank/v2/country/{country}": "per_page page",
    "/worldbank/v2/indicator/{indicator}": "format source",
    "/worldbank/v2/sources/2/country/{country}/series/{indicator}/time/{date}": "per_page page",
    "/sec/api/xbrl/companyfacts/{cik}.json": "",
    "/sec/api/xbrl/companyconcept/{cik}/{tag}.json": "",
    "/sec/api/xbrl/frames/{tag}/{unit}/{period}.json": "",
    "/sec/submissions/{cik}.json": "",
    "/sec/files/company_tickers.json": "",
    "/sdmx/structure/{structure}/SANKOFA": "references",
    "/sdmx/data/dataflow/SANKOFA/MACRO/1.0.0/*.*.{key}": "startPeriod endPeriod asOf updatedAfter "
    "firstNObservations lastNObservations includeHistory dimensionAtObservation labels",
    "/sdmx/availability/dataflow/SANKOFA/MACRO/1.0.0/*.*.{key}": "references",
    "/delta-sharing/shares/sankofa/{delta}": "",
}
"""The paths of dialects, and their parameters; those with a plus are always sent."""
_OF_DIALECTS = {
    "realtime_start": "2018-08-01 2021-03-31 1776-07-04 2024-06-30 x",
    "realtime_end": "2024-06-30 2026-01-01 9999-12-31 2999-01-01",
    "vintage_dates": "2024-06-30 2018-08-01,2021-03-31 2026-01-01,2024-06-30,2010-02-28 x",
    "vintage_date": "2024-06-30 2018-08-01 x",
    "file_type": "json json xml xml txt",
    "output_type": "1 1 2 3 4 5",
    "units": "lin lin chg ch1 pch pc1 pca cch cca log x",
    "frequency": "m q a sa w wem d x",
    "aggregation_method": "avg sum eop x",
    **dict.fromkeys(
        ("observation_start", "observation_end", "cosd", "coed"), "2015-01-01 2020-06-30 2023-12-31"
    ),
    "limit": "1 3 100 100000 0",
    "offset": "0 2 50",
    "sort_order": "asc desc desc x",
    "search_text": "cpi population exchange fx.eur.zar",
    "order_by": "search_rank title frequency observation_end x",
    "country": "ZA GHA NG ZA;NG all XX",
    "indicator": "NY.GDP.MKTP.CD SP.POP.TOTL NY.GDP.MKTP.CD;SP.POP.TOTL x",
    "date": "all 2015 2010:2019 YR2012;YR2014 x",
    **dict.fromkeys(("mrv", "mrnev"), "1 2 5 0"),
    "per_page": "1 7 1000 0",
    "page": "1 2 0",
    "source": "2 2 3",
    "format": "json json xml",
    "tag": "us-gaap/Assets us-gaap/Revenues ifrs-full/Revenue us-gaap/NetIncomeLoss sankofa/assets us-gaap/X",
    "unit": "USD ZAR NGN USD-per-shares",
    "period": "CY2019 CY2020Q4I CY2022Q4I CY2020Q1 x",
    "structure": "* dataflow datastructure codelist conceptscheme agencyscheme",
    "references": "none all x",
    "startperiod": "2015 2020-06 2023-01-01 x",
    "endperiod": "2020 2024-06 2023-12-31 x",
    "asof": "2024-06-30T00:00:00Z 2018-08-01 2999-01-01",
    "updatedafter": "2018-08-01 2024-06-30T12:00:00Z x",
    **dict.fromkeys(("firstnobservations", "lastnobservations"), "0 1 5 x"),
    "includehistory": "true false x",
    "dimensionatobservation": "AllDimensions TIME_PERIOD x",
    "labels": "id both name x",
    "delta": "schemas all-tables schemas/af-fund/tables/af-fund-fundamentals/metadata schemas/x",
}
_SDMX = [
    *(f"application/vnd.sdmx.{kind};version=2.0.0" for kind in ("data+json", "data+csv", "structure+json")),
    "*/*",
]
