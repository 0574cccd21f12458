"""Which hosts and origins may call this server, and the key of a request (contract: MCP-8).

Browsers send what any page asks them to, and a page can point its own name at a local address (DNS
rebinding). Host and Origin are therefore checked first, before a key is even looked at.
"""

from urllib.parse import urlsplit

from sankofa.access.credentials import presented_key
from sankofa.access.domains import Domains, Site
from sankofa.mcp.refusals import MisdirectedRequest, OriginNotAllowed
from sankofa.operations.answers import Headers
from sankofa.settings import Settings

_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_ANY = "*"


class Guard:
    """The allowed hosts and origins. A host without a port stands for every port."""

    def __init__(self, settings: Settings, domains: Domains) -> None:
        self._domains = domains
        allowed = _listed(settings.mcp_allowed_hosts)
        own_hosts = (_host_of(url) for url in (settings.base_url, settings.public_mcp_url))
        self._hosts = frozenset((*_LOCAL, *own_hosts, *(name.removesuffix(":*") for name in allowed)))
        named = (origin.rstrip("/") for origin in _listed(settings.mcp_allowed_origins))
        self._origins = frozenset(named) | settings.cors_allowed()

    async def check(self, headers: Headers) -> Site:
        """The site of the request. Raises MisdirectedRequest or OriginNotAllowed.

        A customer's domain is a name of this server, and its own pages may ask. No Origin means no browser.
        """
        host = next(value for value in _values(headers, b"host") if value)
        site = await self._domains.site(host.encode("latin-1"))
        if site.keys is None and _ANY not in self._hosts and not self._is_own_host(host):
            raise MisdirectedRequest("MCP does not answer to that Host; see SANKOFA_MCP_ALLOWED_HOSTS.")
        for origin in _values(headers, b"origin"):
            if _ANY in self._origins or origin in self._origins:
                continue
            if origin == site.base_url:
                continue
            scheme, _, authority = origin.partition("://")
            if scheme not in ("http", "https") or not self._is_own_host(authority):
                raise OriginNotAllowed("MCP does not answer to that Origin; see SANKOFA_MCP_ALLOWED_ORIGINS.")
        return site

    def _is_own_host(self, authority: str) -> bool:
        return authority in self._hosts or _without_port(authority) in self._hosts


def key_of(headers: Headers) -> str:
    """The key of a request. Raises Unauthorized for none, or for more than one."""
    return presented_key(_texts(headers, b"x-api-key"), _texts(headers, b"authorization"))


def _texts(headers: Headers, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name == wanted]


def _values(headers: Headers, wanted: bytes) -> list[str]:
    return [text.lower() for text in _texts(headers, wanted)]


def _listed(text: str) -> list[str]:
    return [part.strip().lower() for part in text.split(",") if part.strip()]


def _host_of(url: str) -> str:
    return _without_port(urlsplit(url).netloc.rpartition("@")[2].lower())


def _without_port(authority: str) -> str:
    host, colon, port = authority.rpartition(":")
    return host if colon and port.isdigit() else authority
