"""The organisation gate: a party is served only on positive evidence that it is an organisation.

Pure logic: a name and identifiers in, the evidence or None out. Conservative on purpose: serving a person is
a failure, withholding a firm is only a cost. So any sign of a person outweighs every legal form
(docs/decisions/organisation-gate.md).

See contract: GATE-1, GATE-2, GATE-3.
"""

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Final, NamedTuple

from stdnum import lei

from sankofa.model.identifiers import Identifier, register_code
from sankofa.model.organisations.tables import (
    DOT,
    LOCAL,
    SURE,
    WEAK,
    WORDY,
    Tables,
    as_written,
    longest_phrase,
    marked_as_person,
    parts,
    people_too,
    registers,
    spelling,
    tables,
)
from sankofa.model.text import fold

Words = list[str]


class Proof(NamedTuple):
    """Evidence in a name, and the parts of the name with that evidence."""

    kind: str
    detail: str
    parts: frozenset[int]


_ROMANIAN: Final = re.compile(r"Î\.?\s?[MS]\.?(?=[\s\"„«])|(?<=\s)Î\.?\s?[MS]\.?\Z")
"""Întreprindere municipală and de stat. With the accent only: `I.M. Popescu` is a person with initials."""
_SOUTHERN: Final = re.compile(
    r"m[bdghklmnpstvwz]|n[cdghjkqstwxyz]|dl|hl|kg|tl|ts|vh|zw|gw|kw|xh|qw|ph|th|kh|sh|ch"
)
"""Frequent beginnings of surnames in southern and eastern Africa, where initials follow: `Nkosi S.A.`"""
_BEFORE_SURNAMES: Final = frozenset(
    "de del da do dos das di du des le van von der den ten ter mac mc".split()
)
_PAIR: Final = 2


def worth_reading(name: str, parts: list[Words]) -> bool:
    """Whether any word could be evidence of an organisation. Most people's names have none: a quick exit."""
    hints = tables().hints
    return not all(hints.isdisjoint(part) for part in parts) or not name.isascii()


def body_by_name(name: str, country: str, folded: str, parts: list[Words]) -> Proof | None:
    """The proof of an organisation in a name that is not marked as a person's; None if there is none."""
    if not name.isascii() and (scripted := _by_script(name, folded)):
        bracketed = " (" in scripted.detail  # the bracket that closes the name is part of the form
        if len(parts) == 1 + bracketed:
            return scripted
    whole = " ".join(word for part in parts for word in part).replace("&", "and")
    if whole in tables().known:
        return Proof("public_body", whole, frozenset(range(len(parts))))
    for number in range(len(parts)):
        proof = _legal_form(name, country, parts, number) or _public_body(parts[number], number)
        if proof and all(
            position in proof.parts
            or _cannot_be_person(part, parts[min(proof.parts)])
            or (position == 0 and _describes_business(part, parts[min(proof.parts)]))
            for position, part in enumerate(parts)
        ):
            return proof
    return None


def _by_script(name: str, folded: str) -> Proof | None:
    """Forms in scripts without blanks, and the accent that distinguishes a Moldovan body from initials."""
    known, text = tables(), folded.strip()
    for form in known.ends:
        if text.endswith(form) and len(text) > len(form) + 1:
            return Proof("legal_form", form, frozenset({0}))
    for form in known.starts:
        if text.startswith(form) and len(text) > len(form) + 1:
            return Proof("legal_form", form, frozenset({0}))
    match = _ROMANIAN.search(name.strip())
    if match and (match.start() == 0 or match.end() == len(name.strip())):
        return Proof("public_body", match[0].strip(), frozenset({0}))
    return None


