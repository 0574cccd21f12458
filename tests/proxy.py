"""A TCP proxy whose network can be cut: packets go nowhere, and nobody is told."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """`with Proxy(port) as proxy:` forwards `proxy.port` to that port, until `cut` and again after `mend`."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listening.getsockname()[1]
        self._cut = threading.Event()
        self._links: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._drop()

    def cut(self) -> None:
        """Whatever is sent from now on, by either side, arrives nowhere; connections are still accepted."""
        self._cut.set()

    def mend(self) -> None:
        """New connections are forwarded again; those whose bytes were lost are reset."""
        self._cut.clear()
        self._drop()

    def _drop(self) -> None:
        links, self._links = self._links, []
        for link in links:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self._links.append(client)
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        if self._cut.is_set():
            self._swallow(client)
            return
        try:
            server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        self._links.append(server)
        threading.Thread(target=self._pump, args=(server, client), daemon=True).start()
        self._pump(client, server)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self._cut.is_set():
                    target.sendall(data)
            if not self._cut.is_set():
                target.shutdown(socket.SHUT_WR)

    def _swallow(self, client: socket.socket) -> None:
        with suppress(OSError):
            while client.recv(65536):
                pass
