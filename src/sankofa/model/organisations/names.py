"""What a name proves: a legal form, a public body, or the person behind it."""

import re
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from sankofa.model.organisations.reading import DOT
from sankofa.model.organisations.tables import SURE, WEAK, WORDY, Phrases, Tables, tables

Words = list[str]


class Proof(NamedTuple):
    """What a name proves, and which of its parts that rests on."""

    kind: str
    detail: str
    parts: frozenset[int]


# A person and the name they trade under, a person and where they are reached, a person and their kin; and the
# Armenian and Georgian marks of an individual entrepreneur.
_PERSON_STROKE: Final = re.compile(
    r"(?<!\w)(?:[tcodwhif][/\\]\s?[aobk]|s[/\\]\s?o|d[/\\]b[/\\]a|[af][/\\]k[/\\]a"
    r"|a[/\\]dz|\u0561[/\\]\u0571|\u10d8[/\\]\u10db)(?!\w)"
)
_ROMANIAN: Final = re.compile(r"Î\.?\s?[MS]\.?(?=[\s\"„«])|(?<=\s)Î\.?\s?[MS]\.?\Z")
"""Întreprindere municipală and de stat. With the accent only: `I.M. Popescu` is a person with initials."""
_SOUTHERN: Final = re.compile(
    r"m[bdghklmnpstvwz]|n[cdghjkqstwxyz]|dl|hl|kg|tl|ts|vh|zw|gw|kw|xh|qw|ph|th|kh|sh|ch"
)
"""How many surnames of southern and eastern Africa begin, where initials follow the surname: `Nkosi S.A.`"""
_BEFORE_SURNAMES: Final = frozenset(
    "de del da do dos das di du des le van von der den ten ter mac mc".split()
)
_NAMED_AFTER_DOCTORS: Final = frozenset({"municipality", "hospital"})
_TRADING_AS: Final = "ta"  # t/a without its stroke
_PAIR: Final = 2


def worth_reading(name: str, parts: list[Words]) -> bool:
    """Whether any word could prove something; most people's names have none, and leave the gate here."""
    hints = tables().hints
    return not all(hints.isdisjoint(part) for part in parts) or not name.isascii()


def marked_as_person(folded: str, parts: list[Words]) -> bool:
    """Whether something in the name says that a person stands behind it."""
    known = tables()
    if ("/" in folded or "\\" in folded) and _PERSON_STROKE.search(folded):
        return True
    if any(_titled(part, known) for part in parts) and not (len(parts) == 1 and _named_after(parts[0])):
        return True
    words = parts[0] if len(parts) == 1 else [word for part in parts for word in part]
    for start, word in enumerate(words):
        if word in known.persons and _match(known.persons, words, start):
            return True
        if word in known.outer_traders and start in (0, len(words) - 1):
            return True
        if word == _TRADING_AS and 0 < start < len(words) - 1:
            return True
    return False


def body_by_name(name: str, country: str, folded: str, parts: list[Words]) -> Proof | None:
    """What proves an organisation in a name that nothing marks as a person's."""
    if not name.isascii() and (found := _by_script(name, folded)):
        bracketed = " (" in found.detail  # the bracket that closes the name is part of the form
        if len(parts) == 1 + bracketed:
            return found
    whole = " ".join(word for part in parts for word in part).replace("&", "and")
    if whole in tables().known:
        return Proof("public_body", whole, frozenset(range(len(parts))))
    for number in range(len(parts)):
        proof = _form(name, country, parts, number) or _public(parts[number], number)
        if proof and all(
            place in proof.parts
            or _harmless(part, parts[min(proof.parts)])
            or (place == 0 and _says_what(part, parts[min(proof.parts)]))
            for place, part in enumerate(parts)
        ):
            return proof
    return None


def _by_script(name: str, folded: str) -> Proof | None:
    """Scripts without blanks between words, and the accent that tells a Moldovan body from initials."""
    known, text = tables(), folded.strip()
    for form in known.ends:
        if text.endswith(form) and len(text) > len(form) + 1:
            return Proof("legal_form", form, frozenset({0}))
    for form in known.starts:
        if text.startswith(form) and len(text) > len(form) + 1:
            return Proof("legal_form", form, frozenset({0}))
    found = _ROMANIAN.search(name.strip())
    if found and (found.start() == 0 or found.end() == len(name.strip())):
        return Proof("public_body", found[0].strip(), frozenset({0}))
    return None


