"""Methods of the client that waits, for the one that is awaited: written once, with all that they say."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def awaited(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """What a method asks of its session, asked of one whose answers are awaited."""

    @wraps(method)
    async def ask(session: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        promised: Any = method(session, *args, **kwargs)
        answer: T = await promised
        return answer

    return ask


def walked(
    method: Callable[Concatenate[Any, P], Iterator[T]],
) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    """The same of a method that gives one after another."""

    @wraps(method)
    async def walk(session: Any, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        every: Any = method(session, *args, **kwargs)
        async for one in every:
            yield one

    return walk
