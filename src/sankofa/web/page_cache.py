"""Pages written lately, by everything they depend on."""

from collections import OrderedDict
from typing import Final

import msgspec

_MOST_BYTES: Final = 32 << 20


class Written(msgspec.Struct):
    """A page as bytes, and as compressed as clients asked for it."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    tag: str
    encodings: dict[str, bytes] = {}

    @property
    def size(self) -> int:
        return len(self.body) * 2  # about as much again in its encodings


class PageCache:
    """The pages asked for last, up to a number of bytes."""

    def __init__(self) -> None:
        self._pages: OrderedDict[tuple[object, ...], Written] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[object, ...]) -> Written | None:
        page = self._pages.get(key)
        if page is not None:
            self._pages.move_to_end(key)
        return page

    def put(self, key: tuple[object, ...], page: Written) -> None:
        if (before := self._pages.pop(key, None)) is not None:
            self._bytes -= before.size
        self._pages[key] = page
        self._bytes += page.size
        while self._bytes > _MOST_BYTES and self._pages:
            _, oldest = self._pages.popitem(last=False)
            self._bytes -= oldest.size
