"""FIGIs of listed shares: replies of the OpenFIGI API."""

from collections.abc import Iterator
from typing import Final

import msgspec

from sankofa.model import text
from sankofa.model.errors import FormatError
from sankofa.model.identifiers import exchange_of_figi, make_identifier
from sankofa.model.records import IdentifierLink, Record, Rejected, Skipped
from sankofa.sources.base import InputFile, adapter

_EXPECTED: Final = "expected a reply of the OpenFIGI API (mapping, search or filter)"
_FIGIS: Final = ("figi", "compositeFIGI", "shareClassFIGI")
_SHARES: Final = {"common stock", "preference", "depositary receipt", "partnership shares", "reit"}
"""By `securityType2`, else `securityType`: what an issuer is known by. Options, warrants, rights, indices
and funds trade as equities too, but their tickers name the instrument."""
_REPLY: Final = {"data", "next", "total", "error", "warning"}


@adapter("openfigi")
def read(file: InputFile) -> Iterator[Record]:
    """OpenFIGI mapping responses JSON; search and filter replies too.

    Each FIGI of a share, its composite and its share-class FIGI are linked to EXCHANGE:TICKER where it is
    listed. A job answered with an error or a warning ("No identifier found.", one or the other by version of
    the API) is rejected in the reply's own words: the rejects file then says which jobs remained unmapped.
    """
    for name, stream in file.documents(".json", expected=f"{_EXPECTED}, found none in the archive"):
        prefix = f"{name} " if file.is_zip else ""
        for position, reply in _replies(f"{file.name}: {prefix}".strip(), stream.read()):
            yield from _instruments(prefix + position, reply)


def _replies(title: str, content: bytes) -> list[tuple[str, object]]:
    """Each reply and its place: a mapping request has one for each of its jobs."""
    try:
        document = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FormatError(f"{title} {_EXPECTED}; this is not JSON") from None
    if isinstance(document, list):
        replies = [(f"{index}/", reply) for index, reply in enumerate(document)]
    else:
        replies = [("", document)]
    if replies and not any(_is_reply(reply) for _, reply in replies):
        raise FormatError(f"{title} {_EXPECTED}; this is other JSON")
    return replies


def _is_reply(reply: object) -> bool:
    if not isinstance(reply, dict):
        return False
    data = reply.get("data")
    if isinstance(data, list) and data:
        return any(isinstance(instrument, dict) and "figi" in instrument for instrument in data)
    return bool(reply) and reply.keys() <= _REPLY  # other services answer with an empty `data` as well


def _instruments(position: str, reply: object) -> Iterator[Record]:
    data = reply.get("data") if isinstance(reply, dict) else None
    if isinstance(data, list):
        nasdaq = {_composite(instrument) for instrument in data if _exchange(instrument) == "NASDAQ"}
        for index, instrument in enumerate(data):
            if _exchange(instrument) == "NYSE" and _composite(instrument) in nasdaq:
                yield Skipped(1)  # every American share trades on the NYSE, wherever it is listed
            else:
                yield from _links(f"{position}data/{index}", instrument)
        return
    for outcome in ("error", "warning"):
        message = reply.get(outcome) if isinstance(reply, dict) else None
        if isinstance(message, str):
            yield Rejected(f"{position}{outcome}", f"nothing was mapped: {text.name(message[:200])}")
            return
    yield Rejected(position.rstrip("/"), "malformed reply")


def _links(location: str, instrument: object) -> Iterator[Record]:
    if not isinstance(instrument, dict):
        yield Rejected(location, "malformed instrument")
        return
    fields = {key: value.strip() for key, value in instrument.items() if isinstance(value, str)}
    name = _exchange(fields)
    kind = fields.get("securityType2") or fields.get("securityType", "")
    if fields.get("marketSector") != "Equity" or kind.lower() not in _SHARES or name is None:
        yield Skipped(1)
        return
    try:
        # The standard writes a slash where the exchange has a dot: BRK/B is BRK.B, BP/ is BP.
        subject = str(make_identifier("ticker", fields.get("ticker", "").replace("/", "."), name))
    except ValueError as failure:
        yield Rejected(location, str(failure))
        return
    figis = dict.fromkeys(fields[key] for key in _FIGIS if fields.get(key))
    if not figis:
        yield Rejected(location, "no FIGI is given")
    for figi in figis:
        try:
            yield IdentifierLink(str(make_identifier("figi", figi)), subject, location)
        except ValueError as failure:
            yield Rejected(location, str(failure))


def _exchange(instrument: object) -> str | None:
    code = instrument.get("exchCode") if isinstance(instrument, dict) else None
    return exchange_of_figi(code) if isinstance(code, str) else None


def _composite(instrument: dict[str, object]) -> object:
    return instrument.get("compositeFIGI")
