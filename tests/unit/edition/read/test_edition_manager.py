"""Older editions by their id: whatever clients ask, the store is asked little."""

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from sankofa.edition.format.keys import LAYOUT
from sankofa.edition.read import edition_manager
from sankofa.edition.read.edition_manager import EditionManager
from sankofa.engines.datastore import EditionList, EditionWriter, LedgerStore, LockName, Manifest
from sankofa.engines.edition_log import EditionLog
from sankofa.model.errors import EditionError, Gone, NotFound, StoreUnavailable
from sankofa.model.signed_notes import Signer
from tests.memory import MemoryReader
from tests.patience import until


class Store:
    """Counts what it is asked."""

    def __init__(self, editions: Sequence[str]) -> None:
        self.editions = list(editions)
        self.opened: list[tuple[str, bool]] = []
        self.shelved = self.lists_read = 0
        self.ever = frozenset(editions)
        self.broken: set[str] = set()
        self.let_go = threading.Event()
        self.let_go.set()
        self.at_once = self.most_at_once = 0

    def open(self, edition: str, *, check_all: bool = False) -> MemoryReader:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        self.let_go.wait(10)
        self.at_once -= 1
        self.opened.append((edition, check_all))
        if edition in self.broken:
            raise EditionError(f"edition {edition}: corrupt")
        return MemoryReader({"format": LAYOUT})

    def manifest(self, edition: str) -> Manifest:
        raise AssertionError("serving opens what it reads")

    def written_state(self, edition: str) -> str:
        raise AssertionError("serving publishes nothing")

    def list_editions(self) -> EditionList:
        self.shelved += 1
        current = self.editions[-1] if self.editions else None
        return EditionList(tuple(sorted(self.editions, reverse=True)), current)

    def edition_folder(self, edition: str) -> Path:
        raise AssertionError("serving carries nothing away")

    @property
    def ledgers(self) -> LedgerStore:
        raise AssertionError("serving reads no ledger")

    def build(self) -> EditionWriter:
        raise AssertionError("serving builds nothing")

    def exclusive(
        self, turn: LockName, waiting: Callable[[], None] = lambda: None
    ) -> AbstractContextManager[None]:
        raise AssertionError("serving changes nothing")

    def set_current_and_prune(self, editions: Sequence[str], current: str) -> None: ...

    def published(self) -> frozenset[str]:
        self.lists_read += 1
        return self.ever | set(self.editions)

    def list_as_published(self, editions: Collection[str]) -> None: ...

    def withdraw(self, editions: Collection[str]) -> None: ...

    def withdrawn(self) -> frozenset[str]:
        return frozenset()

    def publication(self) -> None: ...

    log = EditionLog(Path("/nowhere"))

    def share_log(self) -> None: ...

    def is_shared(self) -> bool:
        raise AssertionError("serving publishes nothing")

    def signers(self) -> tuple[Signer, ...]:
        raise AssertionError("serving signs nothing")

    async def ping(self) -> None: ...

    def close(self) -> None: ...


def serving(store: Store, scene: Callable[[EditionManager], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        service = EditionManager(store)
        await service.look()
        store.opened.clear()
        await scene(service)

    asyncio.run(play())


def test_names_that_are_not_on_the_shelf_never_reach_the_store() -> None:
    store = Store(["a", "b"])

    async def scene(service: EditionManager) -> None:
        for n in range(1000):
            with pytest.raises(NotFound):
                await service.by_id(f"x{n}")
        assert store.opened == []
        assert store.lists_read <= 10
        assert store.shelved <= 10, "the shelf is looked at four times a second at most"
        assert await service.for_cursor("x") is service.get()

    serving(store, scene)


def test_one_that_many_ask_for_is_opened_once_and_one_at_a_time() -> None:
    store = Store(["a", "b", "c"])

    async def scene(service: EditionManager) -> None:
        found = await asyncio.gather(*(service.by_id(name) for name in ["a", "b"] * 50))
        assert len({id(edition) for edition in found}) == 2
        assert sorted(store.opened) == [("a", False), ("b", False)]
        assert store.most_at_once == 1

    serving(store, scene)


def test_few_are_open_and_none_is_compared_as_a_whole() -> None:
    names = [f"e{n:03d}" for n in range(edition_manager._OPEN_AT_MOST + 10)]
    store = Store(names)

    async def scene(service: EditionManager) -> None:
        for _ in range(2):
            for name in names:
                assert (await service.by_id(name)).id == name
        assert len(service._older._open) == edition_manager._OPEN_AT_MOST
        assert not any(check_all for _, check_all in store.opened)

    serving(store, scene)


def test_one_that_is_damaged_is_not_read_again_at_once() -> None:
    store = Store(["a", "b"])
    store.broken = {"a"}

    async def scene(service: EditionManager) -> None:
        for _ in range(20):
            with pytest.raises(Gone):
                await service.by_id("a")
        assert store.opened == [("a", False)]

    serving(store, scene)


def test_one_that_takes_long_to_verify_is_a_503_until_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edition_manager, "_WAIT_FOR_OPENING", 0.05)
    store = Store(["a", "b"])

    async def scene(service: EditionManager) -> None:
        store.let_go.clear()
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await service.by_id("a")
        store.let_go.set()
        await asyncio.gather(*service._older._opening.values())
        assert (await service.by_id("a")).id == "a"
        assert store.opened == [("a", False)]

    serving(store, scene)


def test_until_the_first_edition_is_open_it_is_said_to_be_opened_not_to_be_missing() -> None:
    store = Store(["a"])
    store.let_go.clear()

    async def scene() -> None:
        service = EditionManager(store)
        with pytest.raises(StoreUnavailable, match="being opened and verified"):
            service.get()
        look = asyncio.create_task(service.look())
        await asyncio.to_thread(until, lambda: store.at_once == 1)
        with pytest.raises(StoreUnavailable, match="being opened and verified"):
            service.get()
        store.let_go.set()
        await look
        assert service.get().id == "a"

    asyncio.run(scene())


def test_where_none_is_published_that_is_said() -> None:
    async def scene() -> None:
        service = EditionManager(Store([]))
        await service.look()
        with pytest.raises(StoreUnavailable) as refused:
            service.get()
        assert refused.value.cause == "no edition is published"

    asyncio.run(scene())


def test_one_that_leaves_the_shelf_is_gone_and_the_one_served_before_stays_open() -> None:
    store = Store(["a", "b"])

    async def scene(service: EditionManager) -> None:
        before = service.get()
        await service.by_id("a")
        store.editions = ["b", "c"]
        await service.look()
        assert service.get().id == "c"
        assert await service.by_id("b") is before
        with pytest.raises(Gone):
            await service.by_id("a")

    serving(store, scene)
