"""Ingested OCDS files: which releases are accepted, corrected and rejected."""

import gzip
import json
from typing import Any

import pytest

from tests.depth import deep_after
from tests.spec.market import Desk, PaidCaller, identified, package, party, release, without_mark
from tests.spec.market import desk as desk
from tests.spec.market import plain_desk as plain_desk
from tests.spec.tender_inputs import ACCENTS, FILES, lines, titled, zipped
from tests.spec.tender_inputs import market as market


@pytest.mark.rule("ADP-1")
def test_every_kind_of_file_gives_the_releases_in_it_and_no_others(market: PaidCaller) -> None:
    served: dict[str, set[str]] = {name: set() for name in FILES}
    for row in market.tenders():
        name = without_mark(row["source_ref"]).removeprefix("portal-za:").partition("#")[0]
        served[name].add(row["release_id"])
    assert served == {name: ids for name, (_, ids) in FILES.items()}


def test_every_encoding_is_decoded(market: PaidCaller) -> None:
    for ocid in ("bom", "utf16", "utf16be", "utf32", "cp1252"):
        assert market.tender(ocid)["title"] == ACCENTS, ocid


@pytest.mark.rule("PROV-2")
@pytest.mark.parametrize(
    ("ocid", "location"),
    [
        ("package-b", "package.json#releases[1]"),
        ("list-b", "list.json#[1]"),
        ("lop-b", "list-of-packages.json#[0].releases[1]"),
        ("lines-b", "lines.jsonl#line 2"),
        ("blank-b", "blank-lines.jsonl#line 5"),
        ("embedded", "records-embedded.json#records[0].releases[0]"),
        ("linked", "records-linked.json#records[0].compiledRelease"),
        ("zip-b", "archive.zip#two.jsonl: line 1"),
    ],
)
def test_source_ref_says_where_in_which_file(market: PaidCaller, ocid: str, location: str) -> None:
    assert without_mark(market.tender(ocid)["source_ref"]) == f"portal-za:{location}"


# Corrections


def served_title(desk: Desk, ocid: str = "x") -> list[str]:
    with desk.publish_and_serve() as caller:
        return [row["title"] for row in caller.tenders() if row["ocid"] == f"ocds-test-{ocid}"]


@pytest.mark.deep
@pytest.mark.rule("TEND-2")
def test_the_last_captured_content_is_served_even_if_it_returns_to_an_earlier_one(desk: Desk):
    one, two = package(titled("x", "A")), package(titled("x", "B"))
    assert desk.ingest("portal-za", "1.json", one)["appended"] == 1
    assert desk.ingest("portal-za", "2.json", two)["appended"] == 1
    assert desk.ingest("portal-za", "3.json", json.dumps(one, indent=1))["appended"] == 1
    assert served_title(desk) == ["A"]
    assert desk.ingest("portal-za", "2.json", two) == {
        **dict.fromkeys(("appended", "withheld", "rejected", "skipped"), 0),
        "read": 1,
        "unchanged": 1,
    }
    assert served_title(desk) == ["A"]


@pytest.mark.rule("ING-3")
@pytest.mark.both_engines
def test_the_same_file_twice_changes_nothing_not_even_the_edition(desk: Desk) -> None:
    content = package(titled("x"), titled("y"), titled("x", number=2))
    desk.ingest("portal-za", "a.json", content)
    edition = desk.publish()
    again = desk.ingest("portal-za", "a.json", content)
    assert (again["read"], again["unchanged"], again["appended"]) == (3, 3, 0)
    renamed = desk.ingest("portal-za", "b.json", content)
    assert (renamed["unchanged"], renamed["appended"]) == (3, 0)
    assert desk.publish() == edition


def test_within_one_file_the_later_of_two_contents_is_served(plain_desk: Desk) -> None:
    counted = plain_desk.ingest(
        "portal-za", "a.json", package(titled("x", "A"), titled("x", "B"), titled("x", "B"))
    )
    assert (counted["appended"], counted["unchanged"]) == (2, 1)
    assert served_title(plain_desk) == ["B"]


@pytest.mark.rule("TEND-2")
def test_another_date_or_another_id_is_another_release(plain_desk: Desk) -> None:
    plain_desk.ingest(
        "portal-za",
        "a.json",
        package(titled("x", "1"), titled("x", "2", number=2), {**titled("x", "3"), "date": "2025-06-02"}),
    )
    assert served_title(plain_desk) == ["3", "1", "2"]


# Files that cannot be read


