"""PostgreSQL and Redis in groups: a primary and its standby, sentinels and what they watch, a cluster."""

import os

from tests.patience import until
from tests.services import PostgresServer, RedisServer, free_port


class Primary(PostgresServer):
    """A primary that also accepts TLS connections, and streams to a standby."""

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


class Durable(RedisServer):
    """A Redis that writes to disk and refuses writes without a replica, so that no count is lost.

    Its settings are in a file, as on any machine: the sentinels write the current primary there, and a
    restarted server reads it.
    """

    def command(self) -> list[str]:
        settings = self.home / "redis.conf"
        if not settings.exists():
            settings.write_text("\n".join(self.lines()) + "\n")
        return [self.binary, str(settings)]

    def lines(self) -> list[str]:
        """The lines of its configuration file."""
        return [
            "bind 127.0.0.1",
            f"port {self.port}",
            'save ""',
            "appendonly yes",
            f"dir {self.home}",
            "min-replicas-to-write 1",
            "repl-diskless-sync-delay 0",  # otherwise a restarted primary waits for 5 s
        ]


class DurableReplica(Durable):
    """A replica under the same terms, which can become the primary."""

    def __init__(self, binary: str, primary: RedisServer) -> None:
        super().__init__(binary)
        self._primary = primary

    def lines(self) -> list[str]:
        return [*super().lines(), f"replicaof 127.0.0.1 {self._primary.port}"]


class SentinelServer(RedisServer):
    """Watches a primary, with short timeouts."""

    name = "sentinel"

    def __init__(self, binary: str, primary: RedisServer) -> None:
        super().__init__(binary)
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"sentinel monitor primary 127.0.0.1 {primary.port} 2",
            "sentinel down-after-milliseconds primary 1000",
            "sentinel failover-timeout primary 10000",  # otherwise a slow failover is abandoned halfway
        ]
        (self.home / "sentinel.conf").write_text("\n".join(lines) + "\n")

    def command(self) -> list[str]:
        return [self.binary, str(self.home / "sentinel.conf"), "--sentinel"]


class ClusterServer(RedisServer):
    """A node of a cluster."""

    def __init__(self, binary: str) -> None:
        super().__init__(binary)
        self.bus = free_port()

    def command(self) -> list[str]:
        more = ("--cluster-enabled", "yes", "--cluster-port", str(self.bus))
        return [*super().command(), *more, "--cluster-node-timeout", "2000"]


class DurablyWatched:
    """A primary and two replicas that lose no confirmed write, under three sentinels."""

    def __init__(self, binary: str) -> None:
        self.primary = Durable(binary)
        self.replicas = [DurableReplica(binary, self.primary) for _ in range(2)]
        self.sentinels = [SentinelServer(binary, self.primary) for _ in range(3)]

    @property
    def url(self) -> str:
        addresses = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{addresses}/primary/0"

    def start(self) -> None:
        for server in (self.primary, *self.replicas):
            server.start()
        for replica in self.replicas:
            until(lambda r=replica: "master_link_status:up" in _info(r))  # type: ignore[misc]
        for sentinel in self.sentinels:
            sentinel.start()
        for sentinel in self.sentinels:
            until(lambda s=sentinel: _knows_all(s, len(self.replicas)))  # type: ignore[misc]

    def current(self) -> RedisServer:
        """The primary according to a sentinel."""
        answer = self.sentinels[0].execute("SENTINEL get-master-addr-by-name primary")
        port = int(answer.split("\r\n")[-1])
        return next(server for server in (self.primary, *self.replicas) if server.port == port)

    def is_whole(self) -> bool:
        """Whether every replica follows the primary, so that any of them can be promoted."""
        return _info(self.current()).count("state=online") == len(self.replicas)

    def close(self) -> None:
        for server in (*self.sentinels, *self.replicas, self.primary):
            server.close()


class Cluster:
    """Three nodes with a third of the slots each."""

    def __init__(self, binary: str) -> None:
        self.nodes = [ClusterServer(binary) for _ in range(3)]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        first = self.nodes[0]
        for number, node in enumerate(self.nodes):
            start, end = 16384 * number // 3, 16384 * (number + 1) // 3 - 1
            assert node.execute(f"CLUSTER ADDSLOTSRANGE {start} {end}") == "+OK"
            if node is not first:
                assert first.execute(f"CLUSTER MEET 127.0.0.1 {node.port} {node.bus}") == "+OK"
        for node in self.nodes:
            until(lambda n=node: _is_complete(n))  # type: ignore[misc]

    def flush(self) -> None:
        for node in self.nodes:
            node.execute("FLUSHALL")

    def close(self) -> None:
        for node in self.nodes:
            node.close()


def _info(server: RedisServer) -> str:
    return server.execute("INFO replication")


def _knows_all(sentinel: RedisServer, replicas: int) -> bool:
    answer = sentinel.execute("INFO sentinel")
    return f"slaves={replicas},sentinels=3" in answer


def _is_complete(node: RedisServer) -> bool:
    answer = node.execute("CLUSTER INFO")
    return "cluster_state:ok" in answer and "cluster_known_nodes:3" in answer
