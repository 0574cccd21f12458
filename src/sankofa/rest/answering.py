"""The answer to a question as bytes: performed, in the format and the encoding that the client takes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from sankofa.edition.read.edition import Edition
from sankofa.model.errors import InvalidParameter
from sankofa.operations.answer_cache import AnswerKey, CachedAnswer
from sankofa.operations.answers import JSON, Headers, envelope
from sankofa.operations.contract import Answer, Call, Operation
from sankofa.operations.encodings import choose_encoding, compress, compressed
from sankofa.rest.formats import ResponseFormat, StoredColumns, named_format, negotiated_format
from sankofa.rest.questions import Question
from sankofa.rest.request import Head
from sankofa.rest.response import address_without_cursor, next_link


def asked_format(question: Question, head: Head) -> ResponseFormat | None:
    """The format of the answer, if it is not JSON."""
    if question.format is not None:
        return named_format(question.format, head.accept)
    return negotiated_format(head.accept) if head.accept and head.accept != b"*/*" else None


async def write_answer(
    operation: Operation,
    call: Call,
    arguments: dict[str, Any],
    fmt: ResponseFormat | None,
    key: AnswerKey,
    path: str,
    query: bytes,
) -> CachedAnswer:
    """Perform the operation and write its answer down."""
    answer = await operation.perform(call, **arguments)
    headers: Headers = []
    if following := answer.members.get("next_cursor"):
        address = address_without_cursor(key.base_url, path, query, key.edition_id)
        headers.append(next_link(address, str(following)))
    if fmt is None:
        headers.append(JSON)
        body = envelope(answer, call.edition, operation)
        encoding = choose_encoding(key.accept_encoding, len(body))
        body = body if encoding is None else await compressed(body, encoding)
    else:
        row_filter = fmt.wants_columns(answer)
        columns = () if row_filter is None else await call.edition.columns(row_filter)
        # In a thread: ten thousand rows take a twentieth of a second, and others are waiting.
        content_headers, body, encoding = await asyncio.to_thread(
            _write, fmt, operation, answer, call.edition, columns, key.accept_encoding
        )
        headers += content_headers
    tag = key.tag
    if encoding is not None:
        tag = f"{tag}.{encoding}"
        headers.append((b"content-encoding", encoding.encode()))
    if not operation.live:
        headers.append((b"etag", f'"{tag}"'.encode()))
    return CachedAnswer(headers, body)


def _write(
    fmt: ResponseFormat,
    operation: Operation,
    answer: Answer,
    edition: Edition,
    columns: StoredColumns,
    accept_encoding: bytes,
) -> tuple[Headers, bytes, str | None]:
    """An answer in another format than JSON, compressed as the client accepts."""
    headers, body = fmt.body(operation, answer, edition, columns)
    encoding = choose_encoding(accept_encoding, len(body))
    return headers, body if encoding is None else compress(body, encoding, quickly=True), encoding


def same_edition(edition: Edition) -> Callable[[str], Awaitable[Edition]]:
    """For a request that names its edition: a cursor of another edition is a 400."""

    async def open_for_cursor(requested: str) -> Edition:
        if requested != edition.id:
            raise InvalidParameter("cursor", "of another edition than the one asked for")
        return edition

    return open_for_cursor