BAD = [
    ("no ocid", {"id": "1", "date": "2025-01-01"}, "ocid"),
    ("no id", {"ocid": "o", "date": "2025-01-01"}, "id"),
    ("no date", {"ocid": "o", "id": "1"}, "date"),
    ("blank ocid", {"ocid": "  ", "id": "1", "date": "2025-01-01"}, "ocid"),
    ("list for an id", {"ocid": "o", "id": ["1"], "date": "2025-01-01"}, "id"),
    ("placeholder date", {"ocid": "o", "id": "1", "date": "0001-01-01T00:00:00Z"}, "date"),
    ("impossible date", {"ocid": "o", "id": "1", "date": "2025-02-30"}, "date"),
    ("date in the future", {"ocid": "o", "id": "1", "date": "2999-01-01"}, "date"),
    ("not an object", 5, "object"),
    ("a text", "release", "object"),
    ("a list", [[]], "object"),
    ("null", None, "object"),
]


@pytest.mark.rule("TEND-4")
def test_a_release_without_ocid_id_or_date_is_rejected_with_its_position(desk: Desk) -> None:
    content = []
    for number, (_, bad, _) in enumerate(BAD):
        content += [titled(f"good-{number}"), bad]
    counted = desk.ingest("portal-za", "bad.json", package(*content))
    assert (counted["read"], counted["appended"], counted["rejected"]) == (2 * len(BAD), len(BAD), len(BAD))
    rejected = desk.rejects()
    assert [row["file"] for row in rejected] == ["bad.json"] * len(BAD)
    assert [row["position"] for row in rejected] == [f"releases[{2 * n + 1}]" for n in range(len(BAD))]
    for row, (what, _, reason) in zip(rejected, BAD, strict=True):
        assert reason in row["reason"], what


@pytest.mark.rule("TEND-4")
def test_a_bad_field_is_null_or_dropped_and_named_and_the_rest_of_the_release_stays(plain_desk: Desk) -> None:
    bad = release(
        "bad",
        tender={
            "title": ["a list"],
            "value": {"amount": "much", "currency": "ZZZ"},
            "tenderPeriod": {"startDate": "2025-02-30", "endDate": "2025-03-01"},
            "numberOfTenderers": 2.5,
            "items": "none",
        },
        awards=[7, {"id": "a", "date": "0000-00-00"}, None],
    )
    text = json.dumps(package(bad)).replace('"much"', "NaN")
    counted = plain_desk.ingest("portal-za", "fields.json", text)
    assert (counted["read"], counted["appended"]) == (1, 1)
    assert {(row["position"], row["reason"]) for row in plain_desk.rejects()} == {
        ("releases[0]: tender.title", "expected text"),
        ("releases[0]: tender.value.amount", "not a finite number"),
        ("releases[0]: tender.value.currency", "unknown currency"),
        ("releases[0]: tender.tenderPeriod.startDate", "no such date"),
        ("releases[0]: tender.numberOfTenderers", "expected a whole number"),
        ("releases[0]: tender.items", "expected a list"),
        ("releases[0]: awards[0]", "expected an object"),
        ("releases[0]: awards[1].date", "no such date"),
        ("releases[0]: awards[2]", "expected an object"),
    }
    with plain_desk.publish_and_serve() as caller:
        row = caller.tender("bad")
        assert (row["title"], row["value_amount"], row["value_currency"]) == (None, None, None)
        assert row["award_count"] == 1
        assert row["release"]["tender"]["tenderPeriod"] == {"startDate": None, "endDate": "2025-03-01"}


def test_a_malformed_line_among_good_ones_is_rejected_by_its_number(desk: Desk) -> None:
    half = lines(titled("half \ud83d"))
    assert half.isascii()
    text = lines(titled("a")) + "{broken\n" + lines(titled("b")) + '{"ocid": \n' + half + lines(titled("c"))
    counted = desk.ingest("portal-za", "mixed.jsonl", text)
    assert (counted["appended"], counted["rejected"]) == (3, 3)
    assert [row["position"] for row in desk.rejects()] == ["line 2", "line 4", "line 5"]
    assert all(row["reason"].startswith("not JSON") for row in desk.rejects())


