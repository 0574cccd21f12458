"""The names and values in Redis, the same for one server, Sentinel and a cluster."""

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from sankofa.engines.keyvalue import Window
from sankofa.model.errors import SettingsError

VALUES: Final = "sankofa:values"
"""The hash that holds every value of a single server, and of one that sentinels watch."""
COUNT_SCRIPT: Final = """
local counts = {}
for i, key in ipairs(KEYS) do
  counts[i] = redis.call('INCR', key)
  if counts[i] == 1 then redis.call('EXPIRE', key, ARGV[i]) end
end
return counts
"""
REPLACE_SCRIPT: Final = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""
"""Arguments: a hash, a field, the expected value and the new value."""
COUNT_SHA: Final = hashlib.sha1(COUNT_SCRIPT.encode(), usedforsecurity=False).hexdigest()


def counter_names(name: str, windows: Sequence[Window]) -> list[str]:
    """The keys of the counters: the braces keep those of one name on one node, as a script demands."""
    return [f"sankofa:count:{{{name}}}:{window.name}" for window in windows]


def counter_words(name: str, windows: Sequence[Window]) -> list[str]:
    """The keys of the counters, then their seconds: what COUNT_SCRIPT takes after the number of keys."""
    return [*counter_names(name, windows), *(str(window.seconds) for window in windows)]


def counts_in(reply: object, windows: int, least: int) -> tuple[int, ...] | None:
    """The counters of an answer, each of at least so many; None if they were altered."""
    if not isinstance(reply, list) or len(reply) != windows:
        return None
    try:
        counts = tuple(int(count or 0) for count in reply)
    except (ValueError, TypeError):
        return None
    return counts if min(counts, default=least) >= least else None


_FORM: Final = (
    "A Redis URL of several servers is redis+sentinel://[user:password@]host:port,host:port/name[/database] "
    "or redis+cluster://[user:password@]host:port,host:port"
)


class NodesUrl(NamedTuple):
    """Addresses and credentials of the servers. Never shown: the URL may carry a password."""

    cluster: bool
    tls: bool
    addresses: tuple[tuple[str, int], ...]
    name: str
    database: int
    credentials: dict[str, str]
    sentinel_credentials: dict[str, str]

    @classmethod
    def parse(cls, url: str) -> "NodesUrl":
        """Raises SettingsError, which does not quote the URL."""
        scheme, _, rest = url.partition("://")
        rest, _, query = rest.partition("?")
        login, _, location = rest.rpartition("@")
        hosts, *path = location.rstrip("/").split("/")
        cluster = scheme.endswith("+cluster")
        user, _, password = login.partition(":")
        options = dict(parse_qsl(query))
        known = options.keys() <= {"sentinel_username", "sentinel_password"}
        try:
            addresses = tuple(_address(part, 6379 if cluster else 26379) for part in hosts.split(","))
            database = int(path[1]) if len(path) > 1 else 0
        except ValueError:
            raise SettingsError(_FORM) from None
        if not known or len(path) > (0 if cluster else 2) or (not cluster and not (path and path[0])):
            raise SettingsError(_FORM)
        given = {"username": unquote(user), "password": unquote(password)}
        return cls(
            cluster,
            scheme.startswith("rediss"),
            addresses,
            "" if cluster else unquote(path[0]),
            database,
            {name: value for name, value in given.items() if value},
            {name.removeprefix("sentinel_"): value for name, value in options.items()},
        )


def _address(text: str, port: int) -> tuple[str, int]:
    """Raises ValueError."""
    host, colon, given = text.rpartition(":")
    if not colon:
        host, given = text, str(port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not 0 < int(given) < 65536:
        raise ValueError(text)
    return host, int(given)
