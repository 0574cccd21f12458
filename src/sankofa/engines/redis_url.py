"""The address of a store on several Redis servers: sentinels that watch a primary, or a cluster."""

from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from sankofa.model.errors import SettingsError

_FORM: Final = (
    "A Redis URL of several servers is redis+sentinel://[user:password@]host:port,host:port/name[/database] "
    "or redis+cluster://[user:password@]host:port,host:port"
)


class NodesUrl(NamedTuple):
    """Where the servers are and how to be let in. Never shown: the URL may carry a password."""

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