def _form(name: str, country: str, parts: list[Words], number: int) -> Proof | None:
    """A legal form in this part, at a place where legal forms stand."""
    known, part = tables(), parts[number]
    if part[0] in known.leading and (opening := _match(known.leading, part, 0)) and len(part) > len(opening):
        return Proof("legal_form", _as_written(name, opening), frozenset({number}))
    for start, word in enumerate(part):
        body = _match(known.bodies, part, start) if start and word in known.bodies else None
        if body and start + len(body) == len(part):
            return Proof("legal_form", _as_written(name, body), frozenset({number}))
        if word in known.forms and (found := _match(known.forms, part, start)):
            end, before = start + len(found), number - 1 if number and not start else number
            head = part[:start] or (parts[before] if before != number else [])
            if _proves(name, country, found, head, last=end == len(part)) and _explained(part[end:], part):
                return Proof("legal_form", _as_written(name, found), frozenset({before, number}))
    return None


def _proves(name: str, country: str, form: tuple[str, ...], head: Words, *, last: bool) -> bool:
    """Whether a form proves an organisation after these words (see `tables` for the four strengths)."""
    known = tables()
    strength = known.strength[form]
    own = [word for word in head if word not in known.particles and word not in known.sure and word != "&"]
    if not own:
        return False
    if len(form) == 1 and not name.isascii() and _accented(name, form):
        return False
    if strength == SURE:
        return True
    if head[-1] in known.particles:  # Maria de Sa
        return False
    if strength == WEAK:
        return last and (_of_business(head[-1], known) or (len(head) > 1 and head[0] in known.openers))
    wordy = any(_of_business(word, known) for word in own) or not known.several.isdisjoint(head)
    dots_prove = strength != WORDY and country not in known.initials_last
    return wordy or (dots_prove and not _like_a_person(head, own, known))


def _accented(name: str, form: tuple[str, ...]) -> bool:
    """Whether the letters of a short form carry accents in this name: Sá is a surname, SA a form."""
    word = form[0].replace(DOT, "")
    return word.isascii() and word not in tables().accented and _spelling(form).search(name) is None


def _of_business(word: str, known: Tables) -> bool:
    return word in known.business or word[0].isdigit()


def _like_a_person(head: Words, own: Words, known: Tables) -> bool:
    """Whether the words before a dotted form could be a surname before initials, or a whole person."""
    unknown = [word for word in own if word not in known.names and len(word) > 1]
    if len(own) == 1:
        return not unknown or head[0] in _BEFORE_SURNAMES or _SOUTHERN.match(own[0]) is not None
    return len(unknown) < min(len(own), _PAIR)


def _public(part: Words, number: int) -> Proof | None:
    known = tables()
    for start, word in enumerate(part):
        detail = None
        if word in known.heads and (found := _match(known.heads, part, start)):
            rest = part[start + len(found) :]
            more = (rest or len(found) > 1) and not _somebody(found, rest, known)
            detail = " ".join(found) if more and _introduced(part[:start], known) else None
        if not detail and start and word in known.tails and (found := _match(known.tails, part, start)):
            detail = " ".join(found) if _of_place(part[start + len(found) :], known) else None
        if not detail and word in known.nouns:
            detail = _qualified(part, start, known)
        if detail:
            return Proof("public_body", detail, frozenset({number}))
    return None


def _of_place(rest: Words, known: Tables) -> bool:
    """Nothing, or `of Kenya`, after the words that close the name of a public body."""
    return not rest or (
        len(rest) > 1
        and rest[0] == "of"
        and all(
            word in known.doubtful or word in known.explaining or word in known.particles for word in rest
        )
    )


def _somebody(head: tuple[str, ...], rest: Words, known: Tables) -> bool:
    """Whether who holds an office is named after it (`Auditor General Jane Doe`), or who works in a body."""
    if head in known.holders and rest:
        return rest[0] not in known.particles and not known.explaining.union(known.doubtful).issuperset(rest)
    return head[0] in known.impersonal and any(
        one in known.names and other in known.names for one, other in pairwise(rest)
    )


