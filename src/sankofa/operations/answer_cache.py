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


class AnswerCache:
    """Keeps nothing of what is asked once, so that a walk through everything drops nobody's answer."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._answers: OrderedDict[Hashable, CachedAnswer] = OrderedDict()
        self._asked_lately: set[int] = set()
        self._asked_before: set[int] = set()
        self.size = 0
        """Bytes of the bodies that are kept."""

    def get(self, key: Hashable) -> CachedAnswer | None:
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
        return answer

    def offer(self, key: Hashable, answer: CachedAnswer) -> None:
        """Keep an answer if it was offered before, and if it is not too large."""
        size = len(answer.body)
        if size * _LARGEST_SHARE > self._most or key in self._answers:
            return
        if not self._was_asked(hash(key)):
            return
        self._answers[key] = answer
        self.size += size
        while self.size > self._most:
            self.size -= len(self._answers.popitem(last=False)[1].body)

    def _was_asked(self, question: int) -> bool:
        """Whether it was asked before; from now on it was."""
        if question in self._asked_lately or question in self._asked_before:
            return True
        if len(self._asked_lately) >= _MOST_ASKED_ONCE:
            self._asked_before, self._asked_lately = self._asked_lately, set()
        self._asked_lately.add(question)
        return False
