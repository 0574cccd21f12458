"""Checks the proof of an answer (`proof=true`) or of a file offline, with the publisher's verifier key alone.

The proof leads from each row, or from the file, to its edition's entry in the log, and from there to a
checkpoint signed by the key.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable
from datetime import datetime
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Final

PROOF: Final = ".proof"
"""The suffix of a Parquet file's name or address that gives its proof."""
_ED25519: Final = b"\x01"
_DASH: Final = "\N{EM DASH} "
_SIGNATURE: Final = re.compile(_DASH + r"[^\s+]+ [A-Za-z0-9+/=]+")
_LATER: Final = ("superseded_at", "superseding_record_ref")


class _Number(str):
    """A number with its original spelling."""

    __slots__ = ()


def verify(path_or_text: Path | str | bytes, key: str, *, since: Path | str | bytes | None = None) -> str:
    """Check an answer with its proof: a file, or the JSON itself. Returns the id of its edition.

    The proof of a Parquet file is beside it, under the same name with `.proof` appended.
    `key` is what `sankofa editions key` prints for the publisher; several are separated by commas. `since` is
    an older checkpoint, or an answer with one: the log may only have grown since then, which an answer of
    /v1/proof with `since_size` proves. Raises ValueError with a sentence that explains the failure.
    """
    keys = [one.strip() for one in key.split(",") if one.strip()]
    try:
        if str(path_or_text)[-8:] == ".parquet":
            return _verified_file(Path(str(path_or_text)), key, since)
        answer = _json(_text(path_or_text))
        if "proof" not in answer:
            raise ValueError("The answer has no proof. Ask with proof=true.")
        if since is not None:
            _check_growth(answer["proof"], _text(since), keys)
        return _verified(answer, keys)
    except (KeyError, TypeError, AttributeError, IndexError) as failure:
        raise ValueError(
            f"The proof of the answer is incomplete: {failure!r}. Ask with proof=true."
        ) from None
    except RecursionError:
        raise ValueError("The answer is nested too deeply to be checked.") from None


def verify_digest(
    digest: str, proof: str | bytes, key: str, *, since: Path | str | bytes | None = None
) -> str:
    """Check a Parquet file by its SHA-256 (hex) and its proof. Returns the id of its edition.

    Raises ValueError with a sentence that says what is wrong.
    """
    keys = [one.strip() for one in key.split(",") if one.strip()]
    try:
        proven = _json(proof)
        if since is not None:
            _check_growth(proven, _text(since), keys)
        logged = _logged(proven, keys)
        if sha256(proven["manifest"].encode()).hexdigest() != logged["manifest_sha256"]:
            raise ValueError(f"The manifest is not that of edition {logged['edition']}.")
        listed = {one["name"]: one["sha256"] for one in json.loads(proven["manifest"])["files"]}
        if not digest == proven["sha256"] == listed.get(proven["file"]):
            raise ValueError(f"The file is not {proven['file']} of edition {logged['edition']}.")
    except (KeyError, TypeError, AttributeError, IndexError) as failure:
        raise ValueError(f"The proof of the file is incomplete: {failure!r}.") from None
    return str(logged["edition"])


def stamped_at(path_or_text: Path | str | bytes, stamp: bytes, roots: bytes) -> datetime:
    """When an authority stamped the checkpoint of an answer, or one by itself (RFC 3161).

    `stamp` is what /log/checkpoint.tsr answers with, `roots` the trusted certificates (PEM). Needs
    rfc3161-client. Raises ValueError with a sentence that says what is wrong.
    """
    from cryptography.x509 import load_pem_x509_certificates

    try:
        from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response
    except ImportError:
        raise ValueError("Checking a stamp needs the package rfc3161-client.") from None
    try:
        text = _note(_text(path_or_text)).partition("\n\n")[0] + "\n"
        answer = decode_timestamp_response(stamp)
        verifier = VerifierBuilder(roots=load_pem_x509_certificates(roots)).build()
        verifier.verify_message(answer, text.encode())
    except (KeyError, TypeError, VerificationError, ValueError) as failure:
        raise ValueError(f"No trusted authority stamped this checkpoint so: {failure}.") from None
    return answer.tst_info.gen_time


def _note(content: str | bytes) -> str:
    """The checkpoint in an answer or proof, or a bare checkpoint."""
    text = content if isinstance(content, str) else content.decode(errors="replace")
    if text[:1] != "{":
        return text
    document = json.loads(text)
    return str(document.get("proof", document)["checkpoint"])


def _verified_file(path: Path, key: str, since: Path | str | bytes | None) -> str:
    beside = path.with_name(path.name + PROOF)
    if not beside.exists():
        raise ValueError(f"{beside.name} is missing: download it from the address of the file + {PROOF}.")
    with path.open("rb") as stream:
        return verify_digest(file_digest(stream, "sha256").hexdigest(), beside.read_bytes(), key, since=since)


def _json(content: str | bytes) -> Any:
    try:
        return json.loads(content, parse_float=_Number, parse_int=_Number, object_pairs_hook=_members)
    except (ValueError, RecursionError) as failure:
        raise ValueError(f"It is not JSON: {failure}. Ask with proof=true, or name a Parquet file.") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object. Repeated members are refused, because only one value would be checked."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has one member twice")
    return members


def _bytes(text: str) -> bytes:
    """Decoded canonical base64: only one text is accepted for the same bytes."""
    try:
        content = b64decode(text, validate=True)
    except ValueError as failure:
        raise ValueError(f"The proof has malformed base64: {failure}.") from None
    if b64encode(content).decode() != text:
        raise ValueError("The proof has base64 that is not canonical.")
    return content


