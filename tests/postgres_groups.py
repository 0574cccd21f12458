"""PostgreSQL in pairs for the tests: a primary, and a standby that follows it."""

import os

from tests.services import PostgresServer


class Primary(PostgresServer):
    """Takes TLS connections too, and streams to a standby."""

    def command(self) -> list[str]:
        more = {"wal_level": "replica", "max_wal_senders": "4", "ssl": "on"}
        options = [part for name, value in more.items() for part in ("-c", f"{name}={value}")]
        return [*super().command(), *options]

    def _initialise(self) -> None:
        super()._initialise()
        options = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
        names = ["-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-keyout", str(self.data / "server.key"), "-out", str(self.data / "server.crt")]
        assert self.run(["openssl", "req", "-x509", *options, *names, *files]).wait() == 0
        (self.data / "server.key").chmod(0o600)


class Standby(PostgresServer):
    """A copy of the primary that follows it."""

    name = "standby"

    def __init__(self, primary: Primary) -> None:
        super().__init__(primary.binaries)
        self._primary = primary

    def _initialise(self) -> None:
        if self.account:
            os.chown(self.home, self.account.pw_uid, self.account.pw_gid)
        source = f"host=127.0.0.1 port={self._primary.port} user=postgres"
        command = [
            str(self.binaries / "pg_basebackup"),
            "-d",
            source,
            "-D",
            str(self.data),
            "-R",
            "-X",
            "stream",
        ]
        assert self.run([*command, "-c", "fast", "--no-sync"]).wait() == 0, self.log.read_text()

    def promote(self) -> None:
        """Make it a primary, and wait until it is."""
        self.execute("SELECT pg_promote()")
