"""Finds people named in free text, after a title or as a contact.

A name extends over all words spelled like names: `Dr A. Pillay`, `Enquiries: S. Zulu`. Bodies, places and
goods named after somebody stay: `Dr Kenneth Kaunda District`, `Rue du Dr Calmette`, `Mr Price Group`. The
surrounding words distinguish them. See docs/decisions/organisation-gate.md.
"""

import re
from collections.abc import Iterator, Set
from typing import Final, NamedTuple

from sankofa.model.ocds.telephones import WORD, has_address, has_digits, has_hint, telephones, vocabulary
from sankofa.model.organisations import org_evidence
from sankofa.model.text import fold_in_place

Span = tuple[int, int]

EMAIL: Final = re.compile(
    r"(?<![\w.+%'-])[\w.+%'-]++(?:(?:@|\s?[(\[]\s?at\s?[)\]]\s?)[\w-]++(?:(?:\.|\s?[(\[]\s?dot\s?[)\]]\s?)[\w-]++)++"
    r"|\s?@\s?[\w-]++(?:\.[\w-]++)*?\.[A-Za-z]{2,6}\b|\sat\s[\w-]++(?:\sdot\s[\w-]++)++)"
)
_LINK = re.compile(r"\.?[\u00ba\u00aa\u00b0]?[ \t\u00a0]*\Z")
_WITHIN = re.compile(r"(?:\.|\.-)?[ \t\u00a0]*\Z")
_AFTER_CONTACT = re.compile(r"(?:\([^()\n]{0,40}\)|[\s.:;=*|>\u055d\u0589\u2013\u2014-]){0,12}\(?\Z")
_COLON = re.compile("[:;=|>\u055d\u0589\u2013\u2014-]|\n")
_JOINED = re.compile(r"[ \t]*+[/&;,+|][ \t]*+(?:(?:and|or|et|ou)[ \t]*+)?\Z", re.IGNORECASE)
_REACHED = re.compile(r"@|(?:\+|(?<!\w)0)\d[\d ().-]{6,14}\d")
_REACHING = re.compile(r"\A[\s,]{0,3}(?:on|at|au|sur|pelo|no|kwa|via|by)\s")
_CASELESS = re.compile("[\u0600-\u06ff\u1200-\u137f]")
"""Arabic and Ethiopic, which have no capitals."""
_MOST_WORDS, _MOST_CASELESS, _MOST_PARTICLES = 6, 4, 3
_OF_BODIES: Final = frozenset(
    "ya wa za l d n of general generale nacional nationale national regional provincial central centrale "
    "primaire secondaire municipal municipale publique publico publica universitaire universitario rural "
    "basica militar militaire tecnica technique principal principale".split()
)
"""Words between the kind of a body and the person it is named after."""
_INITIALS, _AHEAD, _NEAR, _ZONE = 3, 5, 45, 150
_PARTICLES: Final = frozenset(
    "van der den de la le du da das do dos del di von ben bin ibn bint binti al el ould ole arap abu mac "
    "mc o st te ter ten ka wa y e".split()
)


class _Word(NamedTuple):
    plain: str
    start: int
    end: int


def persons(
    text: str, ordinary: Set[str], public: Set[str], *, numbers: bool, address: bool = False
) -> Iterator[Span]:
    """The spans of a text that name a person or give contact details.

    `ordinary` words are nobody's name; `public` words are in the names of served organisations.
    """
    hinted = has_hint(text)
    emails = [match.span() for match in EMAIL.finditer(text)] if has_address(text) else []
    names, contacts = list[Span](), list[int]()
    if hinted:
        names, contacts = _Reader(text, ordinary, public, [span[0] for span in emails], address).names()
    yield from emails
    yield from names
    if numbers and has_digits(text):
        yield from telephones(text, sorted([*contacts, *(end for _, end in [*names, *emails])]))


