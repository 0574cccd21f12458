"""Text as publishers write it, made fit to be stored: one line, no control characters."""

import re

# NUL and its kin cannot be stored on every engine; a lone surrogate cannot be written as UTF-8.
# Format characters (the marks of right-to-left names) are text and stay.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_SHOWN = 40
_SHORT = 3


def harmless(text: str) -> str:
    """A value in quotes, where it cannot be somebody's name; else nothing.

    Figures, dates, codes and a word in lower case can be repeated to the operator. What has a capital letter
    in a longer word, or two longer words, may name a person.
    """
    words = [word for word in _WORD.findall(text) if len(word) > _SHORT]
    fits = 0 < len(text) <= _LONGEST_SHOWN and text.isascii() and text.isprintable()
    return repr(text) if fits and len(words) < 2 and all(word.islower() for word in words) else ""


def fit(text: str) -> bool:
    """Whether the text can be stored and printed on one line as it stands."""
    return _UNFIT.search(text) is None


def one_line(text: str) -> str:
    """The text with every run of white space as one blank, and nothing around it."""
    return " ".join(text.split())


def name(text: str) -> str | None:
    """A name in which every character that cannot be stored is a blank. None where nothing is left."""
    return one_line(_UNFIT.sub(" ", text)) or None
