"""The requests that a source's table asks for, in order."""

import hashlib
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from sankofa.collect.network import CollectFailed
from sankofa.settings import Settings
from sankofa.sources.registry import SECRETS, Collect, filled, variables_in

_AXES: Final = ("country", "year", "quarter", "id")
_LONGEST_NAME: Final = 120
_CREDENTIAL_NAMES: Final = frozenset({"key", "sig", "pwd", "pass", "hmac", "jwt", "sid"})
_CREDENTIAL_WORDS: Final = (
    *("apikey", "accesskey", "subscriptionkey", "token", "secret", "signature", "password", "passwd"),
    *("credential", "auth", "session"),
)


class PlannedRequest(NamedTuple):
    url: str
    method: str
    headers: dict[str, str]
    body: bytes
    file_name: str
    hidden: tuple[str, ...]
    """Secrets in the request, never to be recorded."""
    page: int = 0
    """Page number in its list; 0 for a single document."""

    @property
    def public_url(self) -> str:
        return without_credentials(hide(self.url, self.hidden))

    @property
    def key(self) -> str:
        """Identifies this request: the state of its last reply is stored under this key."""
        sent = hashlib.sha256(self.body).hexdigest()[:16] if self.body else ""
        if (hidden_url := hide(self.url, self.hidden)) != self.public_url:  # pages told apart by a token
            sent = f"{hashlib.sha256(hidden_url.encode()).hexdigest()[:16]} {sent}"
        return f"{self.method} {self.public_url} {sent}".rstrip()


class RequestList(NamedTuple):
    """Requests that belong together: a single one, or the pages of a list in order."""

    first: PlannedRequest
    values: dict[str, Any]
    template: str


def hide(text: str, hidden: tuple[str, ...]) -> str:
    for secret in hidden:
        text = text.replace(secret, "***")
    return text


def without_credentials(url: str, first_url: str | None = None) -> str:
    """An address without a password, and without the values of parameters that are named like credentials.

    With `first_url`, the address before the redirects, values that it does not have are left out too, as
    publishers sign addresses with parameters of any name.
    """
    parts = urlsplit(url)
    known = None if first_url is None else set(urlsplit(first_url).query.split("&"))
    fields = []
    for field in parts.query.split("&"):
        name, equals, _ = field.partition("=")
        keep = not _names_credential(name) and (known is None or field in known)
        fields.append(field if keep or not equals else f"{name}=***")
    host = parts.netloc.rpartition("@")[2]
    netloc = f"***@{host}" if host != parts.netloc else host
    return parts._replace(netloc=netloc, query="&".join(fields), fragment="").geturl()


def _names_credential(name: str) -> bool:
    letters = "".join(c for c in unquote(name).lower() if c.isalpha())
    return letters in _CREDENTIAL_NAMES or any(word in letters for word in _CREDENTIAL_WORDS)


def request_lists(
    settings: Settings, collect: Collect, now: datetime, last_success: datetime | None
) -> Iterator[RequestList]:
    """Every request list of a table. Raises CollectFailed if a needed value is missing."""
    if fault := collect.address_fault():
        raise CollectFailed(fault)
    secrets = {name: getattr(settings, name) for name in SECRETS}
    values: dict[str, Any] = {
        **{name: text for name, text in secrets.items() if text},
        "to": f"{now:%Y-%m-%d}",
        "from": _since(collect, now, last_success),
    }
    ids = [*collect.ids, *_listed(settings.home, collect.ids_file)]
    if collect.method == "POST" and collect.job:
        for at in range(0, len(ids), collect.batch):
            jobs = [
                {name: filled(text, {"id": one}) for name, text in collect.job.items()}
                for one in ids[at : at + collect.batch]
            ]
            for url in collect.urls:
                yield RequestList(_call(collect, url, values, jobs, at // collect.batch + 1), values, url)
        return
    choices: dict[str, list[Any]] = {
        "country": list(collect.countries),
        "year": _years(collect, now),
        "quarter": [1, 2, 3, 4],
        "id": ids,
    }
    for url in collect.urls:
        used = [axis for axis in _AXES if axis in variables_in(url)]
        for axis in used:
            if not choices[axis]:
                raise CollectFailed(f"the address has {{{axis}}}, and none is listed")
        for combination in product(*(choices[axis] for axis in used)):
            own = values | dict(zip(used, combination, strict=True))
            if "quarter" in used and _is_to_come(own, now.date()):
                continue
            yield RequestList(_call(collect, url, own | {"page": 1}, None, 0), own, url)


def next_call(collect: Collect, requests: RequestList, page: int, url: str = "") -> PlannedRequest:
    """A later page of a list: by its number, or by the address that the previous page gives."""
    values = requests.values | {"page": page}
    call = _call(collect, requests.template, values, None, 0)
    if url:
        elsewhere = urlsplit(url).netloc != urlsplit(call.url).netloc
        headers = {} if elsewhere else call.headers  # never send one host's credentials to another
        call = call._replace(url=url, headers=headers, file_name=requests.first.file_name)
    return call._replace(page=page, file_name=numbered(call.file_name, page))


def numbered(name: str, number: int) -> str:
    """A file name with a number before its endings."""
    stem, dot, endings = name.partition(".")
    return f"{stem}-{number:05d}{dot}{endings}"


def _call(collect: Collect, template: str, values: dict[str, Any], jobs: Any, batch: int) -> PlannedRequest:
    url = filled(template, values)
    if missing := variables_in(url):
        name = sorted(missing)[0]
        why = f"SANKOFA_{name.upper()} is not set" if name in SECRETS else f"the address needs {{{name}}}"
        raise CollectFailed(why)
    headers = {name: filled(text, values) for name, text in collect.headers.items()}
    headers = {name: text for name, text in headers.items() if not variables_in(text)}
    hidden = tuple(str(values[name]) for name in SECRETS if values.get(name))
    body = b"" if jobs is None else msgspec.json.encode(jobs)
    if body:
        headers.setdefault("Content-Type", "application/json")
    name = filled(collect.file, values) if collect.file else _name_in(url)
    if batch:
        name = numbered(name, batch)
    return PlannedRequest(url, collect.method, headers, body, _safe(name), hidden)


def _name_in(url: str) -> str:
    """The last part of an address that has an ending, its query included."""
    parts = urlsplit(url)
    path = unquote(parts.path.rstrip("/").rpartition("/")[2])
    if "." not in path:
        named = [value for _, value in parse_qsl(parts.query) if "." in value.rpartition("/")[2]]
        if named:
            return named[-1]
    return path or parts.hostname or "reply"


def _safe(name: str) -> str:
    allowed = "".join(c if c.isalnum() or c in "._-" else "-" for c in name.rpartition("/")[2]).lstrip(".")
    return allowed[-_LONGEST_NAME:] or "reply"


def _since(collect: Collect, now: datetime, last_success: datetime | None) -> str:
    start = date.fromisoformat(collect.start) if collect.start else now.date() - timedelta(days=30)
    if last_success is not None:
        start = max(start, last_success.date() - timedelta(days=collect.overlap_days))
    return start.isoformat()


def _years(collect: Collect, now: datetime) -> list[int]:
    running = range(collect.from_year, now.year + 1) if collect.from_year else ()
    return sorted({*collect.years, *running})


def _is_to_come(values: dict[str, Any], today: date) -> bool:
    return (values.get("year", 0), values["quarter"]) >= (today.year, (today.month + 2) // 3)


def _listed(home: Path, name: str) -> list[str]:
    if not name:
        return []
    try:
        lines = (home / name).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        raise CollectFailed(f"{name} in HOME: cannot be read: {failure}") from failure
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]
