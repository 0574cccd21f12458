"""Settings: the only reader of the environment.

Each setting is a field of `Settings`. The environment variable is `SANKOFA_` and the name in upper case.
Its metadata holds the help text for `sankofa settings` and docs/reference.
"""

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from sankofa.model.errors import SettingsError
from sankofa.model.signed_notes import Verifier, parse_verifier

PREFIX = "SANKOFA_"
ANY_ORIGIN = "*"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s?#@]+")
UNSET_KEYS_SECRET = b"a shared key store without KEYS_SECRET"
_MOST_PROCESSES = 64
_HTTP_ADDRESS = re.compile(r"https?://[^/\s?#]", re.IGNORECASE)
_HTTP_ADDRESSES = ("base_url", "mcp_url", "otlp_endpoint")
OF_THE_CLIENT = {"SANKOFA_URL", "SANKOFA_API_KEY"}
"""Variables that only `sankofa.client` reads."""


def _setting(default: Any, help: str, *, secret: bool = False, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"help": help, "secret": secret, "choices": choices})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting, with its default."""

    home: Path = _setting(Path("var"), "Data folder: ledger, editions, key stores, rejects.")
    datastore: str = _setting(
        "sqlite:", "Address of the ledger: sqlite: (HOME), sqlite:FOLDER, or postgresql:", secret=True
    )
    keystore: str = _setting(
        "embedded:", "Address of the key store: embedded: (a file in HOME) or redis://...", secret=True
    )
    usagestore: str = _setting(
        "embedded:", "Address of the quota counters: embedded: (a file in HOME) or redis://...", secret=True
    )
    usage_reserve: int = _setting(
        32,
        "MiB of disk reserved for the counters of an embedded usage store, so that keys still work on a "
        "full disk; 32 is enough for all.",
    )
    editions: str = _setting(
        "",
        "Address to follow editions from: https://.../editions of another HOME, or a `sankofa push` "
        "destination (https://..., s3://bucket/path, gs://, az://, postgresql://..., file:///folder). Empty: "
        "the database of DATASTORE if it is PostgreSQL, else none.",
        secret=True,
    )
    trusted_keys: str = _setting(
        "",
        "Comma-separated C2SP verifier keys, as `sankofa editions key` prints them: a node refuses editions "
        "that none of them signed. Empty: a publisher trusts its own key, a follower the first it saw.",
    )
    log_witnesses: str = _setting(
        "", "Comma-separated witnesses that cosign the log (C2SP tlog-witness): address, space, verifier key."
    )
    log_timestamp_url: str = _setting(
        "", "Authority that stamps the checkpoints of the log of editions (RFC 3161); empty for none."
    )
    editions_poll_seconds: int = _setting(1, "Seconds between two checks for a newer edition to follow.")
    base_url: str = _setting("http://127.0.0.1:8000", "Public address of the REST API.")
    mcp_url: str = _setting("", "Public address of the MCP server, without /mcp; if empty, BASE_URL.")
    domain_scheme: str = _setting(
        "https",
        "Scheme of the links on a customer's own domain, whatever a proxy reports.",
        choices=("https", "http"),
    )
    upgrade_url: str = _setting("https://sankofa.example/upgrade", "Upgrade address in 402 answers.")
    sandbox_key: str = _setting("sankofa-sandbox", "The public sample-tier key; empty for none.")
    cursor_secret: str = _setting(
        "",
        "Signs page cursors; comma-separated, the first signs, all verify. Generated in HOME when unset.",
        secret=True,
    )
    gate_secret: str = _setting(
        "",
        "Keys the hashes that identify withheld persons. Generated in HOME when unset.",
        secret=True,
    )
    keys_secret: str = _setting(
        "",
        "Seals the records in the key store; the same wherever that store is used. Comma-separated, the "
        "first seals, all verify. Generated in HOME when unset and the store is a file there.",
        secret=True,
    )
    rows_sample: int = _setting(25, "Most rows of one response on the sample tier.")
    rows_paid: int = _setting(10_000, "Most rows of one response on a paid tier.")
    rows_default: int = _setting(100, "Rows of a paid response when limit is omitted.")
    per_minute_sample: int = _setting(60, "Requests per UTC minute, sample tier.")
    per_minute_starter: int = _setting(300, "Requests per UTC minute, starter tier.")
    per_minute_professional: int = _setting(1_200, "Requests per UTC minute, professional tier.")
    per_month_sample: int = _setting(5_000, "Requests per UTC calendar month, sample tier.")
    per_month_starter: int = _setting(100_000, "Requests per UTC calendar month, starter tier.")
    per_month_professional: int = _setting(2_000_000, "Requests per UTC calendar month, professional tier.")
    per_minute_visitor: int = _setting(
        60, "New pages per UTC minute for one address without a key; pages from the cache are free."
    )
    per_day_visitor: int = _setting(2_000, "New pages per UTC day for one address without a key.")
    editions_kept: int = _setting(5, "Editions kept behind the current one.")
    publish_processes: str = _setting(
        "auto", "Processes that derive rows during `publish`; auto: one per core, at most four."
    )
    match_threshold: int = _setting(95, "Lowest score, in hundredths, at which similar names match.")
    block_cache_bytes: int = _setting(
        128 << 20,
        "Bytes of recently read rows that one worker caches, decompressed or in another form.",
    )
    answer_cache_bytes: int = _setting(
        32 << 20, "Bytes of repeated answers that one worker caches; 1 caches none."
    )
    ingest_file_bytes: int = _setting(64 << 30, "Most bytes of one ingested file, decompressed.")
    ingest_document_bytes: int = _setting(
        1 << 30, "Most bytes of a document that must be read whole: a JSON file, or a member of an archive."
    )
    ingest_line_bytes: int = _setting(64 << 20, "Most bytes of one line, or of one element of a JSON list.")
    ingest_text_length: int = _setting(
        1_000_000, "Most characters of one text; a row with a longer one is rejected."
    )
    ingest_xbrl_seconds: int = _setting(600, "Most seconds of processor time for one inline XBRL report.")
    ingest_xbrl_memory_bytes: int = _setting(4 << 30, "Most bytes of memory for one inline XBRL report.")
    mcp_answer_bytes: int = _setting(
        61_440, "Most bytes of JSON in the answer of an MCP tool; rows beyond are left out, with a cursor."
    )
    cors_origins: str = _setting(
        "",
        "Comma-separated Origins whose pages may call REST and MCP in a browser; * for any, empty for none.",
    )
    vault: str = _setting("on", "Keep ingested files as they came, in HOME/vault.", choices=("on", "off"))
    vault_key: str = _setting(
        "",
        "Key (32 bytes in base64url) that encrypts stored files that may name people. Without it, only their "
        "hash is stored.",
        secret=True,
    )
    vault_retention_days: int = _setting(365, "Days after which encrypted files are removed from the vault.")
    collect_sources: str = _setting(
        "", "Comma-separated built-in sources that `sankofa collect` fetches by default."
    )
    collect_contact: str = _setting(
        "", "Your name and e-mail address, sent to publishers in User-Agent; SEC asks for it."
    )
    collect_attempts: int = _setting(5, "Attempts at a request before its source counts as failed.")
    fred_key: str = _setting("", "Your own key of the FRED API, for `{fred_key}` in addresses.", secret=True)
    openfigi_key: str = _setting(
        "", "Your own key of the OpenFIGI API, for `{openfigi_key}` in headers.", secret=True
    )
    mcp_allowed_hosts: str = _setting(
        "", "Comma-separated Host values MCP answers to besides the local ones and MCP_URL's; * for any."
    )
    mcp_allowed_origins: str = _setting("", "Comma-separated Origins MCP answers to; * for any.")
    hooks_private: str = _setting("false", "Hooks may reach private addresses.", choices=("false", "true"))
    connections: int = _setting(
        10_000, "Most client connections of one worker; the slowest are closed to stay below it."
    )
    connections_per_address: int = _setting(
        1_000, "Connections from one address to one worker; above this, stalled ones are closed."
    )
    proxies: str = _setting(
        "",
        "Comma-separated addresses or networks (10.42.0.0/16) of your proxies. Wrong keys and keyless "
        "visitors are counted by the address in their X-Forwarded-For.",
    )
    stall_seconds: int = _setting(15, "Seconds after which a client that reads nothing is disconnected.")
    log_level: str = _setting(
        "info", "Lowest level that is logged.", choices=("debug", "info", "warning", "error")
    )
    log_format: str = _setting("text", "Format of log lines.", choices=("text", "json"))
    access_log: str = _setting(
        "off",
        "Log each request as a line of JSON on stderr, without values that a client sent.",
        choices=("off", "json"),
    )
    metrics_port: str = _setting("", "Port of the Prometheus metrics, at /metrics; empty for none.")
    metrics_host: str = _setting("127.0.0.1", "Address that the metrics are served on; they need no key.")
    otlp_endpoint: str = _setting(
        "", "Where traces are sent by OTLP over HTTP (http://host:4318/v1/traces); empty for none."
    )

    @property
    def public_mcp_url(self) -> str:
        return (self.mcp_url or self.base_url).rstrip("/")

    def cors_allowed(self) -> frozenset[str]:
        """The origins that may call from a browser; `*` allows any. Raises SettingsError."""
        parts = (part.lower().rstrip("/") for part in listed(self.cors_origins))
        origins = frozenset(filter(None, parts))
        for origin in sorted(origins):
            if origin != ANY_ORIGIN and not _ORIGIN.fullmatch(origin):
                raise SettingsError(
                    f"SANKOFA_CORS_ORIGINS: {origin!r} is not an origin: expected https://app.example, "
                    "without a path, or * for any"
                )
        return origins

    def proxy_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks whose X-Forwarded-For is trusted. Raises SettingsError."""
        networks = []
        for part in listed(self.proxies):
            try:
                networks.append(ip_network(part, strict=False))
            except ValueError:
                raise SettingsError(
                    f"SANKOFA_PROXIES: {part!r} is not an address: expected 10.0.0.1 or 10.42.0.0/16"
                ) from None
        return tuple(networks)

    def verifier_keys(self) -> tuple[Verifier, ...]:
        """The keys that may sign editions; empty if the setting is empty. Raises SettingsError."""
        keys = []
        for part in listed(self.trusted_keys):
            try:
                keys.append(parse_verifier(part))
            except ValueError as failure:
                raise SettingsError(f"SANKOFA_TRUSTED_KEYS: bad verifier key {part!r}: {failure}") from None
        return tuple(keys)

    def processes_to_publish(self) -> int:
        """The number of processes; 0 for auto. Raises SettingsError."""
        text = self.publish_processes.lower()
        if text == "auto":
            return 0
        if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MOST_PROCESSES):
            expected = f"auto or a number from 1 to {_MOST_PROCESSES}, not {self.publish_processes!r}"
            raise SettingsError(f"SANKOFA_PUBLISH_PROCESSES: expected {expected}")
        return int(text)

    def datastore_folder(self) -> Path | None:
        """The folder of ledger and editions: HOME, or that of `sqlite:FOLDER`; None for a database server."""
        scheme, _, folder = self.datastore.partition(":")
        return Path(folder or self.home) if scheme == "sqlite" else None

    def keyvalue_url(self, url: str, name: str) -> str:
        """`embedded:` alone means a file of that name in HOME."""
        return f"embedded:{self.home / name}" if url == "embedded:" else url

    def cursor_secrets(self) -> tuple[bytes, ...]:
        """The secrets that sign and verify cursors, the signing one first."""
        text = self.cursor_secret or self._stored_secret("cursor-secret", replaceable=True)
        return _secrets(text, "SANKOFA_CURSOR_SECRET (or cursor-secret in HOME)")

    def gate_key(self) -> bytes:
        """Raises SettingsError if the ledger's secret is missing: a new one would match nothing in it."""
        if self.lacks_gate_secret():
            raise SettingsError("gate-secret in HOME: missing beside a ledger; restore it from a backup")
        return (self.gate_secret or self._stored_secret("gate-secret")).encode()

    def lacks_gate_secret(self) -> bool:
        """Whether HOME has a ledger without the secret that opens it."""
        if self.gate_secret or (self.home / "gate-secret").exists():
            return False
        ledger = (self.datastore_folder() or self.home) / "ledger.sqlite"
        return self.datastore_folder() is not None and ledger.exists() and ledger.stat().st_size > 0

    def row_secret(self, *, create: bool = False) -> bytes | None:
        """The secret behind the salts of rows in the log of editions; None if nothing was logged here."""
        known = create or (self.home / "row-secret").exists()
        return self._stored_secret("row-secret").encode()[:64] if known else None

    def lacks_keys_secret(self) -> bool:
        """Whether HOME has key records without the secret that opens them."""
        if self.keys_secret or (self.home / "keys-secret").exists():
            return False
        return self.keystore == "embedded:" and (self.home / "keys").exists()

    def keys_secrets(self) -> tuple[bytes, ...]:
        """The secrets that seal and verify the records of the key store, the sealing one first.

        A store shared by several machines has no HOME of its own. Without KEYS_SECRET its records are sealed
        with a publicly known key: that detects damage, but not deliberate changes.
        """
        if not self.keys_secret and self.keystore.partition(":")[0] != "embedded":
            return (UNSET_KEYS_SECRET,)
        text = self.keys_secret or self._stored_secret("keys-secret")
        parts = _secrets(text, "SANKOFA_KEYS_SECRET (or keys-secret in HOME)")
        return parts if len(parts) == 1 else (*parts, text.encode())  # once: one secret with its commas

    def keys_secret_of_home(self) -> str:
        """KEYS_SECRET, then the secret in HOME that sealed the records before KEYS_SECRET was set."""
        if not self.keys_secret or self.keystore != "embedded:" or not (self.home / "keys-secret").exists():
            return self.keys_secret
        return f"{self.keys_secret},{self._stored_secret('keys-secret')}"

    def _stored_secret(self, name: str, *, replaceable: bool = False) -> str:
        """A secret in HOME, generated on first use. Raises SettingsError if it cannot be used.

        `replaceable`: nothing lasting depends on it, so an empty file is replaced.
        """
        path = self.home / name
        try:
            secret = self._generated(path)
            if not secret and replaceable:
                path.unlink(missing_ok=True)
                secret = self._generated(path)
        except (OSError, UnicodeDecodeError) as failure:
            reason = failure.strerror if isinstance(failure, OSError) else "not text"
            raise SettingsError(f"{name} in HOME: cannot be read: {reason}") from failure
        if not secret:
            raise SettingsError(f"{name} in HOME: is empty; put the secret back from a backup")
        return secret

    def _generated(self, path: Path) -> str:
        name = path.name
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = path.with_name(f"{name}.{os.getpid()}")
            try:
                with open(draft, "w", opener=lambda p, flags: os.open(p, flags, 0o600)) as stream:
                    stream.write(secrets.token_urlsafe(32) + "\n")
                os.link(draft, path)  # unlike a rename, never replaces another process's secret
            except FileExistsError:
                pass
            finally:
                draft.unlink(missing_ok=True)
        return path.read_text().strip()


