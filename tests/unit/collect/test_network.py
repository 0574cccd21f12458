"""Allowed addresses of publishers, and time limits of a document."""

import socket
import threading
from typing import Any

import httpcore
import httpx
import pytest

from sankofa.collect.network import (
    DeadlinePassed,
    Patience,
    ReplyRefused,
    Stopped,
    open_client,
    refuse_unsafe,
)
from sankofa.sources.registry import Collect
from tests.every import every

NEVER = (
    *("169.254.169.254", "169.254.0.1", "fe80::1", "fe80::a9fe:a9fe%eth0", "febf::1", "0.0.0.0", "::"),  # noqa: S104
    *("::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1"),
    *("2001:0:a9fe:a9fe::1", "64:ff9b:1::a9fe:a9fe", "100.100.100.200", "192.0.0.192", "168.63.129.16"),
    *("fd00:ec2::254", "fd20:ce::254", "224.0.0.1", "ff02::1"),
)
PRIVATE = "127.0.0.1 ::1 10.0.0.1 172.16.0.1 192.168.1.1 fd12::1 fec0::1 100.64.0.1 ::ffff:10.0.0.1".split()
PUBLIC = ("93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c")


@pytest.mark.rule("COL-3")
@every("address", NEVER)
def test_link_local_and_metadata_addresses_are_never_fetched_from(address: str) -> None:
    for allow_private in (False, True):
        with pytest.raises(ReplyRefused, match=f"publisher leads to {address}"):
            refuse_unsafe("publisher", address, allow_private=allow_private)


@pytest.mark.rule("COL-3")
@every("address", PRIVATE)
def test_private_addresses_are_fetched_from_only_if_allowed(address: str) -> None:
    refuse_unsafe("publisher", address, allow_private=True)
    with pytest.raises(ReplyRefused, match="not an address of the public internet"):
        refuse_unsafe("publisher", address, allow_private=False)


@every("address", PUBLIC)
def test_public_addresses_are_always_fetched_from(address: str) -> None:
    for allow_private in (False, True):
        refuse_unsafe("publisher", address, allow_private=allow_private)


class _Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def _patience(clock: _Clock, stop: threading.Event | None = None, **limits: Any) -> Patience:
    collect = Collect(["https://publisher.test/a"], **limits)
    patience = Patience(collect, (stop or threading.Event()).is_set, clock)
    patience.begin_document()
    patience.begin_request()
    return patience


@pytest.mark.rule("COL-4")
@pytest.mark.limit("least rate of a transfer (min_rate)")
def test_a_transfer_below_the_least_rate_is_cut_after_a_minute() -> None:
    clock = _Clock()
    patience = _patience(clock, min_rate=10)
    for _ in range(60):
        patience.look(9)
        clock.now += 1
    with pytest.raises(httpcore.ReadTimeout, match="fewer than min_rate"):
        patience.look(9)


@pytest.mark.rule("COL-4")
def test_a_transfer_at_the_least_rate_continues_after_a_slow_start() -> None:
    clock = _Clock()
    patience = _patience(clock, min_rate=10)
    for _ in range(59):
        patience.look()
        clock.now += 1
    for _ in range(600):
        patience.look(10)
        clock.now += 1


@pytest.mark.rule("COL-4")
def test_a_transfer_that_slows_down_is_cut() -> None:
    clock = _Clock()
    patience = _patience(clock, min_rate=10)
    patience.look(1 << 30)
    clock.now += 60
    patience.look(1)
    clock.now += 60
    with pytest.raises(httpcore.ReadTimeout):
        patience.look(1)


@pytest.mark.rule("COL-4")
def test_a_document_must_finish_by_its_deadline_at_any_rate() -> None:
    clock = _Clock()
    patience = _patience(clock, deadline="1m")
    clock.now += 60
    patience.look(1 << 20)
    clock.now += 0.1
    with pytest.raises(DeadlinePassed, match="1m"):
        patience.look(1 << 20)


def test_a_stop_takes_effect_at_the_next_check() -> None:
    stop = threading.Event()
    patience = _patience(_Clock(), stop)
    patience.look()
    stop.set()
    with pytest.raises(Stopped):
        patience.look()


@pytest.mark.rule("COL-3")
def test_a_name_is_resolved_once_and_the_checked_address_is_the_one_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that resolves to another address the second time: the connection uses the checked one."""
    answers = ["127.0.0.1", "169.254.169.254", "127.0.0.1"]
    connected: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **keywords: Any) -> Any:
        return real(answers.pop(0) if host == "publisher.test" else host, *arguments, **keywords)

    def connect(address: tuple[str, int], *arguments: Any, **keywords: Any) -> socket.socket:
        connected.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    collect = Collect(["http://publisher.test/a"], allow_private=True)
    patience = Patience(collect, lambda: False)
    patience.begin_document()
    with open_client(collect, patience) as client:
        for expected in (httpx.ConnectError, ReplyRefused, httpx.ConnectError):
            with pytest.raises(expected):
                client.get("http://publisher.test/a")
    assert connected == ["127.0.0.1", "127.0.0.1"]
    assert answers == []
