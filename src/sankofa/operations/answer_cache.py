"""Answers that were asked for more than once, as they were sent: those asked for last, up to so many bytes.

An answer of REST is decided by its entity tag, by the address its links begin with and by the encoding the
client takes, one of a tool by the edition, its arguments and what the tier may have; nothing that names a
caller or a moment is in it. So what one was sent is what another is sent, after its own key, quota and tier
were looked at.
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple

from sankofa.edition.read.edition import Edition
from sankofa.operations.answers import Headers
from sankofa.operations.contract import Operation

_LARGEST_SHARE: Final = 8
"""The part of the room that one answer may take."""
_TAKEN_WHEN_FULL: Final = 16
"""One in so many: if what is asked again does not all fit, most of what is there stays, and is of use."""
_LONG_AGO: Final = 8
"""Times as many questions as there are answers: one not asked for since gives way to any."""
_MOST_ASKED_ONCE: Final = 16_384
"""Questions, of which only a hash is remembered; the older ones are forgotten together."""


class AnswerKey(NamedTuple):
    """All that decides the bytes of an answer of REST."""

    tag: str
    accept_encoding: bytes
    base_url: str
    edition_id: str | None
    """The edition that the request names: links in the answer then name it too."""


def may_be_kept(operation: Operation, edition: Edition, arguments: Mapping[str, Any]) -> bool:
    """Whether an answer may be given again. One behind a cursor comes once; a live one changes. Where the
    edition is on a server, that server being gone is a 503 for everybody alike (contract: KEY-13)."""
    return edition.is_local and not operation.live and arguments.get("cursor") is None


class CachedAnswer(NamedTuple):
    """The header fields that belong to the body, and the body."""

    headers: Headers
    body: bytes


class _Entry:
    __slots__ = ("answer", "asked")

    def __init__(self, answer: CachedAnswer, asked: int) -> None:
        self.answer = answer
        self.asked = asked
        """The number of the question that it answered last."""


class AnswerCache:
    """Keeps nothing of what is asked once, so that a walk through everything drops nobody's answer."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._questions = self._refused = 0
        self._asked_lately: set[int] = set()
        self._asked_before: set[int] = set()
        self.size = 0
        """Bytes of the bodies that are kept."""

    def get(self, key: Hashable) -> CachedAnswer | None:
        self._questions += 1
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.asked = self._questions
        self._entries.move_to_end(key)
        return entry.answer

    def offer(self, key: Hashable, answer: CachedAnswer) -> None:
        """Keep an answer if it was offered before, is not too large, and others need not go that are asked
        for."""
        size = len(answer.body)
        if size * _LARGEST_SHARE > self._most or key in self._entries:
            return
        if not self._was_asked(hash(key)) or (self.size + size > self._most and not self._gives_way()):
            return
        self._entries[key] = _Entry(answer, self._questions)
        self.size += size
        while self.size > self._most:
            self.size -= len(self._entries.popitem(last=False)[1].answer.body)

    def _gives_way(self) -> bool:
        """Whether the one asked for longest ago may go for another."""
        longest_ago = next(iter(self._entries.values()))
        if self._questions - longest_ago.asked > _LONG_AGO * len(self._entries):
            return True
        self._refused += 1
        return self._refused % _TAKEN_WHEN_FULL == 0

    def _was_asked(self, question: int) -> bool:
        """Whether it was asked before; from now on it was."""
        if question in self._asked_lately or question in self._asked_before:
            return True
        if len(self._asked_lately) >= _MOST_ASKED_ONCE:
            self._asked_before, self._asked_lately = self._asked_lately, set()
        self._asked_lately.add(question)
        return False
