"""What is looked at before a parser that trusts its input is given a document."""

from collections.abc import Iterable
from typing import Final
from xml.parsers import expat

from sankofa.model.limits import limit

MOST_LEVELS: Final = limit("levels of an inline XBRL report", 200, "levels", "the file is refused")
"""Deeper than any report; libxml2 itself gives up at 256."""
_NAMESPACES: Final = (b"http://www.xbrl.org/2013/inlineXBRL", b"http://www.xbrl.org/2008/inlineXBRL")
_PIECE: Final = 1 << 20


class UnsafeDocument(ValueError):
    """XML that is not handed on."""


def is_inline_report(data: bytes) -> bool:
    """Whether a document names the namespace of inline XBRL, as every report does."""
    return any(namespace in data for namespace in _NAMESPACES)


def check_xml(data: bytes) -> None:
    """Raises UnsafeDocument for entities of its own, for deep nesting, and for what is no XML."""
    parser = expat.ParserCreate()
    level = 0

    def begin(*_: object) -> None:
        nonlocal level
        level += 1
        if level > MOST_LEVELS:
            raise UnsafeDocument(f"elements nested more than {MOST_LEVELS} deep")

    def end(*_: object) -> None:
        nonlocal level
        level -= 1

    def declared(*_: object) -> None:
        raise UnsafeDocument("it declares entities")

    def doctype(_: object, __: object, ___: object, has_internal_subset: int) -> None:
        if has_internal_subset:
            raise UnsafeDocument("its document type has declarations of its own")

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.EntityDeclHandler = declared
    parser.StartDoctypeDeclHandler = doctype
    try:
        for piece in _pieces(data):
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError as failure:
        raise UnsafeDocument(f"not well-formed XML: {failure}") from None


def _pieces(data: bytes) -> Iterable[bytes]:
    return (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))