def _legal_form(name: str, country: str, parts: list[Words], number: int) -> Proof | None:
    """A legal form at a valid position in this part of the name."""
    known, part = tables(), parts[number]
    if number and _only_forms(part):
        return None
    if (
        part[0] in known.leading
        and (opening := longest_phrase(known.leading, part, 0))
        and len(part) > len(opening)
    ):
        return Proof("legal_form", as_written(name, opening), frozenset({number}))
    if len(part) > 1 and part[0] in known.leading_in.get(country, ()):
        return Proof("legal_form", as_written(name, (part[0],)), frozenset({number}))
    if part[0] in known.groups and (group := longest_phrase(known.groups, part, 0)):
        rest = part[len(group) :]
        if rest and known.names.isdisjoint(rest) and not all(len(word) == 1 for word in rest):
            kind = "public_body" if group in known.public_groups else "legal_form"
            return Proof(kind, as_written(name, group), frozenset({number}))
    for start, word in enumerate(part):
        if start and country in known.own_person_in and word in known.own_person:
            own = longest_phrase(known.own_person, part, start)
            if own and start + len(own) == len(part):
                return Proof("legal_form", as_written(name, own), frozenset({number}))
        body = longest_phrase(known.bodies, part, start) if start and word in known.bodies else None
        if body and start + len(body) == len(part):
            return Proof("legal_form", as_written(name, body), frozenset({number}))
        if word in known.forms and (form := longest_phrase(known.forms, part, start)):
            end, before = start + len(form), number - 1 if number and not start else number
            head = part[:start] or (parts[before] if before != number else [])
            if _form_proves(name, country, form, head, last=end == len(part)) and _all_ordinary(
                part[end:], part
            ):
                return Proof("legal_form", as_written(name, form), frozenset({before, number}))
    return None


def _form_proves(name: str, country: str, form: tuple[str, ...], head: Words, *, last: bool) -> bool:
    """Whether a form proves an organisation after these words (see `tables` for the strengths)."""
    known = tables()
    strength = known.strength[form]
    significant = [
        word for word in head if word not in known.particles and word not in known.sure and word != "&"
    ]
    if not significant:
        return False
    if len(form) == 1 and not name.isascii() and _accented(name, form):
        return False
    if form[0] in known.not_in.get(country, ()):  # unless it is a statutory body of the state
        return not known.strong_qualifiers.union({"state"}).isdisjoint(head)
    if strength == SURE:
        return True
    if head[-1] in known.particles:  # Maria de Sa
        return False
    if form == ("sa",) and as_written(name, form) == "Sa":  # Ndongo Sa
        return False
    unknown = [word for word in significant if word not in known.names and len(word) > 1]
    if last and form[0] in known.undotted.get(country, ()) and unknown == significant:
        return True
    is_cc = last and country in known.cc_in and form[0].rstrip(DOT) in ("cc", "npc")
    if is_cc and sum(_SOUTHERN.match(word) is None for word in unknown) >= _PAIR:
        return True
    if strength == WEAK:
        if country in known.initials_last and unknown != significant:  # Fatuma Abdi Projects SA
            return False
        return last and (_is_business_word(head[-1], known) or (len(head) > 1 and head[0] in known.openers))
    if strength == LOCAL:
        return False
    wordy = any(_is_business_word(word, known) for word in significant) or not known.several.isdisjoint(head)
    dots_prove = strength != WORDY and country not in known.initials_last
    return wordy or (dots_prove and not _could_be_person(head, significant, known))


def _accented(name: str, form: tuple[str, ...]) -> bool:
    """Whether the letters of a short form carry accents in this name: Sá is a surname, SA a form."""
    word = form[0].replace(DOT, "")
    return word.isascii() and word not in tables().accented and spelling(form).search(name) is None


def _is_business_word(word: str, known: Tables) -> bool:
    return word in known.business or word[0].isdigit()


def _could_be_person(head: Words, significant: Words, known: Tables) -> bool:
    """Whether the words before a dotted form could be a surname before initials, or a whole person."""
    unknown = [word for word in significant if word not in known.names and len(word) > 1]
    if len(significant) == 1:
        return not unknown or head[0] in _BEFORE_SURNAMES or _SOUTHERN.match(significant[0]) is not None
    return len(unknown) < min(len(significant), _PAIR)