def _introduced(before: Words, known: Tables) -> bool:
    """Nothing stands before the head of a public body but its country, its state or an article."""
    return not before or before[-1] in known.before or before[-1] in known.business


def _qualified(part: Words, place: int, known: Tables) -> str | None:
    """`National ... Commission`, `Comisión Nacional de ...`: a noun of office with its qualifier."""
    noun, last = part[place], place + 1 == len(part)
    if not last and part[place + 1] not in known.particles and part[place + 1] not in known.qualifiers:
        return None
    near = {part[place - 1] if place else "", "" if last else part[place + 1]}
    if noun in known.private_use:
        found = near & known.strong_qualifiers
    else:
        found = (near | {part[0]}) & known.qualifiers
    return f"{min(found)} {noun}" if found and len(part) > _PAIR else None


def _harmless(part: Words, main: Words) -> bool:
    """A further part that cannot be a person: words of business, an acronym, a form, another body."""
    if _explained(part, main) or _public(part, 0):
        return True
    forms, strength = tables().forms, tables().strength
    return tuple(part) in strength or any(
        strength[found] == SURE and 0 < start == len(part) - len(found)
        for start, word in enumerate(part)
        if word in forms and (found := _match(forms, part, start))
    )


def _says_what(first: Words, main: Words) -> bool:
    """`CETA - Engenharia e Construção, S.A.`: the first part is the name, the main one says what it does."""
    known = tables()
    return (
        len(first) == 1
        and first[0] not in known.names
        and not known.business.isdisjoint(main)
        and all(
            word in known.business or word in known.doubtful or word in known.particles or word in known.forms
            for word in main
        )
    )


def _explained(words: Words, main: Words) -> bool:
    """Every word is one of business or of administration, and not every one might be a surname."""
    known = tables()
    alone = len(words) == 1 or (len(words) == _PAIR and words[-1] in known.forms)
    if alone and words[0] not in known.names and _abbreviates(words[0], main):
        return True
    safe = False
    for word in words:
        if word in known.explaining or word[0].isdigit() or word in known.sure:
            safe = True
        elif word not in known.doubtful and word not in known.particles and word != "&":
            return False
    return safe or not words


def _abbreviates(word: str, main: Words) -> bool:
    """`(ANDE)` after `Administración Nacional de Electricidad`: its letters, in order, from the first."""
    letters, full = word.replace(DOT, ""), "".join(main)
    if len(letters) < _PAIR or letters[0] != full[0]:
        return False
    rest = iter(full)
    return all(letter in rest for letter in letters)


def _titled(part: Words, known: Tables) -> bool:
    return part[0] in known.titles or part[-1] in known.titles


def _named_after(part: Words) -> bool:
    """`Dr Beyers Naudé Local Municipality` is a place."""
    return part[-1] in _NAMED_AFTER_DOCTORS


def _match(phrases: Phrases, words: Words, start: int) -> tuple[str, ...] | None:
    """The longest phrase that stands at this place. Within phrases of several words dots do not matter."""
    first = words[start]
    plain = first.replace(DOT, "")
    for phrase in phrases.get(plain, ()):
        length = len(phrase)
        if 1 < length <= len(words) - start and all(
            words[start + place].replace(DOT, "") == phrase[place] for place in range(1, length)
        ):
            return phrase
    return (first,) if (first,) in phrases.get(first, ()) else None


@cache
def _spelling(form: tuple[str, ...]) -> re.Pattern[str]:
    letters = (r"\.?\s?".join(map(re.escape, word.replace(DOT, ""))) for word in form)
    return re.compile(r"\(?(?<!\w)" + r"[\W_]+".join(letters) + r"(?!\w)[.)]?", re.IGNORECASE)


def _as_written(name: str, form: tuple[str, ...]) -> str:
    """The form as this name writes it, nothing of the name with it; folded where accents hide it."""
    found = list(_spelling(form).finditer(name))
    return found[-1][0].strip() if found else " ".join(form).replace(DOT, "")
