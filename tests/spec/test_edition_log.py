"""The log of editions under `/log/`, `known_by`, and the feeds. The verifier here is written from RFC 9162
and the C2SP texts (tlog-tiles, signed-note) and shares no code with ours.
"""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode
from xml.etree import ElementTree

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sankofa.client import verify
from sankofa.model.signed_notes import consistency_path, inclusion_path, levels_above
from tests.live import LiveServer, create_key, run, succeed
from tests.spec import market
from tests.spec.market import ENTITIES, Desk, package, release

desk = market.desk
plain_desk = market.plain_desk
ATOM = "{http://www.w3.org/2005/Atom}"


class Logged(NamedTuple):
    desk: Desk
    server: LiveServer
    key: str
    first: str
    between: datetime
    second: str

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.server.get(path, self.key, **headers)


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logged]:
    desk = Desk(tmp_path_factory.mktemp("logged"))
    desk.records(*ENTITIES)
    desk.ingest("portal-za", "a.json", [release(f"A{n}") for n in range(5)])
    first = desk.publish()
    between = now()
    time.sleep(1.1)
    desk.ingest("portal-za", "b.json", [release(f"B{n}") for n in range(3)])
    second = desk.publish()
    assert desk.publish() == second  # no second entry
    with desk.serve() as caller:
        yield Logged(desk, caller.server, caller.key, first, between, second)


def decoded(text: str) -> bytes:
    """Decode base64 in its canonical spelling only."""
    content = base64.b64decode(text, validate=True)
    assert base64.b64encode(content).decode() == text
    return content


def tree_hash(leaves: list[bytes]) -> bytes:
    """RFC 9162, 2.1.1."""
    if len(leaves) < 2:
        return leaves[0] if leaves else hashlib.sha256().digest()
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + tree_hash(leaves[:k]) + tree_hash(leaves[k:])).digest()


def opened_checkpoint(note: bytes, vkey: str) -> tuple[str, int, bytes]:
    """Origin, size and root of a checkpoint, after verifying its signature with this key."""
    name, key_hash, key = vkey.split("+", 2)
    public = base64.b64decode(key)
    assert hashlib.sha256(f"{name}\n".encode() + public).digest()[:4].hex() == key_hash
    text, _, signatures = note.decode().partition("\n\n")
    signed = dict(line.removeprefix("— ").split(" ") for line in signatures.splitlines())
    signature = decoded(signed[name])
    assert signature[:4].hex() == key_hash
    Ed25519PublicKey.from_public_bytes(public[1:]).verify(signature[4:], f"{text}\n".encode())
    origin, size, root, *_ = text.split("\n")
    return origin, int(size), decoded(root)


def entries_of(bundle: bytes) -> list[bytes]:
    entries = []
    while bundle:
        size = int.from_bytes(bundle[:2], "big")
        entries.append(bundle[2 : 2 + size])
        bundle = bundle[2 + size :]
    return entries


@pytest.mark.rule("LOG-1")
def test_the_log_has_every_edition_in_order_and_its_checkpoint_is_signed(logged: Logged) -> None:
    vkey = logged.desk.command("editions", "key").stdout.strip()
    answer = logged.server.http.get("/log/checkpoint")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    origin, size, root = opened_checkpoint(answer.content, vkey)
    assert (origin, size) == (vkey.partition("+")[0], 2)
    bundle = logged.server.http.get(f"/log/tile/entries/000.p/{size}")
    assert "immutable" in bundle.headers["cache-control"]
    entries = entries_of(bundle.content)
    leaves = [hashlib.sha256(b"\x00" + entry).digest() for entry in entries]
    assert tree_hash(leaves) == root
    assert logged.server.http.get(f"/log/tile/0/000.p/{size}").content == b"".join(leaves)
    read = [json.loads(entry) for entry in entries]
    assert [one["edition"] for one in read] == [logged.first, logged.second]
    assert {one["type"] for one in read} == {"edition"}
    times = [datetime.fromisoformat(one["published_at"]) for one in read]
    assert times[0] <= logged.between < times[1] <= now()
    assert [one["rows"]["tenders"]["count"] for one in read] == [5, 8]
    for dataset, one in read[1]["rows"].items():
        assert len(base64.b64decode(one["root"])) == 32
        pages = logged.server.pages(f"/v1/changes?dataset={dataset}", logged.key)
        assert one["count"] == sum(page["count"] for page in pages), dataset
    assert read[0]["rows"]["entities"] == read[1]["rows"]["entities"]
    assert read[0]["rows"]["tenders"]["root"] != read[1]["rows"]["tenders"]["root"]