def _text(path_or_text: Path | str | bytes) -> str | bytes:
    if isinstance(path_or_text, bytes):
        return path_or_text
    if isinstance(path_or_text, str) and (path_or_text.lstrip().startswith("{") or "\n" in path_or_text):
        return path_or_text
    return Path(path_or_text).read_bytes()


def _verified(answer: dict[str, Any], keys: list[str]) -> str:
    proof, rows = answer["proof"], answer["data"]
    logged = _logged(proof, keys)
    if not logged["edition"] == proof["edition"] == answer["edition"]:
        raise ValueError(f"The proof is about edition {logged['edition']}, the answer about another.")
    own = logged["rows"][proof["dataset"]]
    if not len(proof["rows"]) == len(rows) == int(answer.get("count", len(rows))):
        raise ValueError("The proof covers another number of rows than the answer has.")
    if len({int(step["index"]) for step in proof["rows"]}) != len(rows):
        raise ValueError("The answer has a row twice.")
    for number, (row, step) in enumerate(zip(rows, proof["rows"], strict=True)):
        fields = {name: value for name, value in row.items() if name not in _LATER}
        salt = _bytes(step["salt"])
        leaf = sha256(b"\x00" + salt + _canonical(fields).encode()).digest()
        if _root(leaf, int(step["index"]), own["count"], step["path"]) != _bytes(own["root"]):
            raise ValueError(f"Row {number} was not in edition {logged['edition']} had.")
    return str(logged["edition"])


def _logged(proof: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    """The entry of an edition in the log signed by one of the keys."""
    size, root = _checkpoint(proof["checkpoint"], keys)
    entry = _bytes(proof["entry"])
    leaf = sha256(b"\x00" + entry).digest()
    if _root(leaf, int(proof["entry_index"]), size, proof["entry_path"]) != root:
        raise ValueError("The signed log does not have the entry of the edition.")
    logged: dict[str, Any] = json.loads(entry)
    return logged


def _check_growth(proof: dict[str, Any], older: str | bytes, keys: list[str]) -> None:
    """Checks that the log begins with the log of an older checkpoint (RFC 9162, section 2.1.4.2)."""
    first, old_root = _checkpoint(_note(older), keys)
    second, new_root = _checkpoint(proof["checkpoint"], keys)
    hashes = [_bytes(text) for text in proof.get("consistency_path", ())]
    if first > second:
        raise ValueError(f"The log had {first} entries before, and has {second} now.")
    if first == second or first == 0:
        if first and old_root != new_root:
            raise ValueError("The log does not continue the older one: its past was rewritten.")
        return
    if not hashes:
        raise ValueError(f"Nothing proves that the log only grew: ask /v1/proof with since_size={first}.")
    if first & (first - 1) == 0:
        hashes.insert(0, old_root)
    index, last = first - 1, second - 1
    while index & 1:
        index, last = index >> 1, last >> 1
    last, old, new = _climb(index, last, hashes[0], hashes[1:])
    if last < 0:
        raise ValueError("The proof of growth has more hashes than its trees have levels.")
    if last or old != old_root or new != new_root:
        raise ValueError("The log does not continue the older one: its past was rewritten.")


def _canonical(value: Any) -> str:
    """JSON in the form of RFC 8785, with numbers in their original spelling."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{_canonical(name)}:{_canonical(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)


def _root(leaf: bytes, index: int, size: int, path: list[str]) -> bytes:
    """The root that a path leads to."""
    if not 0 <= index < size:
        raise ValueError("The proof names a position outside its tree.")
    last, _, root = _climb(index, size - 1, leaf, map(_bytes, path))
    if last < 0:
        raise ValueError("The proof has more hashes than its tree has levels.")
    if last:
        raise ValueError("The proof has fewer hashes than its tree has levels.")
    return root


def _climb(index: int, last: int, start: bytes, hashes: Iterable[bytes]) -> tuple[int, bytes, bytes]:
    """The roots that hashes lead to, of the trees that end at `index` and at `last`, from the node that they
    share (RFC 9162, sections 2.1.3.2 and 2.1.4.2); before them the levels left above, -1 if too few.
    """
    old = new = start
    for beside in hashes:
        if last == 0:
            return -1, old, new
        if index & 1 or index == last:
            old, new = sha256(b"\x01" + beside + old).digest(), sha256(b"\x01" + beside + new).digest()
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            new = sha256(b"\x01" + new + beside).digest()
        index, last = index >> 1, last >> 1
    return last, old, new


def _checkpoint(note: str, keys: list[str]) -> tuple[int, bytes]:
    """Size and root of the log, from a checkpoint signed by one of the keys."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    text, _, signatures = note.rpartition("\n\n")
    lines = signatures.split("\n")
    if not all(_SIGNATURE.fullmatch(line) for line in lines[:-1]) or lines[-1]:
        raise ValueError("The checkpoint is not a signed note.")
    origin, size, root, *_ = (*text.split("\n"), "", "")
    for key in keys:
        name, own_hash, encoded = (*key.split("+", 2), "", "")[:3]
        try:
            public = _bytes(encoded)
        except ValueError:
            public = b""
        if public[:1] != _ED25519 or sha256(f"{name}\n".encode() + public).digest()[:4].hex() != own_hash:
            raise ValueError("The key is not a verifier key: expected NAME+HASH+BASE64.")
        for line in lines[:-1]:
            signature = _bytes(line.rpartition(" ")[2])
            if line.startswith(f"{_DASH}{name} ") and signature[:4].hex() == own_hash and origin == name:
                try:
                    signed = Ed25519PublicKey.from_public_bytes(public[1:])
                    signed.verify(signature[4:], f"{text}\n".encode())
                except InvalidSignature:
                    raise ValueError(f"The signature of {name} does not match this checkpoint.") from None
                return int(size), _bytes(root)
    raise ValueError("No trusted key signed the checkpoint.")
