"""Changes files of an edition, its signed note and the seals of a ledger behind the code's back."""

import json
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from sankofa.engines.publication import NOTE, Publication, signers_of
from sankofa.ledger import seals
from sankofa.model.signed_notes import note_text, sign_note
from sankofa.replication.stores import open_store
from sankofa.settings import Settings


def part_of(edition: Path, kind: str = "fundamentals") -> Path:
    """The first part of a kind in the folder of an edition."""
    return edition / "parts" / str(next(part["sha256"] for part in _parts(edition) if kind in part["kinds"]))


def parts_of(edition: Path) -> list[Path]:
    return [edition / "parts" / part["sha256"] for part in _parts(edition)]


def _parts(edition: Path) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = json.loads((edition / "manifest.json").read_bytes())["parts"]
    return parts


def seal_again(settings: Settings) -> None:
    """Seal every row of a ledger whose seals were dropped."""
    with (
        closing(open_store(settings)) as store,
        closing(store.ledgers.open()) as session,
        session.transaction(),
    ):
        seals.append_seals(session, settings.gate_key(), seals._scan(session))


def read_note(store: Path) -> Publication:
    """The text of the note, without checking its signature."""
    heading, _, text = note_text((store / NOTE).read_bytes()).partition("\n")
    assert heading == "sankofa/editions/v1"
    return msgspec.json.decode(text, type=Publication)


def signed_note(publication: Publication, home: Path) -> bytes:
    text = msgspec.json.encode(publication).decode()
    return sign_note(f"sankofa/editions/v1\n{text}\n", signers_of(home))


def sign_again(store: Path, home: Path, **changes: Any) -> Publication:
    """Change the text of the note, give it a later time, and sign it with the keys of a HOME."""
    before = read_note(store)
    publication = msgspec.structs.replace(before, **{"sequence": before.sequence + 1, **changes})
    (store / NOTE).write_bytes(signed_note(publication, home))
    return publication


def point_at(home: Path, edition: str) -> None:
    """Sign the edition in HOME/editions as current, as it is now."""
    folder = home / "editions"
    note = read_note(folder)
    seal = sha256((folder / edition / "manifest.json").read_bytes()).hexdigest()
    listed = (folder / "PUBLISHED").read_bytes() + f"\n{edition}\n".encode()
    (folder / "PUBLISHED").write_bytes(listed)
    sign_again(
        folder,
        home,
        current=edition,
        editions={**note.editions, edition: seal},
        published_sha256=sha256(listed).hexdigest(),
        published_size=len(listed),
    )