def listed(text: str) -> list[str]:
    """The parts of a comma-separated setting."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _secrets(text: str, name: str) -> tuple[bytes, ...]:
    """The comma-separated secrets. Raises SettingsError if there is none."""
    parts = tuple(part.encode() for part in listed(text))
    if not parts:
        raise SettingsError(f"{name}: no secret between its commas")
    return parts


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this process. Raises SettingsError naming the variable."""
    values: dict[str, Any] = {}
    for f in fields(Settings):
        variable = PREFIX + f.name.upper()
        if (text := environment.get(variable)) is None:
            continue
        if isinstance(f.default, Path):
            values[f.name] = Path(text)
        elif isinstance(f.default, int):
            if not (text.isascii() and text.isdigit() and int(text) > 0):
                raise SettingsError(f"{variable}: expected a whole number above 0, not {text!r}")
            values[f.name] = int(text)
        elif f.metadata["choices"] and text.lower() not in f.metadata["choices"]:
            raise SettingsError(
                f"{variable}: expected one of {', '.join(f.metadata['choices'])}, not {text!r}"
            )
        else:
            values[f.name] = text.lower() if f.metadata["choices"] else text.strip()
            port = values[f.name] if f.name.endswith("_port") else ""
            if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
                raise SettingsError(f"{variable}: expected a port from 1 to 65535, not {text!r}")
            if f.name in _HTTP_ADDRESSES and text.strip() and not _HTTP_ADDRESS.match(values[f.name]):
                raise SettingsError(f"{variable}: expected http://... or https://..., not {text!r}")
            if f.name.endswith("_url"):
                values[f.name] = values[f.name].rstrip("/")
    settings = Settings(**values)
    settings.cors_allowed()
    settings.proxy_networks()
    settings.processes_to_publish()
    settings.verifier_keys()
    return settings


def unknown(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Variables with our prefix that are not settings: most likely mistyped."""
    known = {PREFIX + f.name.upper() for f in fields(Settings)} | OF_THE_CLIENT
    return sorted(name for name in environment if name.startswith(PREFIX) and name not in known)


def explain(environment: Mapping[str, str] = os.environ) -> list[tuple[str, str, str, str]]:
    """(variable, value, where it came from, help) of each setting, secrets masked."""
    settings = load(environment)
    rows = []
    for f in fields(Settings):
        variable = PREFIX + f.name.upper()
        value = str(getattr(settings, f.name))
        is_set = variable in environment
        address = isinstance(f.default, str) and (f.default.endswith(":") or f.name == "editions")
        masked = without_credentials(value) if address else "***"
        displayed = masked if f.metadata["secret"] and is_set else value
        rows.append((variable, displayed, "environment" if is_set else "default", f.metadata["help"]))
    return rows


def without_credentials(address: str) -> str:
    """The address with its credentials and its query masked."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        return address
    return f"{scheme}://{'***@' if '@' in rest else ''}{rest.rpartition('@')[2].partition('?')[0]}"
