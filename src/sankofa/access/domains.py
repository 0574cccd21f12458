"""Customers' own domains: hosts on which the service answers one customer's keys, with links to that host.

The key store has a record for each host. Requests to the service's own host need none. For any other host
a worker caches the record for one second. So additions and removals take effect within a second, and a busy
domain costs one read a second.
See docs/decisions/keys-and-domains.md.

See contract: KEY-11.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

import msgspec

from sankofa.access.keys import KeyRecord
from sankofa.access.records import DamagedRecord, Records, SealedRecords
from sankofa.access.tiers import Grant
from sankofa.model.days import instant
from sankofa.model.errors import OperatorError, Unauthorized
from sankofa.settings import Settings

_PREFIX: Final = "domain:"
_TIER: Final = "professional"
_TRUSTED_SECONDS: Final = 1.0
_MOST_SITES: Final = 1024
_HOST: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*\Z"
)
_PORTS: Final = {"http": "80", "https": "443"}


class DomainRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record of a domain, stored under its host."""

    host: str
    keys: tuple[str, ...]
    """The ids of the keys answered on this host."""
    added_at: str
    removed_at: str | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """The service as it presents itself on one host."""

    settings: Settings
    """The settings with the addresses of that host, used for links."""
    keys: frozenset[str] | None = None
    """The ids of the only keys answered there; None if all valid keys are."""

    @property
    def base_url(self) -> str:
        return self.settings.base_url

    @property
    def is_customers(self) -> bool:
        return self.keys is not None

    def admit(self, grant: Grant) -> None:
        """Raises Unauthorized for a key that does not belong to the host's customer."""
        if self.keys is not None and grant.key_id not in self.keys:
            raise Unauthorized("This host answers the keys of its owner only.")


class Domains:
    def __init__(self, records: SealedRecords, settings: Settings, clock: Callable[[], datetime]) -> None:
        self._records = Records(records, _PREFIX, DomainRecord, lambda record: record.host)
        self._settings = settings
        self._clock = clock
        self.own = Site(settings)
        """The service's own host, and every host that is not a customer's."""
        own = {urlsplit(url).netloc.lower() for url in (settings.base_url, settings.public_mcp_url)}
        self._own_hosts = frozenset(host.encode() for host in own)
        self._own_names = frozenset(_split(host)[0] for host in own)
        self._sites: dict[bytes, tuple[float, Site]] = {}

    async def site(self, host: bytes) -> Site:
        """The site that a Host header names. Raises StoreUnavailable."""
        if host in self._own_hosts:
            return self.own
        known = self._sites.get(host)
        now = time.monotonic()
        if known is not None and now < known[0]:
            return known[1]
        name, port = _split(host.decode("latin-1").lower())
        site = await self._look_up(name, port)
        if len(self._sites) >= _MOST_SITES:
            self._sites.clear()
        self._sites[host] = now + _TRUSTED_SECONDS, site
        return site

    async def is_served(self, host: str) -> bool:
        """Whether a host is the service's own or a customer's, without a port. Raises StoreUnavailable."""
        try:
            name = host_name(host)
        except OperatorError:
            return False
        return name in self._own_names or (await self.site(name.encode())).is_customers

    async def _look_up(self, name: str, port: str) -> Site:
        if name in self._own_names or not _HOST.match(name):
            return self.own
        try:
            record = await self._records.get(name)
        except DamagedRecord:  # the record is damaged, so no key is accepted on that host
            return Site(self._settings, frozenset())
        if record is None or record.removed_at is not None:
            return self.own
        scheme = self._settings.domain_scheme
        ported = f":{port}" if port and port != _PORTS[scheme] else ""
        base_url = f"{scheme}://{name}{ported}"
        settings = replace(self._settings, base_url=base_url, mcp_url="", sandbox_key="")
        return Site(settings, frozenset(record.keys))

    async def add(self, host: str, key: KeyRecord) -> DomainRecord:
        """Add a professional key to the keys answered on a host. Raises OperatorError."""
        name = host_name(host)
        if name in self._own_names:
            raise OperatorError(f"{name} is the host of the service itself")
        if key.tier != _TIER:
            raise OperatorError(f"key {key.id} has the {key.tier} tier; a domain needs a {_TIER} key")
        if key.revoked_at is not None or key.opens:
            state = "is a link" if key.opens else f"was revoked at {key.revoked_at}"
            raise OperatorError(f"key {key.id} {state}")
        record = await self._find(name)
        if record is None:
            record = DomainRecord(name, (key.id,), instant(self._clock()))
            await self._records.put(record)
            return record
        return await self._records.change(name, lambda record: _with_key(record, key)) or record

    async def admit_too(self, key: KeyRecord, beside: KeyRecord) -> None:
        """Answer a key on every host that answers another key."""
        for record in await self.list():
            if beside.id in record.keys:
                await self._records.change(record.host, lambda record: _with_key(record, key))

    async def remove(self, host: str) -> DomainRecord:
        """Stop treating the host as a customer's. Raises OperatorError."""
        record = await self._find(host_name(host))
        if record is None:
            raise OperatorError(f"no domain {host_name(host)}: see `sankofa domains list`")
        # The record stays, marked as removed: key-value stores need not support deletion.
        now = instant(self._clock())
        removed = await self._records.change(
            record.host, lambda record: msgspec.structs.replace(record, removed_at=now)
        )
        return removed or record

    async def list(self) -> list[DomainRecord]:
        """Every domain with an undamaged record; the others are named in the log."""
        return [record for record in await self._records.whole() if record.removed_at is None]

    async def _find(self, name: str) -> DomainRecord | None:
        record = await self._records.get(name)
        return None if record is None or record.removed_at is not None else record


def _with_key(record: DomainRecord, key: KeyRecord) -> DomainRecord:
    if key.id in record.keys:
        return record
    return msgspec.structs.replace(record, keys=(*record.keys, key.id))


def host_name(text: str) -> str:
    """A host as a browser sends it: lower case, in ASCII. Raises OperatorError."""
    try:
        name = text.strip().rstrip(".").encode("idna").decode().lower() if text else ""
    except UnicodeError:
        name = ""
    if not _HOST.match(name):
        raise OperatorError(
            f"{text!r} is not a host name: give it as data.customer.example, without scheme, port or path"
        )
    return name


def _split(authority: str) -> tuple[str, str]:
    """The name in a Host header, and the port after it, if any."""
    name, colon, port = authority.rpartition(":")
    if colon and port.isascii() and port.isdigit() and len(port) <= 5:
        return name.rstrip("."), port
    return authority.rstrip("."), ""
