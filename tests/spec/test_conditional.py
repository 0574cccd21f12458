"""Entity tags: of edition and query; 304 on If-None-Match (contract: ENV-5)."""

import pytest

from tests.every import every
from tests.live import LiveServer

ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"
NOBODY = "/v1/fundamentals/DC000000000000000000000000"


@pytest.fixture(scope="module")
def tag(server: LiveServer, paid_key: str) -> str:
    return server.get(ISSUER, paid_key, accept_encoding="identity").headers["ETag"]


def test_the_tag_is_strong_and_repeats(server: LiveServer, paid_key: str, tag: str) -> None:
    assert tag.startswith('"')
    assert tag.endswith('"')
    assert server.get(ISSUER, paid_key, accept_encoding="identity").headers["ETag"] == tag


def test_the_tag_names_the_edition(server: LiveServer, paid_key: str, tag: str) -> None:
    assert server.get(ISSUER, paid_key).json()["edition"] in tag


@pytest.mark.rule("ENV-5")
@pytest.mark.parametrize("held", ["{}", "W/{}", '"other", {}', '"other",W/{} , "more"', "*", " {} "])
def test_a_client_that_holds_the_answer_gets_304(server: LiveServer, paid_key: str, tag: str, held: str):
    answer = server.get(ISSUER, paid_key, if_none_match=held.format(tag).strip(), accept_encoding="identity")
    assert answer.status_code == 304
    assert answer.content == b""
    assert "Content-Length" not in answer.headers
    assert "Content-Type" not in answer.headers
    assert answer.headers["ETag"] == tag
    assert answer.headers["Cache-Control"] == "private"
    assert "Accept-Encoding" in answer.headers["Vary"]
    assert "RateLimit" in answer.headers


def test_if_none_match_may_be_given_in_several_fields(server: LiveServer, paid_key: str, tag: str) -> None:
    fields = [("X-API-Key", paid_key), ("If-None-Match", '"other"'), ("If-None-Match", tag)]
    assert server.http.get(ISSUER, headers=fields).status_code == 304


@every("held", ['"other"', 'W/"other"', "", '""', '"*"', "garbage", '"unterminated'])
def test_a_client_that_holds_something_else_gets_the_answer(server: LiveServer, paid_key: str, held: str):
    assert server.get(ISSUER, paid_key, if_none_match=held).status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_each_encoding_has_a_tag_of_its_own_and_a_304_repeats_it(
    server: LiveServer, paid_key: str, tag: str, encoding: str
) -> None:
    encoded = server.get(ISSUER, paid_key, accept_encoding=encoding).headers["ETag"]
    assert encoded != tag
    answer = server.get(ISSUER, paid_key, accept_encoding=encoding, if_none_match=encoded)
    assert answer.status_code == 304
    assert answer.headers["ETag"] == encoded


@pytest.mark.rule("ENV-5")
@pytest.mark.parametrize("query", ["?period_type=FY", "?vintages=all", "?as_of=2024-06-30"])
def test_another_question_has_another_tag(server: LiveServer, paid_key: str, tag: str, query: str) -> None:
    answer = server.get(ISSUER + query, paid_key, if_none_match=tag)
    assert answer.status_code == 200
    assert answer.headers["ETag"] != tag


def test_a_capped_answer_has_another_tag(server: LiveServer, sample_key: str, tag: str) -> None:
    answer = server.get(ISSUER, sample_key, if_none_match=tag)
    assert answer.status_code == 200
    assert answer.headers["ETag"] != tag


def test_head_is_conditional_too(server: LiveServer, paid_key: str, tag: str) -> None:
    fields = {"X-API-Key": paid_key, "If-None-Match": tag}
    assert server.http.head(ISSUER, headers=fields).status_code == 304


@every(("path", "status"), [(NOBODY, 404), (f"{ISSUER}?as_of=x", 400)])
def test_a_condition_does_not_hide_an_error(server: LiveServer, paid_key: str, path: str, status: int):
    assert server.get(path, paid_key, if_none_match="*").status_code == status


def test_a_condition_does_not_open_without_a_key(server: LiveServer, tag: str) -> None:
    assert server.get(ISSUER, if_none_match=tag).status_code == 401
