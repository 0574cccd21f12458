"""TLS to a server with another name ends before any client sends data."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.depth import deep_after
from tests.live import run
from tests.services import use_s3


class Certificate(NamedTuple):
    """The files of a server: the certificate that clients trust, its own chain and its key."""

    authority: Path
    chain: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain, self.key)
        return context


def certificate(folder: Path, *names: str) -> Certificate:
    """A certificate for these names or addresses, in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _signed("authority.test", authority_key, authority_key, "authority.test", None)
    chain = _signed(names[0], key, authority_key, "authority.test", names)
    own = Certificate(folder / "authority.pem", folder / "chain.pem", folder / "key.pem")
    own.authority.write_bytes(authority.public_bytes(Encoding.PEM))
    own.chain.write_bytes(chain.public_bytes(Encoding.PEM))
    own.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    own.key.chmod(0o600)
    return own


def _signed(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    by: ec.EllipticCurvePrivateKey,
    issuer: str,
    names: tuple[str, ...] | None,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=names is None, path_length=None), critical=True)
    )
    if names is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(n) for n in names]), False)
    return builder.sign(by, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _general(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


_SSL_REQUEST = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")  # of PostgreSQL


class Listener:
    """A server at `localhost` that records what it receives inside TLS, and hangs up."""

    def __init__(self, own: Certificate) -> None:
        self._context = own.context()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port: int = self._listening.getsockname()[1]
        self.connections = 0
        self.received = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.connections += 1
                with client, suppress(OSError):
                    client.settimeout(10)
                    self._answer(client)

    def _answer(self, client: socket.socket) -> None:
        if client.recv(8, socket.MSG_PEEK) == _SSL_REQUEST:
            client.recv(8)
            client.sendall(b"S")
        with self._context.wrap_socket(client, server_side=True) as inside:
            self.received += inside.recv(4096)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@contextmanager
def listening(folder: Path, name: str) -> Iterator[tuple[Listener, Certificate]]:
    own = certificate(folder / "tls", name)
    listener = Listener(own)
    try:
        yield listener, own
    finally:
        listener.close()


def call(client: str, home: Path, port: int, authority: Path) -> str:
    """The output of a TLS client's command."""
    address = f"localhost:{port}"
    if client == "collect":
        home.mkdir(exist_ok=True)
        (home / "sources.toml").write_text(
            '[sources.bank]\nadapter = "worldbank"\nsku = "AF-MACRO"\nlicense_class = "cc-by"\n'
            "commercial_redistribution = true\n[sources.bank.collect]\nallow_private = true\n"
            f'urls = ["https://{address}/NY.GDP.MKTP.CD.csv"]\n'
        )
        done = run(home, "collect", "bank", collect_attempts="1")
    elif client == "follow":
        done = run(home, "follow", "--once", editions=f"https://{address}/editions")
    elif client == "push":
        done = run(home, "push", "s3://editions/africa")
    elif client == "redis":
        done = run(home, "keys", "create", "--tier", "sample", keystore=f"rediss://{address}/0")
    else:
        url = f"postgresql://somebody@{address}/sankofa?sslmode=verify-full&sslrootcert={authority}"
        done = run(home, "ledger", "captures", datastore=url)
    assert done.returncode == 1, done.stdout
    return done.stderr


@pytest.mark.rule("CLI-12")
@pytest.mark.parametrize("client", deep_after(2, ["collect", "redis", "follow", "push", "postgresql"]))
def test_a_server_with_another_name_receives_no_data(
    client: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("wrong.test", "localhost"):
        with listening(tmp_path / name, name) as (listener, own):
            monkeypatch.setenv("SSL_CERT_FILE", str(own.authority))
            use_s3(monkeypatch, f"https://localhost:{listener.port}")
            output = call(client, home, listener.port, own.authority)
            assert listener.connections, output
            assert bool(listener.received) == (name == "localhost"), (name, listener.received, output)
