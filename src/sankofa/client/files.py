"""A Parquet file on its way: asked for, written beside its name, verified, given its name."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sankofa.client.errors import InvalidAnswer
from sankofa.client.exchange import Reply, Request


def file_request(folder: str, file: str, into: Path | str, edition: str | None) -> Request:
    """The request of a file, into a path or under its own name into a folder."""
    if Path(file).name != file:
        raise ValueError("file: expected a name as the manifest lists it")
    target = Path(into)
    query = {} if edition is None else {"edition": edition}
    return Request(f"{folder}{file}", query, "*/*", target / file if target.is_dir() else target)


def part_path(target: Path) -> Path:
    """The path of a file while it is fetched; only a complete one gets its name."""
    return target.with_name(f"{target.name}.part")


@contextmanager
def remove_part_file(request: Request) -> Iterator[None]:
    """Removes the partial file, whatever happened."""
    try:
        yield
    finally:
        part_path(request.into or Path("-")).unlink(missing_ok=True)


def verified_file(request: Request, reply: Reply) -> Path:
    """The fetched file under its final name. Raises InvalidAnswer where its digest is not the ETag."""
    target = request.into or Path()
    part = part_path(target)
    with part.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    promised = reply.headers.get("etag", "").strip('"')
    if digest != promised:
        raise InvalidAnswer(f"{target.name}: SHA-256 is {digest}, not {promised}")
    part.replace(target)
    return target
