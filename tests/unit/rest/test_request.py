"""What a request says, read strictly."""

from datetime import date

import pytest

from sankofa.model.errors import BadRequest, InvalidParameter
from sankofa.operations.contract import endpoints
from sankofa.operations.service import (
    LARGEST_HEADERS,
    LONGEST_QUERY,
    HeadersTooLarge,
    UriTooLong,
    check_target,
)
from sankofa.rest.request import read_arguments, read_head, read_query

HOST = (b"host", b"x")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (b"", {}),
        (b"&&", {}),
        (b"a=1&b=2", {"a": "1", "b": "2"}),
        (b"a", {"a": ""}),
        (b"a=", {"a": ""}),
        (b"=a", {"": "a"}),
        (b"a=b=c", {"a": "b=c"}),
        (b"a=1+2%2B3", {"a": "1 2+3"}),
        (b"%61=%C3%A9", {"a": "é"}),
        (b"a=%zz", {"a": "%zz"}),
        (b"a=1;b=2", {"a": "1;b=2"}),
        (b"a=%00", {"a": "\0"}),
    ],
)
def test_a_query_is_read_as_written(query: bytes, found: dict[str, str]) -> None:
    assert read_query(query) == found


def test_arguments_are_those_of_the_operation_and_the_edition() -> None:
    (screen,) = [operation for operation in endpoints() if operation.path == "/v1/screen"]
    query = b"as_of=2020-02-29&&limit=5&edition=e&metric=net_margin"
    for _ in range(2):  # read, and remembered
        given = read_arguments(screen, query, date(2026, 1, 1))
        assert given == {"as_of": date(2020, 2, 29), "limit": 5, "edition": "e", "metric": "net_margin"}
    for today in (date(2020, 2, 28), date(2019, 1, 1)):  # what was fine yesterday is asked again today
        with pytest.raises(InvalidParameter, match="future"):
            read_arguments(screen, query, today)


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        (b"limit=1&limit=2", "limit"),
        (b"limit=1&%6Cimit=2", "limit"),
        (b"edition=a&edition=b", "edition"),
        (b"limit=" + b"0" * 100, "limit"),
        (b"metric=%FF", "metric"),
        (b"metric=\xff", "metric"),
        (b"metrics=x", "metrics"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(query: bytes, parameter: str) -> None:
    (screen,) = [operation for operation in endpoints() if operation.path == "/v1/screen"]
    for _ in range(2):
        with pytest.raises(InvalidParameter) as refused:
            read_arguments(screen, query, date(2026, 1, 1))
        assert refused.value.parameter == parameter


def test_every_key_and_authorization_is_read() -> None:
    fields = [HOST, (b"x-api-key", b"k"), (b"x-api-key", b"l"), (b"authorization", b"Bearer m")]
    head = read_head(fields)
    assert (head.keys, head.authorizations) == (("k", "l"), ("Bearer m",))
    assert head.host == HOST[1]


def test_lists_in_several_fields_are_one_list() -> None:
    fields = [(b"accept-encoding", b"gzip"), (b"accept-encoding", b"br"), (b"if-none-match", b'"a"')]
    head = read_head([HOST, *fields])
    assert head.accept_encoding == b"gzip,br"
    assert head.if_none_match == b'"a"'


def test_header_fields_have_a_bound() -> None:
    room = LARGEST_HEADERS - sum(len(part) for part in HOST) - 4
    read_head([HOST, (b"a", b"a" * (room - 5))])
    with pytest.raises(HeadersTooLarge):
        read_head([HOST, (b"a", b"a" * (room - 4))])


@pytest.mark.parametrize("hosts", [[], [(b"host", b"")], [HOST, HOST]])
def test_a_request_names_one_host(hosts: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(BadRequest):
        read_head(hosts)


@pytest.mark.parametrize(("query", "path"), [(LONGEST_QUERY + 1, 1), (0, 1025)])
def test_a_target_has_a_bound(query: int, path: int) -> None:
    with pytest.raises(UriTooLong):
        check_target({"query_string": b"a" * query, "path": "a" * path})
