"""A name as the gate reads it: folded words, split into parts, with abbreviations marked."""

import re

from sankofa.model.folding import fold

DOT = "."
"""What ends the folded form of a dotted abbreviation: `S.A.` is read as `sa.`, and `SA` as `sa`."""

_ABBREVIATION = r"\w\.(?:\w\.)+\w?(?!\w)|\w\.\w(?!\w)|\w\.(?:\s\w\.)+(?!\w)"
_QUOTES = "['\u2019`\u00b4\u02bc\u05f4\"]"  # every kind of apostrophe, and the mark of Hebrew abbreviations
_WORD = rf"[^\W_]+(?:{_QUOTES}[^\W_]+)*"
_TOKEN = re.compile(rf"{_ABBREVIATION}|{_WORD}|[,;:|/\\(\u2013\u2014]|(?<!\w)@|\s-(?=\s)|[&+]")
_BREAKS = frozenset(",;:|/\\(@\u2013\u2014")
_TOGETHER = re.compile(
    r"(?<!\w)(?:in )?(?:jv|joint venture|association with|consortium with|partnership with)(?!\w)"
)
"""Words between several parties in one name; each party must be proven."""
_STROKES = (("a/s", "a.s."), ("s/a", "s.a."), ("n/v", "n.v."))
_QUOTE = re.compile(_QUOTES)


def parts(folded: str) -> list[list[str]]:
    """The words of a folded name, part by part. A bracket starts a new part only where it ends the name."""
    text = folded
    if "/" in text:
        for stroke, dotted in _STROKES:
            text = re.sub(rf"(?<!\w){stroke}(?!\w)", dotted, text)
    if "(" in text:
        text = _inner_brackets_opened(text)
    if "jv" in text or " venture" in text or "ip with" in text or "ion with" in text or "ium with" in text:
        text = _TOGETHER.sub(";", text)
    result: list[list[str]] = [[]]
    add = result[-1].append
    for piece in _TOKEN.findall(text):
        if piece.isalnum():
            add(piece)
        elif piece in _BREAKS or piece[-1] == "-":
            result.append([])
            add = result[-1].append
        elif DOT in piece:
            add("".join(piece.replace(DOT, "").split()) + DOT)
        else:
            add("&" if piece in "&+" else _QUOTE.sub("", piece))
    return [part for part in result if part]


def phrase(text: str) -> tuple[str, ...]:
    """A phrase of a table, folded and split as names are."""
    return tuple(word for part in parts(fold(text)) for word in part)


def _inner_brackets_opened(text: str) -> str:
    """`Siemens (Kenya) Ltd` is one part, and so is `X (Pty) Ltd`; `X Ltd (Head Office)` is two."""
    last = text.rfind("(") if text.rstrip(' .,"').endswith(")") else len(text)
    return text[:last].replace("(", " ").replace(")", " ") + text[last:]
