"""The documents of a source: single replies, and lists that come in pages.

The pages of a list are all fetched before the first is handed on. A list that changes while it is walked is
walked again from its beginning.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from sankofa.collect.errors import CollectFailed, ReplyRefused
from sankofa.collect.fetch import Fetched, Fetcher
from sankofa.collect.plan import RequestWalk, next_call
from sankofa.collect.state import StateFile
from sankofa.sources.collecting import Collect, variables_in

_WALKS: Final = 3


class _Changed(Exception):
    """What the pages say of the whole list is not what the first said."""


def documents(
    fetcher: Fetcher, collect: Collect, walk: RequestWalk, state: StateFile
) -> Iterator[Fetched | None]:
    """The replies of a walk, in order; None for one that is as it was. Raises CollectFailed."""
    if not (collect.next or collect.pages or "page" in variables_in(walk.template)):
        yield fetcher.fetch(walk.first, state.reply(walk.first.key))
        return
    for _ in range(_WALKS):
        pages: list[Fetched] = []
        try:
            for page in _pages(fetcher, collect, walk, state):
                pages.append(page)
        except _Changed:
            discard(pages)
            continue
        except BaseException:
            discard(pages)
            raise
        yield from pages
        return
    raise ReplyRefused(f"{walk.first.public_url}: the list changed while it was read, {_WALKS} times")


def discard(fetched: list[Fetched]) -> None:
    """Remove files that are not needed any more."""
    for one in fetched:
        one.path.unlink(missing_ok=True)


def _pages(fetcher: Fetcher, collect: Collect, walk: RequestWalk, state: StateFile) -> Iterator[Fetched]:
    call = next_call(collect, walk, 1)
    first: list[Any] | None = None
    before = ""
    for page in range(1, collect.most_pages + 1):
        fetched = fetcher.fetch(call, state.reply(call.key), conditional=False)
        if fetched is None:  # it may be missing
            return
        yield fetched
        content = _json(fetched.path) if collect.next or collect.pages or collect.same else None
        claims = [pointed(content, pointer) for pointer in filter(None, (*collect.same, collect.pages))]
        first = claims if first is None else first
        if claims != first:
            raise _Changed
        if fetched.sha256 == before:
            raise ReplyRefused(f"{call.public_url}: is the same as the page before it")
        before = fetched.sha256
        if collect.next:
            url = pointed(content, collect.next)
            if not url:
                return
            call = next_call(collect, walk, page + 1, str(httpx.URL(call.url).join(str(url))))
        elif collect.pages:
            if page >= _count(pointed(content, collect.pages), call.public_url):
                return
            call = next_call(collect, walk, page + 1)
        else:
            if _is_empty(_json(fetched.path)):
                return
            call = next_call(collect, walk, page + 1)
    raise CollectFailed(f"{walk.first.public_url}: more than {collect.most_pages} pages (most_pages)")


def pointed(content: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) leads to; None where it leads nowhere."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(content, dict):
            content = content.get(name)
        elif isinstance(content, list) and name.isdigit() and int(name) < len(content):
            content = content[int(name)]
        else:
            return None
    return content


def _count(value: Any, url: str) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ReplyRefused(f"{url}: does not say how many pages there are")
    return value


def _is_empty(content: Any) -> bool:
    """Whether a page has no list with anything in it."""
    lists = content.values() if isinstance(content, dict) else [content]
    return not any(isinstance(one, list) and one for one in lists)


def _json(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except (msgspec.MsgspecError, RecursionError) as failure:
        raise ReplyRefused(f"{path.name}: a page that is not JSON: {failure}") from failure