def _public_body(part: Words, number: int) -> Proof | None:
    known = tables()
    for start, word in enumerate(part):
        detail = None
        if word.rstrip(DOT) in known.heads and (phrase := longest_phrase(known.heads, part, start)):
            rest = part[start + len(phrase) :]
            more = (rest or len(phrase) > 1) and not _names_office_holder(phrase, rest, known)
            detail = " ".join(phrase) if more and _introduced(part[:start], known) else None
        if (  # `Blessing Authority` is somebody
            not detail
            and start
            and word in known.tails
            and (word not in known.offices or (start >= _PAIR and known.names.isdisjoint(part[:start])))
            and (phrase := longest_phrase(known.tails, part, start))
        ):
            detail = " ".join(phrase) if _is_country_suffix(part[start + len(phrase) :], known) else None
        if not detail and word in known.nouns:
            detail = _qualified(part, start, known)
        if not detail and _is_office(word, part[:start], known):
            detail = word if _is_country_suffix(part[start + 1 :], known) else None
        if detail:
            return Proof("public_body", detail, frozenset({number}))
    return None


def _is_office(word: str, before: Words, known: Tables) -> bool:
    """`Lands Commission`: an office after words of administration only."""
    words = [other for other in before if other not in known.particles and other != "&"]
    return len(words) >= known.offices.get(word, len(words) + 1) and all(
        other in known.explaining or other in known.doubtful or other in known.qualifiers for other in words
    )


def _is_country_suffix(rest: Words, known: Tables) -> bool:
    """Whether the words after a public body's closing words are none, or a country such as `of Kenya`."""
    return not rest or (
        len(rest) > 1
        and rest[0] == "of"
        and all(
            word in known.doubtful or word in known.explaining or word in known.particles for word in rest
        )
    )


def _names_office_holder(head: tuple[str, ...], rest: Words, known: Tables) -> bool:
    """Whether an office is followed by its holder (`Auditor General Jane Doe`), or a body by its employee."""
    if head in known.holders and rest:
        return rest[0] not in known.particles and not known.explaining.union(known.doubtful).issuperset(rest)
    return head[0] in known.impersonal and _two_names(rest, known)


def _two_names(words: Words, known: Tables) -> bool:
    """Whether two names follow each other: `Jane Doe`."""
    return any(word in known.names and following in known.names for word, following in pairwise(words))


def _introduced(before: Words, known: Tables) -> bool:
    """Whether only a country, a state or an article precedes the head of a public body."""
    return all(word in known.before or word in known.business or word in known.particles for word in before)


def _qualified(part: Words, position: int, known: Tables) -> str | None:
    """`National ... Commission`, `Comisión Nacional de ...`: a noun of office with its qualifier."""
    noun, last = part[position], position + 1 == len(part)
    if _two_names(part[:position], known):  # Jane Doe National Treasury
        return None
    if not position and len(part) > _PAIR and part[1] in known.of_a_state and noun not in known.private_use:
        return f"{noun} {part[1]}"
    if not last and part[position + 1] not in known.particles and part[position + 1] not in known.qualifiers:
        return None
    near = {part[position - 1] if position else "", "" if last else part[position + 1]}
    if noun in known.private_use:
        matches = near & known.strong_qualifiers
    else:
        matches = (near | {part[0]}) & known.qualifiers
    return f"{min(matches)} {noun}" if matches and len(part) > _PAIR else None


def _cannot_be_person(part: Words, main: Words) -> bool:
    """Whether another part of the name is not a person: business words, an acronym, a form, another body."""
    if _only_forms(part):
        return False
    if _all_ordinary(part, main) or _public_body(part, 0) or " ".join(part) in tables().known:
        return True
    forms, strength = tables().forms, tables().strength
    return tuple(part) in strength or any(
        strength[form] == SURE and 0 < start == len(part) - len(form)
        for start, word in enumerate(part)
        if word in forms and (form := longest_phrase(forms, part, start))
    )


def _only_forms(part: Words) -> bool:
    """Whether a part consists of legal forms but may be a person: `Sas Sas`.

    Excludes `Sas Ltd`: a company's name may be a form elsewhere.
    """
    known = tables()
    return (
        len(part) > 1
        and tuple(part) not in known.strength
        and (part[-1] not in known.sure or len(set(part)) == 1)
        and all((word,) in known.strength for word in part)
    )


