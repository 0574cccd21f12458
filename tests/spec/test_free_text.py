"""People in the free text of a release: named by no surface, and the rest of the sentence stays."""

import json
from typing import Any

import pytest

from tests.spec.market import Desk, package, release
from tests.spec.market import plain_desk as plain_desk

TEXT = (
    "Qseen works. Contact person: Zqthemba Zqkhoza; cell 0825550199. "
    "Evaluation by Dr Q. Zqpillay for Mr Price Group Limited."
)
TOLD = (
    "Qseen works. Contact person: [withheld]; cell [withheld]. "
    "Evaluation by Dr [withheld] for Mr Price Group Limited."
)
FIELDS: dict[str, Any] = {
    "tender": {
        "title": TEXT,
        "title_fr": TEXT,
        "description": TEXT,
        "category": TEXT,
        "procurementMethodDetails": TEXT,
        "statusDetails": TEXT,
        "eligibilityCriteria": TEXT,
        "documents": [{"id": "1", "title": TEXT, "description": TEXT}],
        "items": [{"id": "1", "description": TEXT, "attributes": [{"id": "1", "name": TEXT, "value": TEXT}]}],
        "amendments": [{"id": "1", "rationale": TEXT, "description": TEXT}],
        "lots": [{"id": "1", "title": TEXT, "submissionTerms": {"subcontractingClauses": [TEXT, TEXT]}}],
    },
    "planning": {"rationale": TEXT, "budget": {"description": TEXT, "project": TEXT}},
    "awards": [{"id": "1", "title": TEXT, "description": TEXT, "items": [{"id": "1", "description": TEXT}]}],
    "contracts": [
        {"id": "1", "title": TEXT, "milestones": [{"id": "1", "title": TEXT, "description": TEXT}]}
    ],
    "bids": {"statistics": [{"id": "1", "measure": "bids", "notes": TEXT}]},
}


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [value] if isinstance(value, str) else []


@pytest.mark.rule("GATE-8")
def test_no_surface_names_whom_a_free_text_tells_to_contact(plain_desk: Desk) -> None:
    given = texts(FIELDS).count(TEXT) - 1  # the portal's category is on the row, not in the release
    plain_desk.ingest("portal-za", "a.json", package(release("a", **FIELDS)))
    plain_desk.publish()
    with plain_desk.serve() as asked:
        row = asked.tender("a")
        assert texts(row["release"]).count(TOLD) == given
        assert (row["title"], row["category"]) == (TOLD, TOLD)
        answers = [
            asked.server.get(path, asked.key).text
            for path in ("/v1/tenders", "/tenders", "/v1/tender-parties")
        ]
        answers += [json.dumps(asked.tool("search_tenders", query="qseen", detail="full")[1])]
        assert "Qseen" in answers[0] + answers[3]
        assert asked.tool("search_tenders", query="zqthemba")[1]["count"] == 0
    held = [path.read_bytes() for path in plain_desk.home.rglob("*") if path.is_file()]
    for secret in ("zqthemba", "zqkhoza", "zqpillay", "0825550199"):
        assert not [answer for answer in answers if secret in answer.lower()]
        assert not [content for content in held if secret.encode() in content.lower()]


@pytest.mark.rule("GATE-4")
def test_no_release_names_whom_another_of_its_process_withholds(plain_desk: Desk) -> None:
    person = {"id": "w", "name": "Zqlindiwe Zqmokgatle", "roles": ["supplier"]}
    releases = [
        release("p", f"2025-06-0{number}T10:00:00Z", number, **fields)
        for number, fields in enumerate(
            (
                {"tender": {"title": "Qfirst call, Zqmokgatle Zqlindiwe asked"}},
                {"parties": [person], "awards": [{"id": "1", "suppliers": [{"id": "w"}]}]},
                {
                    "contracts": [
                        {"id": "1", "documents": [{"id": "1", "title": "Qlast ZQLINDIWE ZQMOKGATLE"}]}
                    ]
                },
            ),
            1,
        )
    ]
    other = release("q", tender={"title": "Qother process"})
    plain_desk.ingest("portal-za", "a.json", package(releases[0], other, *releases[1:]))
    plain_desk.publish()
    with plain_desk.serve() as asked:
        told = asked.server.get("/v1/tenders", asked.key).text
        assert "Qfirst call, [withheld] asked" in told
        assert "Qlast [withheld]" in told
        assert [row["withheld_parties"] for row in asked.tenders() if row["ocid"].endswith("-p")] == [0, 1, 0]
        contract = asked.server.get("/v1/contracts/ocds-test-p", asked.key).text
        assert "zqmokgatle" not in (told + contract).lower()
    held = [path.read_bytes().lower() for path in plain_desk.home.rglob("*") if path.is_file()]
    assert not [content for content in held if b"zqmokgatle" in content]
