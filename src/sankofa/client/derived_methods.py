"""Methods derived from others: the async form of a sync method, and rows one by one from pages."""

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from types import GenericAlias
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args

from sankofa.client.answers import Answer

P = ParamSpec("P")
T = TypeVar("T")


def awaited(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The async form of a method: it asks the same of a session whose answers are awaited."""

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


def row_by_row(
    pages: Callable[Concatenate[Any, P], Iterator[Answer[T]]],
) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """The method `iter_changes` of a method `changes_pages`: with its parameters, a row at a time."""

    @wraps(pages)
    def iterate(session: Any, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        every: Iterator[T] = session._each_row(pages(session, *args, **kwargs))
        return every

    iterate.__name__ = f"iter_{pages.__name__.removesuffix('_pages')}"
    iterate.__qualname__ = f"Methods.{iterate.__name__}"
    signature = inspect.signature(pages)
    (page,) = get_args(signature.return_annotation)
    rows = signature.replace(return_annotation=GenericAlias(Iterator, get_args(page)))
    iterate.__signature__ = rows  # type: ignore[attr-defined]
    iterate.__doc__ = f"Every row of `{pages.__name__}`, one after another; `limit` is of each page."
    return iterate