def _describes_business(first: Words, main: Words) -> bool:
    """`CETA - Engenharia e Construção, S.A.`: the first part is the name, the main one says what it does."""
    known = tables()
    ordinary = (known.explaining, known.doubtful, known.particles, known.forms)
    return (
        len(first) == 1
        and first[0] not in known.names
        and not known.business.isdisjoint(main)
        and all(any(word in words for words in ordinary) for word in main)
    )


def _all_ordinary(words: Words, main: Words) -> bool:
    """Whether every word is one of business or administration, and not all of them might be surnames."""
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


_PLACEHOLDER: Final = re.compile(r"\A[^0-9]*0[^1-9]*\Z|(?<!\d)0{4,}(?!\d)")
"""Portals write only zeros if there is no number."""
LEI_SCHEMES: Final = frozenset({"LEI", "XI-LEI", "GLEIF", "ISO17442", "ISO-17442"})


class Evidence(NamedTuple):
    """The evidence for an organisation; stored and served as `kind: detail`."""

    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


def names_a_person(name: str) -> bool:
    """Whether a name marks itself as a person's: a title, initials, a trading name."""
    folded = fold(name)
    return marked_as_person(folded, parts(folded))


def in_companies_register(scheme: str, number: str) -> bool:
    """Whether it is a well-formed number of a register that gives such numbers to no natural person."""
    return (
        scheme.strip().upper() not in LEI_SCHEMES
        and _by_identifier(scheme, number, _no_lei_records) is not None
    )


def is_no_persons(identifier: Identifier) -> bool:
    """Whether figures under a bare identifier may be served: no people are known to have such numbers.

    In tax registers and registers of sole traders people do have them. A person with an LEI or a SEC CIK is
    withheld because of the record that says so.
    """
    id_type, scheme, value = identifier
    if id_type == "registry" and scheme:
        return not any(
            codes.match(scheme) and numbers.match(value.upper()) for codes, numbers in people_too()
        )
    return id_type != "aggregator"


def _no_lei_records(_lei: str) -> bool:
    return False


def org_evidence(
    name: str,
    identifiers: Iterable[tuple[str, str]] = (),
    lei_is_organisation: Callable[[str], bool] = _no_lei_records,
    country: str = "",
) -> Evidence | None:
    """The strongest evidence that the party is an organisation; None if there is none.

    `identifiers` are pairs of scheme and id as the source gives them. `lei_is_organisation` says whether
    the record of an LEI exists and is not a sole proprietor's: an LEI alone proves nothing, people have them.
    `country` (alpha-2) is the party's: `Kriel S.A.` is a person with initials in South Africa, and a company
    in Paraguay. Without a country, dots count.
    """
    folded = fold(name)
    words = parts(folded)
    evidence = _by_identifiers(identifiers, lei_is_organisation)
    if not evidence and not worth_reading(name, words):
        return None
    if marked_as_person(folded, words, country):
        return None
    proof = None if evidence else body_by_name(name, country, folded, words)
    return Evidence(proof.kind, proof.detail) if proof else evidence


def _by_identifiers(
    identifiers: Iterable[tuple[str, str]], lei_is_organisation: Callable[[str], bool]
) -> Evidence | None:
    best = None
    for scheme, value in identifiers:
        evidence = _by_identifier(scheme, value, lei_is_organisation)
        if evidence and (best is None or evidence.kind == "lei"):
            best = evidence
    return best


def _by_identifier(scheme: str, value: str, lei_is_organisation: Callable[[str], bool]) -> Evidence | None:
    code, number = scheme.strip().upper(), " ".join(value.split()).upper()
    if code in LEI_SCHEMES:
        number = lei.compact(number)
        return Evidence("lei", number) if lei.is_valid(number) and lei_is_organisation(number) else None
    register = register_code(code)
    shape = registers().get(register)
    is_number = shape is not None and shape.fullmatch(number) and not _PLACEHOLDER.search(number)
    return Evidence("registry", register) if is_number else None
