"""JSON parsed in chunks of any size gives the same values as parsing it whole."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.sources.json_stream import JsonValue, Truncated, at_once, json_values
from tests.every import every

LISTS = frozenset({"releases", "records"})
TEXTS = st.text(max_size=8) | st.sampled_from(
    ['"', "\\", '\\"', "{", "}", "[", "]", ",", "releases", "é\u2028😀"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
KEYS = st.sampled_from(["releases", "records", "a", "releases "]) | TEXTS
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)
DOCUMENTS = (
    VALUES | st.lists(VALUES, max_size=6) | st.dictionaries(KEYS, st.lists(VALUES, max_size=5), max_size=5)
)
CHUNKS = st.integers(1, 9) | st.sampled_from([64, 1 << 18])


def read(content: bytes, chunk: int = 1 << 18) -> list[JsonValue]:
    return list(json_values(io.BytesIO(content), LISTS, chunk))


def expected_values(value: Any) -> list[tuple[str, Any, bool]]:
    """The expected result for a document."""
    if isinstance(value, list):
        return [*((f"[{n}]", inner, False) for n, inner in enumerate(value)), ("", [], True)]
    if not isinstance(value, dict):
        return [("", value, True)]
    expected = []
    for name, inner in value.items():
        if name in LISTS and isinstance(inner, list):
            expected += [(f"{name}[{n}]", element, False) for n, element in enumerate(inner)]
    shell = {k: [] if k in LISTS and isinstance(v, list) else v for k, v in value.items()}
    return [*expected, ("", shell, True)]


def values(parsed: list[JsonValue]) -> list[tuple[str, Any, bool]]:
    return [(part.path, json.loads(part.raw), part.whole) for part in parsed]


@given(DOCUMENTS, CHUNKS, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_any_document_in_chunks_of_any_size_gives_the_values_that_are_in_it(
    document: Any, chunk: int, indent: int | str | None, ascii_only: bool
) -> None:
    content = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert values(read(content, chunk)) == expected_values(document)


@given(DOCUMENTS, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_a_document_in_memory_gives_the_same(document: Any, indent: int | str | None, ascii_only: bool):
    content = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    parsed = at_once(content, LISTS)
    if isinstance(document, dict | list) and b"\\ud" not in content and content.isascii():
        assert parsed is not None
    if parsed is not None:
        assert values(parsed) == expected_values(document)


@every(
    "content",
    [
        b'{"releases": [{"a": 1}, {bad}, {"b": 2}]}',
        b'{"releases": [{"a": 1}',
        b'{"a": 1}\n{"b": 2}',
        b'{"releases": [%b], "releases": [{"b": 2}]}' % b", ".join([b'{"a": 1}'] * 50),
        b"7",
        b"",
    ],
)
def test_other_inputs_are_left_to_the_streaming_parser(content: bytes) -> None:
    assert at_once(content, LISTS) is None


@given(DOCUMENTS, st.integers(0, 40), CHUNKS)
def test_a_document_gives_the_same_after_its_beginning_was_read(
    document: Any, already_read: int, chunk: int
) -> None:
    content = json.dumps(document).encode()
    rest = io.BytesIO(content[already_read:])
    assert list(json_values(rest, LISTS, chunk, content[:already_read])) == read(content)


@given(st.lists(VALUES.filter(lambda v: isinstance(v, dict | list)), min_size=1, max_size=4), CHUNKS)
def test_documents_one_after_the_other_are_read_one_after_the_other(documents: list[Any], chunk: int) -> None:
    content = "\n".join(map(json.dumps, documents)).encode()
    assert values(read(content, chunk)) == [
        part for document in documents for part in expected_values(document)
    ]


@pytest.mark.deep
@given(st.dictionaries(KEYS, st.lists(VALUES, max_size=4), max_size=4), CHUNKS, st.data())
def test_a_document_cut_anywhere_is_truncated(document: Any, chunk: int, data: st.DataObject) -> None:
    content = json.dumps(document).encode()
    cut = data.draw(st.integers(1, len(content) - 1))
    with pytest.raises(Truncated):
        read(content[:cut], chunk)


@every("content", [b"", b"  \n\t"])
def test_an_empty_input_gives_nothing(content: bytes) -> None:
    assert read(content) == []


@every("chunk", [1, 2, 7, 1 << 18])
def test_a_bad_element_does_not_affect_others(chunk: int) -> None:
    parsed = read(b'{"releases": [{"a": 1}, {bad}, tru, {"b": 2}], "x": 1}', chunk)
    assert [part.raw for part in parsed] == [
        b'{"a": 1}',
        b"{bad}",
        b"tru",
        b'{"b": 2}',
        b'{"releases": [], "x": 1}',
    ]
    assert [part.path for part in parsed] == ["releases[0]", "releases[1]", "releases[2]", "releases[3]", ""]


def test_only_lists_of_the_top_object_are_streamed() -> None:
    content = b'{"inner": {"releases": [1, 2]}, "also": "releases", "list": [3]}'
    assert [(part.raw, part.whole) for part in read(content)] == [(content, True)]


def test_memory_does_not_grow_with_the_document() -> None:
    """The first element of a long list is returned before the last one is read."""
    element = b'{"text": "' + b"x" * 1000 + b'"},'

    class Endless(io.BytesIO):
        served = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.served += 1
            return b'{"releases": [' if self.served == 1 else element

    stream = Endless()
    parsed = json_values(stream, LISTS, 16)
    for _ in range(500):
        assert next(parsed).raw == element[:-1]
    assert stream.served < 600
