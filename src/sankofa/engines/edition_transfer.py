"""The folder of an edition taken apart and put together: the one place that knows which files it has.

Used by those who carry editions from machine to machine and look into none of them.
"""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sankofa.engines.datastore import Manifest
from sankofa.engines.edition_folder import building_folder, remove_edition
from sankofa.engines.edition_reader import CHECKSUMS, FILES, MANIFEST, PARTS, read_manifest, seal_path
from sankofa.engines.private_files import operator_errors, replace_file, sync
from sankofa.model.errors import EditionError


class EditionFile(NamedTuple):
    path: str
    """In the folder of the edition, with slashes."""
    file: Path
    sha256: str
    size: int


class ListedFile(NamedTuple):
    """As a manifest has it."""

    path: str
    size: int
    sha256: str


class EditionContents(NamedTuple):
    edition: str
    manifest: Manifest
    seal: str
    files: tuple[EditionFile, ...]


def edition_contents(folder: Path) -> EditionContents:
    """Raises EditionError where its manifest is not the one that was sealed."""
    try:
        manifest = read_manifest(folder)
        seal = seal_path(folder).read_text("ascii").strip()
        digests = {MANIFEST: seal, CHECKSUMS: manifest["checksums_sha256"]}
        own = [ListedFile(name, (folder / name).stat().st_size, sha256) for name, sha256 in digests.items()]
    except (OSError, ValueError) as failure:
        raise EditionError(f"edition {folder.name}: {failure}") from failure
    listed = [*own, *listed_files(manifest)]
    files = (EditionFile(file.path, folder / file.path, file.sha256, file.size) for file in listed)
    return EditionContents(folder.name, manifest, seal, tuple(files))


def listed_files(manifest: Manifest) -> list[ListedFile]:
    """The files that a manifest lists, in the order of their page digests in the file `checksums`."""
    parts = manifest["parts"]
    named = [ListedFile(f"{PARTS}/{part['sha256']}", part["size_bytes"], part["sha256"]) for part in parts]
    files = manifest.get("files", ())
    return [*named, *(ListedFile(f"{FILES}/{f['name']}", f["size_bytes"], f["sha256"]) for f in files)]


def link_edition(folder: Path, seal: str, files: Iterable[tuple[str, Path]]) -> None:
    """Put an edition together of links to files, (path in its folder, file): complete, or not there at all.

    It replaces one of the same name. Raises OperatorError.
    """
    editions = folder.parent
    with operator_errors(folder):
        building, lock = building_folder(editions)
        try:
            for path, file in files:
                target = building / path
                target.parent.mkdir(0o700, exist_ok=True)
                os.link(file, target)
            for changed in {target.parent for target in building.rglob("*")}:
                sync(changed)
            if folder.exists():
                remove_edition(folder)
            replace_file(seal_path(folder), f"{seal}\n".encode())
            building.rename(folder)
            sync(editions)
        finally:
            shutil.rmtree(building, ignore_errors=True)
            if lock is not None:
                os.close(lock)
