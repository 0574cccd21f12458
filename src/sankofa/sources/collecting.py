"""How a source is fetched: the `[sources.<id>.collect]` table, declared and checked."""

import re
from datetime import date, timedelta
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from sankofa.model.limits import limit

_REFUSED: Final = "the reply is refused"
_HOURS: Final = limit("time for a document (deadline)", 6, "hours", "the source has failed")
_PERIOD: Final = re.compile(r"([1-9][0-9]{0,4})(s|m|h|d|w)\Z")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_VARIABLE: Final = re.compile(r"\{([a-z_]+)\}")
VARIABLES: Final = ("country", "year", "quarter", "id", "page", "from", "to", "fred_key", "openfigi_key")
"""What may stand in braces in an address, a header or a file name."""
SECRETS: Final = ("fred_key", "openfigi_key")
"""Settings among them: never written down."""


class Collect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[sources.<id>.collect]` table."""

    urls: list[str]
    every: str = "1d"
    """How fresh is fresh enough: `6h`, `1d`, `1w`."""
    scheduled: bool = True
    """Whether it is fetched without being named."""
    method: Literal["GET", "POST"] = "GET"
    headers: dict[str, str] = {}
    max_bytes: int = limit("reply of a publisher (max_bytes), unpacked", 2 << 30, "bytes", _REFUSED)
    rate: float = 2.0
    """Requests a second to one host, at most."""
    deadline: str = f"{_HOURS}h"
    """How long one document may take, attempts and pauses included."""
    min_rate: int = limit("least rate of a transfer (min_rate)", 100, "bytes a second", "tried again")
    """Bytes a second of a transfer, at least, over a minute."""
    allow_private: bool = False
    """Plain http and addresses of one's own network; never link-local ones."""
    needs_contact: bool = False
    """Whether the publisher asks who is calling: SANKOFA_COLLECT_CONTACT."""
    countries: list[str] = []
    years: list[int] = []
    from_year: int = 0
    """Every year from this one until today, besides `years`."""
    ids: list[str] = []
    ids_file: str = ""
    """A file in HOME with one id a line, besides `ids`."""
    start: str = ""
    """The first day that `{from}` can be."""
    overlap_days: int = 3
    """How far before the last fetch `{from}` goes back."""
    file: str = ""
    """The name under which a reply is ingested, where the address does not end with one."""
    next: str = ""
    """JSON pointer to the address of the next page."""
    pages: str = ""
    """JSON pointer to the number of pages, for `{page}`."""
    same: list[str] = []
    """JSON pointers that must not change between the pages of one walk."""
    most_pages: int = limit("pages of one list (most_pages)", 10_000, "pages", "the source has failed")
    batch: int = 10
    """Ids in one POST."""
    job: dict[str, str] = {}
    """What a POST sends for each id."""
    may_be_missing: bool = False
    """Whether a 404 means: not published yet."""
    may_shrink: bool = False
    """Whether a reply of less than half its former size is believed."""

    @property
    def interval(self) -> timedelta:
        return period(self.every) or timedelta(days=1)

    @property
    def longest(self) -> timedelta:
        return period(self.deadline) or timedelta(hours=6)

    def fault(self) -> str | None:
        """What is wrong with the table."""
        if not self.urls:
            return "urls is empty"
        for name in ("every", "deadline"):
            if period(text := getattr(self, name)) is None:
                return f"{name} {text!r}: expected a number and one of s, m, h, d, w, such as 6h or 1d"
        if not (self.max_bytes > 0 and self.rate > 0 and self.batch > 0 and self.most_pages > 0):
            return "max_bytes, rate, batch and most_pages must be above 0"
        if self.min_rate < 0:
            return "min_rate must not be below 0"
        texts = [*self.urls, *self.headers.values(), *self.job.values(), self.file]
        unknown = {name for text in texts for name in _VARIABLE.findall(text)} - set(VARIABLES)
        if unknown:
            return f"unknown {{{sorted(unknown)[0]}}}: expected one of {', '.join(VARIABLES)}"
        if self.start and _day(self.start) is None:
            return f"start {self.start!r}: expected YYYY-MM-DD"
        return None

    def address_fault(self) -> str | None:
        """Why it may not be fetched from its addresses: nobody's but its own trouble."""
        return next(filter(None, (self._fault_of(url) for url in self.urls)), None)

    def _fault_of(self, url: str) -> str | None:
        try:
            parts = urlsplit(url)
            host = parts.hostname
        except ValueError as failure:
            return f"url {url!r}: {failure}"
        if parts.scheme not in ("https", "http") or not host:
            return f"url {url!r}: expected an https address"
        if parts.scheme == "http" and not self.allow_private:
            return f"url {url!r}: plain http needs allow_private = true"
        if parts.username or parts.password:
            return "a url with a password in it"
        if "{" in parts.netloc:
            return f"url {url!r}: the host is not a template"
        return None


def period(text: str) -> timedelta | None:
    """A length of time such as `6h`; None where it is none."""
    match = _PERIOD.match(text)
    return None if match is None else timedelta(seconds=int(match[1]) * _SECONDS[match[2]])


def variables_in(text: str) -> set[str]:
    return set(_VARIABLE.findall(text))


def filled(text: str, values: dict[str, Any]) -> str:
    """A template with its variables put in; those without a value stay."""
    return _VARIABLE.sub(lambda named: str(values.get(named[1], named[0])), text)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
