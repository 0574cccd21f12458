"""A store controlled by an attacker: no node serves a row that its publisher did not sign."""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from sankofa.engines.ledger_store import SqliteLedgers
from sankofa.engines.object_store import ObjectError, open_source
from sankofa.engines.publication import signers_of
from sankofa.ledger.store import SCHEMA
from sankofa.model.errors import EditionError, OperatorError
from sankofa.model.signed_notes import Verifier
from sankofa.replication.follow import Follower, FollowingStore
from tests.depth import deep_after
from tests.faults.conftest import World, publish_another
from tests.nodes.commands import follow
from tests.nodes.conftest import push
from tests.once import made_once
from tests.tampering import read_note, sign_again, signed_note
from tests.torture import Trial, rounds

MODES = ("pushed", "folder")


class Stores(NamedTuple):
    """The stores and keys of the attacker."""

    folder: Path

    def honest(self, mode: str) -> Path:
        return self.folder / "honest" / mode

    def older(self, mode: str) -> Path:
        """The honest store, one edition earlier."""
        return self.folder / "older" / mode

    def forged(self, mode: str) -> Path:
        """An edition with another figure, signed with another key."""
        return self.folder / "forged" / mode

    @property
    def forger(self) -> Path:
        return self.folder / "forger"

    def node(self, mode: str) -> Path:
        """A node that follows the store and has the older edition."""
        return self.folder / "nodes" / mode


