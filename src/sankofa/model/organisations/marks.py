"""Marks of a person in a name: titles, trading names, merchants who are people (contract: GATE-3)."""

import re
from typing import Final

from sankofa.model.organisations.tables import Tables, longest_phrase, tables

Words = list[str]

# A person and the name they trade under, a person and where they are reached, a person and their kin; and the
# Armenian and Georgian marks of an individual entrepreneur.
_PERSON_STROKE: Final = re.compile(
    r"(?<!\w)(?:[tcodwhif][/\\]\s?[aobk]|s[/\\]\s?o|d[/\\]b[/\\]a|[af][/\\]k[/\\]a"
    r"|a[/\\]dz|\u0561[/\\]\u0571|\u10d8[/\\]\u10db)(?!\w)"
)
_NAMED_AFTER_DOCTORS: Final = frozenset({"municipality", "hospital"})
_TRADING_AS: Final = "ta"  # t/a without its stroke


def marked_as_person(folded: str, parts: list[Words], country: str = "") -> bool:
    """Whether the name marks itself as a person's: a title, a trading name, a family relation."""
    known = tables()
    if ("/" in folded or "\\" in folded) and _PERSON_STROKE.search(folded):
        return True
    if any(_has_title(part, known) for part in parts) and not (len(parts) == 1 and _named_after(parts[0])):
        return True
    words = parts[0] if len(parts) == 1 else [word for part in parts for word in part]
    for start, word in enumerate(words):
        mark = longest_phrase(known.persons, words, start) if word in known.persons else None
        if mark and not _is_form_here(mark, words, start, country):
            return True
        if word in known.outer_traders and start in (0, len(words) - 1):
            return True
        if word == _TRADING_AS and 0 < start < len(words) - 1:
            return True
    return False


def _is_form_here(mark: tuple[str, ...], words: Words, start: int, country: str) -> bool:
    """Whether a merchant's mark is part of a company's form: `E.A.S. Unipersonal`, `E.I.R.L.` in Peru."""
    known = tables()
    if mark != ("unipersonal",):
        return country in known.own_person_in and longest_phrase(known.own_person, words, start) is not None
    forms = ((at, longest_phrase(known.forms, words, at)) for at in range(max(1, start - 3), start))
    return any(form and at + len(form) > start for at, form in forms)


def _has_title(part: Words, known: Tables) -> bool:
    return part[0] in known.titles or part[-1] in known.titles


def _named_after(part: Words) -> bool:
    """Whether it is an institution named after a person: `Dr Beyers Naudé Local Municipality`."""
    return part[-1] in _NAMED_AFTER_DOCTORS