@pytest.mark.rule("LOG-1")
@pytest.mark.parametrize(
    "path",
    "tile/0/000 tile/0/000.p/3 tile/0/000.p/0 tile/1/000.p/1 tile/00/000.p/1 x tile/0/x000/000.p/1".split(),
)
def test_a_missing_tile_is_a_404(logged: Logged, path: str) -> None:
    assert logged.server.http.get(f"/log/{path}").status_code == 404


@pytest.mark.rule("LOG-1")
def test_a_publication_killed_before_logging_is_logged_by_the_next(logged: Logged, desk: Desk) -> None:
    desk.records(*ENTITIES)
    desk.ingest("portal-za", "a.json", [release("A")])
    first = desk.publish()
    log = desk.home / "editions" / "log"
    before = (log / "entries").read_bytes(), (log / "checkpoint").read_bytes()
    time.sleep(1.1)
    desk.ingest("portal-za", "b.json", [release("B")])
    second = desk.publish()
    (log / "entries").write_bytes(before[0] + b"\x7f\xff{cut short")
    (log / "checkpoint").write_bytes(before[1])
    assert desk.publish() == second
    entries = entries_of((log / "entries").read_bytes())
    assert [json.loads(entry)["edition"] for entry in entries] == [first, second]
    vkey = desk.command("editions", "key").stdout.strip()
    assert opened_checkpoint((log / "checkpoint").read_bytes(), vkey)[1] == 2


@pytest.mark.rule("LOG-2")
def test_known_by_answers_from_the_edition_of_that_time(logged: Logged) -> None:
    def known_by(moment: str, path: str = "/v1/tenders?limit=2") -> dict[str, Any]:
        body = logged.server.body(f"{path}&known_by={moment.replace('+', '%2B')}", logged.key)
        assert body["known_by"] == moment
        return body

    then = logged.between.isoformat()
    body = known_by(then)
    assert (body["edition"], body["count"]) == (logged.first, 2)
    following = known_by(then, f"/v1/tenders?limit=9&cursor={body['next_cursor']}")
    assert (following["edition"], following["count"], following["next_cursor"]) == (logged.first, 3, None)
    assert known_by(now().isoformat())["edition"] == logged.second
    nothing = known_by("2020-01-01T00:00:00Z")
    assert (nothing["data"], nothing["edition"]) == ([], None)
    assert nothing["absent"]["reason"] == "nothing_known"
    file = "/v1/export/files/af-tender-releases.parquet"
    assert logged.server.get(f"{file}?known_by=2020-01-01T00:00:00Z", logged.key).status_code == 404
    early, late = (
        logged.server.get(f"{file}?known_by={at.isoformat().replace('+', '%2B')}", logged.key)
        for at in (logged.between, now())
    )
    assert early.headers["etag"] != late.headers["etag"]