class _Reader:
    def __init__(
        self, text: str, ordinary: Set[str], public: Set[str], emails: list[int], address: bool
    ) -> None:
        self._text, self._address, self._small = text, address, text.islower()
        self._words = [
            _Word(fold_in_place(match.group()).replace("\u2019", "'"), *match.span())
            for match in WORD.finditer(text)
        ]
        self._ordinary, self._public, self._emails = ordinary, public, emails
        letters = [w for w in self._words if w.plain.isalpha() and len(w.plain) > _INITIALS]
        small = sum(text[word.start].islower() for word in letters)
        large = sum(text[word.start].isupper() for word in letters)
        self._headline = small * 2 < large
        """Whether most words begin with a capital, so that capitals do not indicate names."""

    def names(self) -> tuple[list[Span], list[int]]:
        """The names, and the ends of the words that introduce a contact."""
        spans, contacts = list[Span](), list[int]()
        for number in range(len(self._words)):
            if spans and self._words[number].start < spans[-1][1]:
                continue
            phrase, kind = self._phrase(number)
            if not phrase:
                if contacts and self._words[number].start - contacts[-1] < _ZONE:
                    spans += self._another(number)
                continue
            after = number + len(phrase)
            if kind in ("contacts", "authors"):
                contacts.append(self._words[after - 1].end)
            if kind.endswith("titles"):
                spans += self._titled(number, after, phrase, kind)
            else:
                spans += self._contact(after, kind)
        return spans, contacts

    def _phrase(self, number: int) -> tuple[tuple[str, ...], str]:
        for phrase, kind in vocabulary().phrases.get(self._words[number].plain, ()):
            last = number + len(phrase)
            if len(phrase) == 1 or (
                tuple(word.plain for word in self._words[number:last]) == phrase
                and all(self._gap(n).strip(" \t.\n'\u00a0") == "" for n in range(number, last - 1))
            ):
                return phrase, kind
        return (), ""

    def _gap(self, number: int) -> str:
        """The text between a word and the next."""
        end = self._words[number].end
        following = self._words[number + 1].start if number + 1 < len(self._words) else len(self._text)
        return self._text[end:following]

    def _titled(self, number: int, after: int, phrase: tuple[str, ...], kind: str) -> Iterator[Span]:
        if after >= len(self._words):
            return
        written = self._text[self._words[number].start : self._words[after - 1].end]
        if self._phrase(after)[1] == "titles":
            return  # the name belongs to the second title
        gap = self._gap(after - 1)
        dotted = gap.startswith(".") or (number and self._gap(number - 1).endswith("."))
        if not written.isascii():
            gap = gap.replace("/", "", 1)
        if not _LINK.match(gap) or (phrase in vocabulary().dotted and not gap.startswith(".")):
            return
        if written[0].islower() and not self._capital(after) and not self._small:
            return
        if len(phrase[0]) == 1 and (
            written[0].islower() or " " not in gap or (number and _initial(self._words[number - 1]))
        ):
            return
        if self._address and phrase[0] in vocabulary().of_streets:
            return
        if (*phrase, self._words[after].plain) in vocabulary().brands or self._after_institution(number):
            return
        sure = kind == "titles" and (
            dotted or not written.isupper() or len(written) > _INITIALS or not written.isascii()
        )
        if not sure and gap.startswith(".") and (not number or self._gap(number - 1).strip()):
            # `Avis: M. Fatou Kouame`: in a headline, separation shows a name, capitals do not
            word = self._words[after]
            sure = (
                self._end(after, lower=False) - after > 1 and not self._text[word.start : word.end].isupper()
            )
        yield from self._run(after, enough=1 if sure else 2, lower=self._small)

    def _another(self, number: int) -> Iterator[Span]:
        """Another name among contacts: a well-known name, or a name with a number or address."""
        if self._after_institution(self._first_of_name(number)):
            return
        if self._capital(number) and (end := self._end(number, lower=False)) > number:
            known = self._words[number].plain in vocabulary().names and end > number + 1
            if (known or self._reached_at(end)) and self._is_person(number, end, 2):
                yield from self._run(number, enough=2, lower=False)

    def _first_of_name(self, number: int) -> int:
        """The first of the titles and names before a word."""
        for back in range(number - 1, max(-1, number - _MOST_WORDS), -1):
            title = self._phrase(back)[1].endswith("titles")
            if not _LINK.match(self._gap(back)) or not (title or self._name_like(back, lower=False)):
                return back + 1
        return number

    def _after_institution(self, number: int) -> bool:
        """Whether the kind of a body or place precedes a title: `Rue du Dr Calmette`."""
        for back in range(number - 1, max(-1, number - 4), -1):
            if self._gap(back).strip(" \t'\u2019\u00a0"):
                return False
            plain = self._words[back].plain
            if plain in vocabulary().before:
                return True
            if plain not in _PARTICLES and plain not in _OF_BODIES:
                return False
        return False

    def _contact(self, after: int, kind: str) -> Iterator[Span]:
        known = vocabulary()
        number, colon, skipped = after, False, 0
        while number < len(self._words):
            gap = self._gap(number - 1)
            if not _AFTER_CONTACT.match(gap.removeprefix(",") if skipped else gap):
                return
            word = self._words[number]
            colon = colon or _COLON.search(gap) is not None or word.plain in ("is", "est", "ni")
            kind_of_next = self._phrase(number)[1]
            if kind_of_next.endswith("titles") and not _initial(word):
                named_so = kind_of_next == "doubtful_titles" and not self._gap(number).startswith(".")
                if not named_so:
                    return  # the title marks the name
            is_filler = word.plain in known.fillers and not (
                _initial(word) and self._capital(number) and (colon or not self._headline)
            )
            if not is_filler or skipped > 4:
                break
            number, skipped = number + 1, skipped + 1
        if number >= len(self._words) or (kind == "offices" and not colon):
            return
        direct = self._words[after - 1].plain in ("c/o", "attn", "att", "fao")
        enough = 1 if (colon and kind == "contacts") or direct else 2
        names = list(self._run(number, enough=enough, lower=colon and self._small))
        if not names and kind == "contacts":
            names = self._after_colon(number)
        yield from names

    def _after_colon(self, number: int) -> list[Span]:
        """`Contact at the mine: Andile Mokgoro`."""
        for later in range(number + 1, min(number + 8, len(self._words))):
            gap = self._gap(later - 1)
            if ":" in gap:
                enough = self._end(later, lower=False) - later > 1
                return list(self._run(later, enough=1, lower=False)) if enough else []
            if "." in gap or "\n" in gap:
                break
        return []

    def _run(self, number: int, *, enough: int, lower: bool) -> Iterator[Span]:
        """A name that begins with a word, and the names joined to it."""
        end = self._end(number, lower=lower)
        if end == number or not self._is_person(number, end, enough):
            return
        while True:
            yield self._words[number].start, self._words[end - 1].end + self._final_dot(end - 1)
            following = self._next_name(end, number)
            if following is None:
                return
            number, end = following

    def _final_dot(self, last: int) -> int:
        word = self._words[last]
        return int(
            _initial(word)
            and self._text[word.end : word.end + 1] == "."
            and self._text[word.end + 1 : word.end + 2] not in ("", "\n")
        )

    def _next_name(self, end: int, first: int) -> tuple[int, int] | None:
        if end >= len(self._words):
            return None
        gap, start = self._gap(end - 1), end
        if (
            self._words[end].plain in vocabulary().joiners
            and not gap.strip(" \t.,;")
            and end + 1 < len(self._words)
        ):
            start, gap = end + 1, self._gap(end)
            if gap.strip(" \t"):
                return None
            comma = False
        elif _JOINED.match(gap.lstrip(".")) and gap.strip():
            comma = "," in gap
        else:
            return None
        if self._phrase(start)[1].endswith("titles") and not _initial(self._words[start]):
            return None
        last = self._end(start, lower=False)
        if last == start:
            return None
        named = [w for w in self._words[start:last] if w.plain in vocabulary().names]
        initialled = last - start > 1 and any(_initial(w) for w in self._words[start:last])
        alone = end - first == 1 or all(
            _initial(w) or w.plain in _PARTICLES for w in self._words[first : end - 1]
        )
        inverted = (
            comma
            and end - first == 1
            and last - start <= 2
            and (
                bool(named)
                or self._text[self._words[first].start : self._words[first].end].isupper()
                or last - start == 1
            )
        )
        if (
            inverted
            or initialled
            or (self._words[start].plain in vocabulary().names)
            or (not comma and (named or last - start > 1 or alone))
        ):
            return (start, last) if not self._institution(start, last) else None
        return None

    def _end(self, number: int, *, lower: bool) -> int:
        """The position after the name that begins here; that of the word itself if none does."""
        end = last = number
        caseless = _CASELESS.match(self._words[number].plain) is not None
        count = 0
        while end < len(self._words) and count < (_MOST_CASELESS if caseless else _MOST_WORDS):
            word = self._words[end]
            if end > number and not _WITHIN.match(self._gap(end - 1)):
                break
            if end > number and self._gap(end - 1).startswith(".") and not self._abbreviated(end - 1):
                break
            if (
                word.plain in _PARTICLES
                and end + 1 < len(self._words)
                and (not _initial(word) or not self._capital(end))
            ):
                if end - last >= _MOST_PARTICLES:
                    break
                end += 1
                continue
            if not self._name_like(end, lower=lower) or (caseless and not _CASELESS.match(word.plain)):
                break
            count += 1
            end = last = end + 1
        return last if last > number else number

    def _abbreviated(self, number: int) -> bool:
        """Whether the dot after a word belongs to an initial and does not end a sentence."""
        return len(self._words[number].plain) <= _INITIALS - 1

    def _name_like(self, number: int, *, lower: bool) -> bool:
        word = self._words[number]
        plain, known = word.plain, vocabulary()
        if _initial(word):
            return self._capital(number)
        if (
            plain.isdigit()
            or plain in known.plain
            or (plain in known.institutions and plain not in known.names)
        ):
            return False
        if (plain in self._ordinary or plain in self._public) and plain not in known.names:
            return False
        if self._phrase(number)[1] in ("contacts", "authors", "offices"):
            return False
        return lower or self._capital(number) or _CASELESS.match(plain) is not None

    def _capital(self, number: int) -> bool:
        letter = self._text[self._words[number].start]
        return not letter.islower() or letter.title() == letter

    def _is_person(self, number: int, end: int, enough: int) -> bool:
        words = [word for word in self._words[number:end] if word.plain not in _PARTICLES]
        whole = [word for word in words if not _initial(word)]
        if not whole or self._institution(number, end):
            return False
        if len(whole) == 1 and len(words) == 1 and enough == 1:
            written = self._text[whole[0].start : whole[0].end]
            acronym = written.isupper() and len(written) <= _AHEAD and not self._headline
            return (not acronym or written.lower() in vocabulary().names) and len(written) > 1
        if any(word.plain in vocabulary().names for word in words) or (
            len(words) > len(whole) and len(whole[-1].plain) > 2
        ):
            return True
        if enough == 1 or self._reached_at(end):
            return True
        return len(whole) > 1 and not self._headline

    def _reached_at(self, end: int) -> bool:
        """Whether a number or an address follows the name."""
        stop = self._words[end - 1].end
        if any(stop <= start <= stop + _AHEAD * 4 for start in self._emails):
            return True
        if _REACHED.search(self._text, stop, stop + _NEAR):
            return True
        rest = _REACHING.sub("", fold_in_place(self._text[stop : stop + 40]))
        return (
            re.match(
                r"[\s,;:()/.-]{0,4}(?:(?:tel|cell|phone|mobile|fax|mob|simu|whatsapp|email|e-mail)[\w]{0,9}|\+?\d[\d\s().-]{6})",
                rest,
            )
            is not None
        )

    def _institution(self, number: int, end: int) -> bool:
        """Whether the following words make it the name of a body, place or thing."""
        known = vocabulary()
        start = self._words[number].start
        for ahead in range(end, min(end + _AHEAD, len(self._words))):
            gap = self._gap(ahead - 1).strip(" \t\u00a0")
            word = self._words[ahead]
            if gap not in ("", ".", "&", "(") or (
                gap == "(" and word.plain not in ("pty", "proprietary", "private", "edms", "pvt")
            ):
                break
            if gap == "." and not self._abbreviated(ahead - 1):
                break
            if word.plain in known.institutions:
                following = (
                    self._words[ahead + 1].plain
                    if ahead + 1 < len(self._words) and not self._gap(ahead).strip(" ")
                    else ""
                )
                return self._phrase_kind(following) != "offices"
            if (
                not self._capital(ahead)
                or self._phrase_kind(word.plain) == "offices"
                or word.plain in known.joiners
            ):
                break
        return org_evidence(self._text[start : self._words[end - 1].end]) is not None

    def _phrase_kind(self, plain: str) -> str:
        return next((kind for phrase, kind in vocabulary().phrases.get(plain, ()) if len(phrase) == 1), "")


def _initial(word: _Word) -> bool:
    """Whether a word is a set of initials."""
    return len(word.plain) == 1 and word.plain.isalpha() and not _CASELESS.match(word.plain)
