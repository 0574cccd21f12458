"""TLS to a server of another name: the connection ends before a word is said, whoever opens it."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.depth import deep_after
from tests.live import run
from tests.services import use_s3
from tests.tls import Certificate, certificate

_SSL_REQUEST = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")  # of PostgreSQL


class Listener:
    """A server at `localhost` that notes what it is told inside TLS, and hangs up."""

    def __init__(self, own: Certificate) -> None:
        self._context = own.context()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port: int = self._listening.getsockname()[1]
        self.connections = 0
        self.told = b""
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
            self.told += inside.recv(4096)

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
    """Run the command of a client of TLS; what it printed."""
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
def test_a_server_of_another_name_is_told_nothing(
    client: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("wrong.test", "localhost"):
        with listening(tmp_path / name, name) as (listener, own):
            monkeypatch.setenv("SSL_CERT_FILE", str(own.authority))
            use_s3(monkeypatch, f"https://localhost:{listener.port}")
            said = call(client, home, listener.port, own.authority)
            assert listener.connections, said
            assert bool(listener.told) == (name == "localhost"), (name, listener.told, said)


def test_the_listener_speaks_tls(tmp_path: Path) -> None:
    with listening(tmp_path, "localhost") as (listener, own):
        context = ssl.create_default_context(cafile=str(own.authority))
        with (
            socket.create_connection(("127.0.0.1", listener.port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as inside,
        ):
            inside.sendall(b"hello")
            assert inside.recv(1) == b""
        assert listener.told == b"hello"