WHOLE = json.dumps(package(*(titled(f"t-{n}") for n in range(20))))
WRONG: dict[str, Any] = {
    "truncated.json": WHOLE[:-1],
    "cut-in-the-middle.json": WHOLE[: len(WHOLE) // 2],
    "truncated.json.gz": gzip.compress(WHOLE.encode())[:-20],
    "empty.json": "",
    "blank.json": " \n",
    "html.json": "<html></html>",
    "other.json": {"type": "FeatureCollection", "features": []},
    "number.json": "5",
    "other-list.json": [{"type": "Feature"}, {"type": "Feature"}],
    "other-lines.jsonl": '{"type": "Feature"}\n{"type": "Feature"}\n',
    "lines-of-text.jsonl": "one\ntwo\n",
    "list-of-lists.json": [[1, 2], [3, 4]],
    "other-list.zip": zipped(one_json='[{"a": 1}]'),
    "releases-is-an-object.json": {"releases": {"a": titled("a")}},
    "no-json.zip": zipped(readme_txt="nothing"),
    "broken.zip": zipped(one_json=WHOLE)[:-30],
}


@pytest.mark.parametrize("name", deep_after(5, [*WRONG]))
def test_a_file_that_is_not_ocds_is_an_error_by_name_and_nothing_of_it_is_kept(plain_desk: Desk, name: str):
    plain_desk.ingest("portal-za", "good.json", package(titled("good")))
    done = plain_desk.command("ingest", "portal-za", plain_desk.write(name, WRONG[name]))
    assert done.returncode != 0
    assert name.split(".")[0] in done.stderr
    assert "Traceback" not in done.stderr
    plain_desk.publish()
    database = (plain_desk.home / "ledger.sqlite").read_bytes()
    assert b"ocds-test-good" in database
    assert b"ocds-test-t-0" not in database
    assert plain_desk.rejects() == []


@pytest.mark.parametrize("name", ["some.jsonl", "some.json"])
def test_one_release_among_others_makes_a_file_ocds(plain_desk: Desk, name: str) -> None:
    rows = [{"type": "Feature"}, titled("a"), {"type": "Feature"}]
    content = "\n".join(map(json.dumps, rows)) if name.endswith("l") else json.dumps(rows)
    counted = plain_desk.ingest("portal-za", name, content)
    assert (counted["appended"], counted["rejected"]) == (1, 2)


@pytest.mark.parametrize(
    "number", deep_after(1, ["9" * 5_000, "-" + "9" * 5_000, "9" * 5_000 + ".5", "9" * 900, "1e5000"])
)
@pytest.mark.parametrize("name", ["long.json", "long.jsonl"])
def test_a_number_with_too_many_digits_becomes_null_and_the_release_stays(
    plain_desk: Desk, name: str, number: str
) -> None:
    long = release("long", tender={"title": "Roads", "value": {"amount": 12345, "currency": "ZAR"}})
    texts = [json.dumps(long).replace("12345", number), json.dumps(titled("plain"))]
    content = "\n".join(texts) if name.endswith("l") else f"[{','.join(texts)}]"
    counted = plain_desk.ingest("portal-za", name, content)
    assert (counted["appended"], counted["rejected"]) == (2, 1)
    (rejected,) = plain_desk.rejects()
    assert "amount" in rejected["position"]
    with plain_desk.publish_and_serve() as caller:
        assert (caller.tender("long")["value_amount"], caller.tender("long")["title"]) == (None, "Roads")


@pytest.mark.rule("TEND-10")
def test_without_a_country_of_its_source_a_release_takes_that_of_its_buyer(plain_desk: Desk) -> None:
    ministry = "Ministry of Works and Transport"
    uganda, nigeria = ({"address": {"countryName": name}} for name in ("Uganda", "NG"))
    several = [party("a", ministry, "buyer", **uganda), party("b", ministry, "procuringEntity", **nigeria)]
    ingested = plain_desk.ingest(
        "portal-any",
        "any.json",
        package(
            release("listed", parties=[party("m", ministry, "buyer", **uganda)]),
            release("inline", buyer={"name": ministry, **nigeria}),
            release("scheme", buyer={"name": ministry, **identified("UG-ENT", "7")}),
            release("supplied", parties=[party("s", "Kojo Motors Limited", "supplier", **uganda)]),
            release("several", parties=several),
            release("odd", buyer="Ministry", parties=["x", {"roles": "buyer"}], tender=[]),
        ),
    )
    assert ingested["appended"] == 6
    silent = {where.partition(":")[0] for where, why in _rejects(plain_desk) if "not served" in why}
    assert silent == {f"releases[{n}]" for n in (3, 4, 5)}
    with plain_desk.publish_and_serve() as caller:
        assert {row["ocid"] for row in caller.tenders(country="UG")} == {
            "ocds-test-listed",
            "ocds-test-scheme",
        }
        assert {row["ocid"] for row in caller.tenders(country="NG")} == {"ocds-test-inline"}
        assert caller.tool("search_tenders")[1]["count"] == 3


def _rejects(desk: Desk) -> list[tuple[str, str]]:
    return [(rejected["position"], rejected["reason"]) for rejected in desk.rejects()]