@pytest.mark.rule("LOG-2")
def test_an_impossible_known_by_is_a_400(logged: Logged) -> None:
    later = (now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for wrong in (
        later,
        "2024-01-01",
        "2024-02-30T00:00:00Z",
        "x",
        f"2024-01-01T00:00:00Z&edition={logged.first}",
    ):
        answer = logged.server.get(f"/v1/tenders?known_by={wrong}", logged.key)
        assert (answer.status_code, answer.json()["parameter"]) == (400, "known_by"), wrong
    beside = logged.server.get(
        "/v1/tenders?known_by=2024-01-01T00:00:00Z", logged.key, x_edition=logged.first
    )
    assert beside.status_code == 400


@pytest.mark.rule("LOG-3")
def test_a_locked_view_has_neither_log_nor_known_by(logged: Logged) -> None:
    day = now().date() - timedelta(days=1)
    for path in ("/log/checkpoint", "/log/tile/entries/000.p/1", "/feeds/editions.atom"):
        assert logged.server.http.get(f"/at/{day}{path}").status_code == 404
    key = create_key(logged.desk.home, "starter", "--as-of-max", str(day), **logged.desk.settings)
    assert logged.server.get("/log/checkpoint", key).status_code == 404
    assert logged.server.get("/v1/tenders?known_by=2024-01-01T00:00:00Z", key).status_code == 404
    at = f"/at/{day}/v1/tenders?known_by=2024-01-01T00:00:00Z"
    assert logged.server.get(at, logged.key).status_code == 404


@pytest.mark.rule("LOG-4")
def test_editions_and_tenders_are_feeds(logged: Logged) -> None:
    answer = logged.server.http.get("/feeds/editions.atom")
    assert answer.headers["content-type"] == "application/atom+xml; charset=utf-8"
    feed = ElementTree.fromstring(answer.content)  # noqa: S314 - our own
    ids = [entry.findtext(f"{ATOM}id") for entry in feed.iter(f"{ATOM}entry")]
    assert ids == [f"urn:sankofa:edition:{one}" for one in (logged.second, logged.first)]
    tenders = logged.server.get("/feeds/tenders.atom?country=ZA&limit=3", logged.key)
    rows = logged.server.get("/v1/tenders?country=ZA&limit=3", logged.key).json()["data"]
    entries = list(ElementTree.fromstring(tenders.content).iter(f"{ATOM}entry"))  # noqa: S314 - our own answer
    assert [entry.findtext(f"{ATOM}updated") for entry in entries] == [row["release_date"] for row in rows]
    assert logged.server.http.get("/feeds/tenders.atom?country=ZA").status_code == 401


@pytest.mark.rule("LOG-4")
def test_a_feed_is_valid_xml_whatever_a_publisher_typed(plain_desk: Desk) -> None:
    titles = "Road\0works", "Road\x1fworks \ufffe", "Road|works ]]> <b>"
    rows = [
        release(f"r{n}", f"2025-06-0{9 - n}T10:00:00Z", tender={"id": "t", "title": title})
        for n, title in enumerate(titles)
    ]
    plain_desk.ingest("portal-za", "typed.json", package(*rows))
    with plain_desk.publish_and_serve() as caller:
        plain = caller.server.get("/feeds/tenders.atom?country=ZA", caller.key).content
        searched = caller.server.get("/feeds/tenders.atom?country=ZA&query=Road|works", caller.key).content
    entries = ElementTree.fromstring(plain).iter(f"{ATOM}entry")  # noqa: S314 - our own answer
    titles_shown = [" ".join((entry.findtext(f"{ATOM}title") or "").split()) for entry in entries]
    assert titles_shown == ["Road works", "Road works", "Road|works ]]> <b>"]
    address = ElementTree.fromstring(searched).findtext(f"{ATOM}id") or ""  # noqa: S314 - our own answer
    assert address.endswith("/feeds/tenders.atom?country=ZA&query=Road%7Cworks")


def root_by_path(leaf: bytes, index: int, size: int, path: list[str]) -> bytes:
    """RFC 9162, 2.1.3.2, step by step."""
    assert index < size
    fn, sn, r = index, size - 1, leaf
    for p in map(decoded, path):
        assert sn != 0
        if fn % 2 == 1 or fn == sn:
            r = hashlib.sha256(b"\x01" + p + r).digest()
            if fn % 2 == 0:
                while not (fn % 2 == 1 or fn == 0):
                    fn, sn = fn // 2, sn // 2
        else:
            r = hashlib.sha256(b"\x01" + r + p).digest()
        fn, sn = fn // 2, sn // 2
    assert sn == 0
    return r


class Spelt(str):
    """A number with its original spelling."""

    __slots__ = ()


def rfc8785(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{rfc8785(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(rfc8785, value)) + "]"
    return value if isinstance(value, Spelt) else json.dumps(value, ensure_ascii=False)


def check_proof(text: str, vkey: str) -> int:
    """Follow the proof of every row to the signed checkpoint; returns the number of rows."""
    body = json.loads(text, parse_int=Spelt, parse_float=Spelt)
    proof = body["proof"]
    _, size, root = opened_checkpoint(proof["checkpoint"].encode(), vkey)
    entry = decoded(proof["entry"])
    leaf = hashlib.sha256(b"\x00" + entry).digest()
    assert root_by_path(leaf, int(proof["entry_index"]), size, proof["entry_path"]) == root
    logged = json.loads(entry)
    assert logged["edition"] == proof["edition"] == body["edition"]
    dataset = logged["rows"][proof["dataset"]]
    for row, step in zip(body["data"], proof["rows"], strict=True):
        fields = {k: v for k, v in row.items() if k not in ("superseded_at", "superseding_record_ref")}
        salt = decoded(step["salt"])
        assert len(salt) == 16
        leaf = hashlib.sha256(b"\x00" + salt + rfc8785(fields).encode()).digest()
        computed = root_by_path(leaf, int(step["index"]), dataset["count"], step["path"])
        assert base64.b64encode(computed).decode() == dataset["root"]
    return len(body["data"])


@pytest.mark.rule("LOG-5")
def test_each_row_is_proven_to_belong_to_its_edition(
    server: LiveServer, sample_home: Path, paid_key: str, tmp_path: Path
) -> None:
    vkey = run(sample_home, "editions", "key").stdout.strip()
    company = "DC46AF1B1AAA424B58D1368176"
    for path in (
        f"/v1/fundamentals/{company}?vintages=all",
        f"/v1/fundamentals/{company}?as_of=2022-06-30",
        "/v1/tenders?country=ZA&limit=40",
        "/v1/tenders?country=KE&limit=3",
        "/v1/macro?country=ZA&limit=300",
        "/v1/macro?series=FX.EUR.ZAR&limit=300",
        f"/v1/entities/{company}?",
        f"/v1/crosswalk/{company}?",
    ):
        answer = server.get(f"{path}&proof=true", paid_key)
        assert answer.status_code == 200, answer.text
        assert check_proof(answer.text, vkey) > 0, path
        assert verify(answer.text, key=vkey) == answer.json()["edition"]
        file = tmp_path / "answer.json"
        file.write_text(answer.text)
        succeed(sample_home, "verify", file, "--key", vkey)


@pytest.mark.rule("LOG-5")
def test_an_altered_answer_is_not_verified(
    server: LiveServer, sample_home: Path, paid_key: str, tmp_path: Path
) -> None:
    vkey = run(sample_home, "editions", "key").stdout.strip()
    path = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176?limit=3&proof=true"
    good = server.get(path, paid_key).json()
    assert verify(json.dumps(good), key=vkey)

    def changed(change: Callable[[dict[str, Any]], object]) -> str:
        body = json.loads(server.get(path, paid_key).text)
        change(body)
        return json.dumps(body)

    checkpoint = good["proof"]["checkpoint"]
    forged = checkpoint.replace("\n1\n", "\n2\n")
    amended, cut = checkpoint.replace("\n\n", "\n\nmore\n\n"), checkpoint.removesuffix("\n")

    def repeated(body: dict[str, Any]) -> None:
        body["data"][1], body["proof"]["rows"][1] = body["data"][0], body["proof"]["rows"][0]

    text = json.dumps(good)
    for wrong, why in (
        (text.replace('"data": [', '"data": [], "data": [', 1), "twice"),
        (text.replace('"vintage": ', '"vintage": 9, "vintage": ', 1), "twice"),
        (changed(repeated), "has a row twice"),
        (changed(lambda one: one.update(count=9)), "another number of rows"),
        (changed(lambda one: one["proof"].update(checkpoint=amended)), "signature of"),
        (changed(lambda one: one["proof"].update(checkpoint=cut)), "not a signed note"),
        (changed(lambda one: one["proof"].update(checkpoint="")), "No trusted key signed"),
        ('{"proof":' + "[" * 100_000, "not JSON"),
        (text.replace('"vintage": ', '"vintage": ' + "[" * 800 + "]" * 800 + ', "x": ', 1), "too deeply"),
        (changed(lambda one: one["data"][0].update(vintage=9)), "Row 0"),
        (changed(lambda one: one["data"].reverse()), "Row 0"),
        (changed(lambda one: one["data"].pop()), "another number of rows"),
        (changed(lambda one: one["proof"]["rows"][1].update(index=0)), "Row 1|levels"),
        (changed(lambda one: one.update(edition="another")), "about another"),
        (changed(lambda one: one["proof"].update(checkpoint=forged)), "signature of"),
        (changed(lambda one: one.pop("proof")), "proof=true"),
    ):
        with pytest.raises(ValueError, match=why):
            verify(wrong, key=vkey)
    for other in ("elsewhere+" + vkey.partition("+")[2], vkey[:-1]):
        with pytest.raises(ValueError, match="The key is not a verifier key"):
            verify(json.dumps(good), key=other)
    file = tmp_path / "wrong.json"
    file.write_text(changed(lambda one: one["data"][0].update(vintage=9)))
    refused = run(sample_home, "verify", file, "--key", vkey)
    assert refused.returncode == 1
    assert "Row 0 was not in" in refused.stderr


@pytest.mark.rule("LOG-5")
def test_asking_for_a_proof_that_does_not_exist_is_refused(server: LiveServer, paid_key: str) -> None:
    for path in ("tenders?detail=compact&proof=true", "tenders?proof=yes", "tenders?format=csv&proof=true"):
        answer = server.get(f"/v1/{path}", paid_key)
        assert (answer.status_code, answer.json()["parameter"]) == (400, "proof"), path
    assert server.get("/v1/coverage?proof=true", paid_key).status_code == 400
    assert server.get("/at/2024-01-01/v1/tenders?proof=true", paid_key).status_code == 404


def check_growth(first: int, second: int, old_root: bytes, new_root: bytes, path: list[bytes]) -> None:
    """RFC 9162, 2.1.4.2, step by step, for 0 < first < second."""
    if first & (first - 1) == 0:
        path = [old_root, *path]
    fn, sn = first - 1, second - 1
    while fn % 2 == 1:
        fn, sn = fn // 2, sn // 2
    fr = sr = path[0]
    for c in path[1:]:
        assert sn != 0
        if fn % 2 == 1 or fn == sn:
            fr = hashlib.sha256(b"\x01" + c + fr).digest()
            sr = hashlib.sha256(b"\x01" + c + sr).digest()
            while not (fn % 2 == 1 or fn == 0):
                fn, sn = fn // 2, sn // 2
        else:
            sr = hashlib.sha256(b"\x01" + sr + c).digest()
        fn, sn = fn // 2, sn // 2
    assert (sn, fr, sr) == (0, old_root, new_root)


@pytest.mark.rule("LOG-6")
def test_growth_is_proven_between_any_two_sizes_but_never_for_a_rewritten_past() -> None:
    key = Ed25519PrivateKey.generate()
    public = b"\x01" + key.public_key().public_bytes_raw()
    key_hash = hashlib.sha256(b"log.example\n" + public).digest()[:4]
    vkey = f"log.example+{key_hash.hex()}+{base64.b64encode(public).decode()}"
    entries = [json.dumps({"edition": str(n), "rows": {"tenders": {"count": 0}}}).encode() for n in range(14)]
    leaves = [hashlib.sha256(b"\x00" + entry).digest() for entry in entries]

    def note(leaves: list[bytes]) -> str:
        root = base64.b64encode(tree_hash(leaves)).decode()
        text = f"log.example\n{len(leaves)}\n{root}\n"
        signature = base64.b64encode(key_hash + key.sign(text.encode())).decode()
        return f"{text}\n— log.example {signature}\n"

    answer = ""
    for size in range(1, len(leaves) + 1):
        for first in range(1, size + 1):
            path = consistency_path(leaves[:size], first)
            if first < size:
                check_growth(first, size, tree_hash(leaves[:first]), tree_hash(leaves[:size]), path)
            proof = {
                "dataset": "tenders",
                "edition": "0",
                "checkpoint": note(leaves[:size]),
                "entry": base64.b64encode(entries[0]).decode(),
                "entry_index": 0,
                "entry_path": [
                    base64.b64encode(one).decode() for one in inclusion_path(levels_above(leaves[:size]), 0)
                ],
                "rows": [],
                "consistency_path": [base64.b64encode(one).decode() for one in path],
            }
            answer = json.dumps({"data": [], "edition": "0", "proof": proof})
            assert verify(answer, vkey, since=note(leaves[:first])) == "0"
            rewritten = note([*leaves[: first - 1], leaves[-1 if first < 14 else 0]])
            with pytest.raises(ValueError, match="rewritten"):
                verify(answer, vkey, since=rewritten)
    with pytest.raises(ValueError, match="15 entries before"):
        verify(answer, vkey, since=note([*leaves, leaves[0]]))


@pytest.mark.rule("LOG-6")
def test_a_row_is_proven_by_its_key_in_the_edition_asked_for(logged: Logged, tmp_path: Path) -> None:
    vkey = logged.desk.command("editions", "key").stdout.strip()
    log = (logged.desk.home / "editions" / "log" / "entries").read_bytes()
    leaves = [hashlib.sha256(b"\x00" + entry).digest() for entry in entries_of(log)]
    newest = ""
    changes = logged.server.get(f"/v1/changes?dataset=tenders&edition={logged.first}", logged.key)
    for change in changes.json()["data"]:
        for name in (f"tenders:{json.dumps(change['key'])}", "tenders:" + "|".join(change["key"])):
            for edition in (logged.first, logged.second):
                query = {"record_ref": name, "edition": edition, "since_size": "1"}
                answer = logged.server.get(f"/v1/proof?{urlencode(query)}", logged.key)
                assert answer.status_code == 200, answer.text
                assert answer.json()["data"] == [change["row"]]
                assert check_proof(answer.text, vkey) == 1
                assert verify(answer.text, key=vkey) == edition
                path = list(map(base64.b64decode, answer.json()["proof"]["consistency_path"]))
                check_growth(1, 2, leaves[0], tree_hash(leaves), path)
                newest = answer.text
    added = logged.server.get(f"/v1/changes?dataset=tenders&since={logged.first}", logged.key)
    name = f"tenders:{json.dumps(added.json()['data'][0]['key'])}"
    query = {"record_ref": name, "edition": logged.first}
    assert logged.server.get(f"/v1/proof?{urlencode(query)}", logged.key).status_code == 404
    beyond = {"record_ref": name, "since_size": "3"}
    refused = logged.server.get(f"/v1/proof?{urlencode(beyond)}", logged.key)
    assert (refused.status_code, refused.json()["parameter"]) == (400, "since_size")
    older, newer = tmp_path / "older", tmp_path / "newer.json"
    older.write_bytes((logged.desk.home / "editions" / "log" / "checkpoint").read_bytes())
    newer.write_text(newest)
    assert logged.desk.command("verify", newer, "--since", older).returncode == 0


@pytest.mark.rule("LOG-6")
def test_rows_of_every_dataset_are_proven_by_name(server: LiveServer, sample_home: Path, paid_key: str):
    vkey = run(sample_home, "editions", "key").stdout.strip()

    def proof(name: str, key: str = paid_key, base: str = "") -> httpx.Response:
        return server.get(f"{base}/v1/proof?{urlencode({'record_ref': name})}", key)

    company = "DC46AF1B1AAA424B58D1368176"
    for row in server.get(f"/v1/fundamentals/{company}?vintages=all", paid_key).json()["data"][::30]:
        answer = proof(row["record_ref"])
        assert (answer.json()["data"], answer.json()["proof"]["dataset"]) == ([row], "fundamentals")
        assert check_proof(answer.text, vkey) == 1
    for dataset in ("crosswalk", "entities", "fundamentals", "macro-annual", "macro-series", "tenders"):
        page = server.get(f"/v1/changes?dataset={dataset}&limit=300", paid_key)
        for change in page.json()["data"][:: 99 if dataset != "crosswalk" else 5]:
            answer = proof(f"{dataset}:{json.dumps(change['key'])}")
            assert (answer.json()["data"], answer.json()["proof"]["dataset"]) == ([change["row"]], dataset)
            assert check_proof(answer.text, vkey) == 1
            free = dataset != "crosswalk" or change["row"]["id_type"] in ("lei", "ticker")
            name = f"{dataset}:{json.dumps(change['key'])}"
            assert proof(name, "sankofa-sandbox").status_code == (200 if free else 402), name
        for separator in ("|", ",", ":"):
            joined = proof(f"{dataset}:{separator.join(change['key'])}")
            assert joined.json()["data"] == [change["row"]], separator
    for unknown in ("0" * 24, "tenders:ZA", "macro-series:=FX.EUR.ZAR|1", "entities:[1]", "crosswalk:[]"):
        assert proof(unknown).status_code == 404, unknown
    for wrong in ("x", "companies:x", f"{company}:x"):
        assert proof(wrong).status_code == 400, wrong
    assert proof(row["record_ref"], base="/at/2024-01-01").status_code == 404


def check_file_proof(content: bytes, text: str, vkey: str) -> str:
    """Follow a file's digest through the manifest and the entry to the signed checkpoint."""
    proof = json.loads(text)
    _, size, root = opened_checkpoint(proof["checkpoint"].encode(), vkey)
    entry = base64.b64decode(proof["entry"])
    leaf = hashlib.sha256(b"\x00" + entry).digest()
    assert root_by_path(leaf, proof["entry_index"], size, proof["entry_path"]) == root
    assert hashlib.sha256(proof["manifest"].encode()).hexdigest() == json.loads(entry)["manifest_sha256"]
    listed = {file["name"]: file["sha256"] for file in json.loads(proof["manifest"])["files"]}
    assert hashlib.sha256(content).hexdigest() == proof["sha256"] == listed[proof["file"]]
    return str(json.loads(entry)["edition"])


@pytest.mark.rule("LOG-7")
def test_each_parquet_file_is_proven_to_belong_to_its_edition(
    server: LiveServer, sample_home: Path, paid_key: str, tmp_path: Path
) -> None:
    vkey = run(sample_home, "editions", "key").stdout.strip()
    export = server.get("/v1/export", paid_key).json()

    def downloaded(file: dict[str, Any]) -> tuple[str, Path, bytes, str]:
        path = file["url"].removeprefix(server.url)
        content, proof = (server.get(path + end, paid_key) for end in ("", ".proof"))
        assert proof.headers["content-type"] == "application/json", proof.text
        here = tmp_path / file["name"]
        here.write_bytes(content.content)
        return path, here, content.content, proof.text

    for file in export["data"]:
        path, here, content, proof = downloaded(file)
        assert check_file_proof(content, proof, vkey) == export["edition"]
        with pytest.raises(ValueError, match=r"parquet\.proof is missing"):
            verify(here, vkey)
        here.with_name(f"{file['name']}.proof").write_text(proof)
        assert verify(here, vkey) == verify(str(here), vkey) == export["edition"]
        if file["access"] == "licensed":
            assert server.http.get(f"{path}.proof").status_code == 401
            assert server.get(f"{path}.proof", "sankofa-sandbox").status_code == 402
    file = export["data"][0]
    path, here, content, proof = downloaded(file)
    succeed(sample_home, "verify", here, "--key", vkey)
    by_url = run(sample_home, "verify", file["url"], "--key", vkey, "--api-key", paid_key)
    assert (by_url.returncode, export["edition"] in by_url.stdout) == (0, True), by_url.stderr
    at = server.get(f"/at/2024-01-01{path}.proof", paid_key)
    assert at.status_code == 404
    assert server.get("/open/none.parquet.proof", paid_key).status_code == 404
    checkpoint = json.loads(proof)["checkpoint"]
    assert verify(here, vkey, since=checkpoint) == export["edition"]
    with pytest.raises(ValueError, match="not a signed note"):
        verify(here, vkey, since=checkpoint.removesuffix("\n"))
    here.write_bytes(content[:-1] + b"X")
    with pytest.raises(ValueError, match="is not"):
        verify(here, vkey)
    other = json.loads(proof)
    manifest = other["manifest"].replace(other["sha256"], hashlib.sha256(here.read_bytes()).hexdigest())
    here.with_name(f"{file['name']}.proof").write_text(json.dumps(other | {"manifest": manifest}))
    refused = run(sample_home, "verify", here, "--key", vkey)
    assert (refused.returncode, "manifest is not" in refused.stderr) == (1, True)


@pytest.mark.rule("LOG-7")
def test_the_log_is_verified_with_the_editions(logged: Logged, desk: Desk) -> None:
    whole = logged.desk.command("editions", "verify")
    assert (whole.returncode, whole.stdout.splitlines()[-1]) == (0, "log  signed and whole")
    desk.records(*ENTITIES)
    desk.ingest("portal-za", "a.json", [release("A")])
    edition = desk.publish()
    log = desk.home / "editions" / "log"
    for path, complaint in ((log / "rows" / edition, "hashes of"), (log / "entries", "is not the log")):
        content = path.read_bytes()
        at = content.index(b"groups") + 12 if path.name == edition else 60
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        broken = desk.command("editions", "verify")
        assert (broken.returncode, complaint in broken.stdout) == (1, True), broken.stdout
        path.write_bytes(content)