@pytest.fixture(scope="session")
def stores(world: World, pushed_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    def make(folder: Path) -> None:
        own = Stores(folder)
        first, second = world.editions
        shutil.copytree(pushed_world / "both", own.honest("pushed"))
        shutil.copytree(pushed_world / "first", own.older("pushed"))
        shutil.copytree(world.home / "editions", own.honest("folder"))
        shutil.copytree(world.home / "editions", own.older("folder"))
        note = read_note(own.older("folder"))
        older = {"current": first, "editions": {first: note.editions[first]}, "sequence": note.sequence - 1}
        sign_again(own.older("folder"), world.home, **older)
        forger = Path(shutil.copytree(world.home, own.forger))
        (forger / "edition-key").unlink()
        (forger / "editions" / "editions.note").unlink()
        forged = publish_another(forger, 7)
        _rename_edition(forger, forged, second)
        push(forger, own.forged("pushed"))
        shutil.copytree(forger / "editions", own.forged("folder"))
        for mode in MODES:
            follow(own.node(mode), f"file://{own.older(mode)}")

    return Stores(made_once(tmp_path_factory, "hostile", make))


def _rename_edition(home: Path, forged: str, honest: str) -> None:
    """Give the forged edition the name of the honest one, and sign it with the forger's key."""
    editions = home / "editions"
    shutil.rmtree(editions / honest)
    (editions / forged).rename(editions / honest)
    manifest = editions / honest / "manifest.json"
    content = json.dumps(json.loads(manifest.read_text()) | {"edition": honest}).encode()
    manifest.chmod(0o600)
    manifest.write_bytes(content)
    seal = sha256(content).hexdigest()
    note = read_note(editions)
    others = {name: digest for name, digest in note.editions.items() if name != forged}
    sign_again(editions, home, current=honest, editions={**others, honest: seal})


class Attack:
    """Changes a store like an attacker who can write to it but has no trusted key."""

    def __init__(self, store: Path, stores: Stores, mode: str, chance: Random) -> None:
        self._store = store
        self._chance = chance
        self._others = [stores.older(mode), stores.forged(mode), stores.honest(mode)]
        self._forger = stores.forger
        self._ways: list[Callable[[], None]] = [
            *(self._flip, self._cut, self._lengthen, self._remove, self._swap, self._replay, self._mix),
            *(self._other_note, self._altered_note, self._forged_note, self._foreign_signature),
        ]

    def strike(self) -> str:
        chosen = self._chance.sample(self._ways, self._chance.choice((1, 1, 1, 2, 3)))
        for way in chosen:
            with suppress(FileNotFoundError):
                way()
        return " and ".join(way.__name__.strip("_") for way in chosen)

    def _any(self, folder: Path) -> Path:
        """One file at random, the note as often as any other."""
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return folder / "editions.note" if self._chance.random() < 0.2 else self._chance.choice(files)

    def _write(self, path: Path, content: bytes) -> None:
        """Write a new file: the old one is hard-linked elsewhere."""
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def _flip(self) -> None:
        path = self._any(self._store)
        content = bytearray(path.read_bytes())
        if content:
            content[self._chance.randrange(len(content))] ^= 1 << self._chance.randrange(8)
        self._write(path, bytes(content))

    def _cut(self) -> None:
        content = (path := self._any(self._store)).read_bytes()
        self._write(path, content[: self._chance.randrange(len(content) + 1)])

    def _lengthen(self) -> None:
        path = self._any(self._store)
        self._write(path, path.read_bytes() + self._chance.randbytes(self._chance.randrange(1, 100)))

    def _remove(self) -> None:
        self._any(self._store).unlink()

    def _swap(self) -> None:
        one, other = self._any(self._store), self._any(self._store)
        first, second = one.read_bytes(), other.read_bytes()
        self._write(one, second)
        self._write(other, first)

    def _replay(self) -> None:
        """Replace files by those of another store with the same names."""
        other = self._chance.choice(self._others)
        for path in sorted(other.rglob("*")):
            if path.is_file() and self._chance.random() < 0.5:
                self._write(self._store / path.relative_to(other), path.read_bytes())

    def _mix(self) -> None:
        """Replace any file by any file of another store."""
        self._write(self._any(self._store), self._any(self._chance.choice(self._others)).read_bytes())

    def _other_note(self) -> None:
        note = (self._chance.choice(self._others[:2]) / "editions.note").read_bytes()
        self._write(self._store / "editions.note", note)

    def _altered_note(self) -> None:
        """The forged text under the existing signature."""
        honest = (self._store / "editions.note").read_bytes()
        signatures = honest.rpartition(b"\n\n")[2]
        text = self._forged_text().rpartition(b"\n\n")[0]
        self._write(self._store / "editions.note", text + b"\n\n" + signatures)

    def _forged_note(self) -> None:
        self._write(self._store / "editions.note", self._forged_text())

    def _foreign_signature(self) -> None:
        """The honest text with the forger's signature, alone or beside the honest one."""
        note = (self._store / "editions.note").read_bytes()
        text, _, signatures = note.rpartition(b"\n\n")
        ours = self._forged_text().rpartition(b"\n\n")[2]
        beside = signatures if self._chance.random() < 0.5 else b""
        self._write(self._store / "editions.note", text + b"\n\n" + ours + beside)

    def _forged_text(self) -> bytes:
        """A note by the forger that resembles the honest one."""
        honest, forged = read_note(self._others[2]), read_note(self._others[1])
        members = {name: getattr(honest, name) for name in honest.__struct_fields__}
        for name in members:
            if self._chance.random() < 0.5:
                members[name] = getattr(forged, name)
        members["sequence"] = self._chance.choice((0, honest.sequence + 1, 1 << 60))
        members["written_at"] = self._chance.choice((honest.written_at, "9999-12-31T23:59:59+00:00", "soon"))
        return signed_note(type(honest)(**members), self._forger)


def follower(node: Path, store: Path, trusted: tuple[Verifier, ...]) -> tuple[Follower, FollowingStore]:
    own = FollowingStore(node, SqliteLedgers(node, SCHEMA), 1 << 20, trusted)
    source = open_source(f"file://{store}")
    return Follower(source, own, 5), own


def served(node: Path, trusted: tuple[Verifier, ...]) -> tuple[str | None, dict[str, str]]:
    """The editions of a server of this node: the current edition, and the manifest of each edition that it
    would open, after every byte was compared.
    """
    store = FollowingStore(node, SqliteLedgers(node, SCHEMA), 1 << 20, trusted)
    listed = store.list_editions()
    usable = {}
    for edition in listed.editions:
        with suppress(EditionError):
            store.open(edition, check_all=True).close()
            usable[edition] = sha256((node / "editions" / edition / "manifest.json").read_bytes()).hexdigest()
    return listed.current, usable


@pytest.mark.rule("SIGN-2", "SIGN-3")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pinned", deep_after(1, [True, False]), ids=["pinned", "first-use"])
@pytest.mark.parametrize("batch", deep_after(1, range(5)))
def test_no_store_can_make_a_node_serve_unsigned_rows(
    mode: str, pinned: bool, batch: int, stores: Stores, world: World, trial: Trial, tmp_path: Path
) -> None:
    """One node starts empty and knows the key; the other has the older edition and only what that tells.
    After the attack is undone, the node reaches the newest edition.
    """
    honest = read_note(world.home / "editions").editions
    key = tuple(signer.verifier for signer in signers_of(world.home))
    trusted = key if pinned else ()
    for number in range(rounds(6, 15, 50, here=2)):  # a thousand in all in `make torture`
        store, node = tmp_path / f"store-{number}", tmp_path / f"node-{number}"
        shutil.copytree(stores.honest(mode), store, copy_function=os.link)
        begins = trial.chance.random() < 0.5 if pinned else False
        if not begins:
            shutil.copytree(stores.node(mode), node, copy_function=os.link)
        before = None if begins else world.editions[0]
        what = Attack(store, stores, mode, trial.chance).strike()
        looking, _ = follower(node, store, trusted)
        for _ in range(2):
            with suppress(ObjectError, OperatorError):
                looking.look()
        current, usable = served(node, trusted)
        assert current in (before, world.editions[1], *([world.editions[0]] if begins else [])), what
        assert usable.items() <= honest.items(), what
        assert before is None or current in usable, f"{what}: the node serves nothing"
        shutil.rmtree(store)
        shutil.copytree(stores.honest(mode), store, copy_function=os.link)
        looking.look()
        assert looking.state.complaint(datetime.now(UTC)) is None
        after, usable = served(node, trusted)
        assert after == world.editions[1], what
        assert usable == honest, what
        trial.saw((looking.state.refused and "refused") or "harmless")
        shutil.rmtree(store)
        shutil.rmtree(node)
