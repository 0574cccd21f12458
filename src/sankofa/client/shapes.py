"""What the columns of a frame hold, told from the types of the rows."""

from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from sankofa.client import rows

_PLAIN: Final = {str: "text", int: "whole", bool: "truth"}


@cache
def columns_of(row: str) -> dict[str, str]:
    """The columns of a row of `sankofa.client.rows`, by its name: each with its kind, see `frames`."""
    types = get_type_hints(vars(rows)[row], include_extras=True)
    return {name: _kind(kind) for name, kind in types.items()}


def _kind(annotation: Any) -> str:
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (part for part in get_args(annotation) if part is not NoneType)
    if marks := getattr(annotation, "__metadata__", ()):
        return str(marks[0])
    return _PLAIN.get(annotation) or ("text" if get_origin(annotation) is Literal else "nested")
