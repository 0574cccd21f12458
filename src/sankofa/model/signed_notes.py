"""Signed notes of C2SP with Ed25519 keys; and Merkle trees of RFC 9162 with their roots and
proofs.

A note is a text, a blank line, and a line for each signature: "— NAME BASE64". A verifier key is
`NAME+HASH+BASE64` and may be shown to anybody; a signing key has `PRIVATE+KEY+` before it. Both have the form
that the tools of Go's checksum database and of transparency logs read.
"""

import hashlib
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from sankofa.model.limits import limit

_ED25519: Final = b"\x01"
_KEY_BYTES: Final = 32
_HASH_BYTES: Final = 4
_DASH: Final = "\N{EM DASH} "
_PRIVATE: Final = "PRIVATE+KEY+"
_MOST_SIGNATURES: Final = limit("signatures of a note", 100, "signatures", "it is not trusted")


class NotTrusted(Exception):
    """A note that is not well formed, or that no trusted key signed. The message is a clause."""


class Verifier(NamedTuple):
    """A public key and its name."""

    name: str
    public: bytes

    @property
    def hash(self) -> bytes:
        """It tells apart two keys of one name."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:_HASH_BYTES]

    @property
    def text(self) -> str:
        return f"{self.name}+{self.hash.hex()}+{b64encode(_ED25519 + self.public).decode()}"

    def signed(self, text: bytes, signature: bytes) -> bool:
        # Imported here: it takes 25 ms, needed only for signatures.
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text)
        except InvalidSignature:
            return False
        return True


class Signer(NamedTuple):
    verifier: Verifier
    seed: bytes

    @property
    def text(self) -> str:
        """The whole secret, to be stored."""
        key = b64encode(_ED25519 + self.seed).decode()
        return f"{_PRIVATE}{self.verifier.name}+{self.verifier.hash.hex()}+{key}"

    def signature_line(self, text: bytes) -> str:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        signature = Ed25519PrivateKey.from_private_bytes(self.seed).sign(text)
        return f"{_DASH}{self.verifier.name} {b64encode(self.verifier.hash + signature).decode()}\n"


def new_signer(name: str) -> Signer:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return _signer(name, Ed25519PrivateKey.generate().private_bytes_raw())


def parse_signer(text: str) -> Signer:
    """Raises ValueError."""
    if not text.startswith(_PRIVATE):
        raise ValueError(f"a signing key begins with {_PRIVATE}")
    name, own_hash, seed = _parsed(text.removeprefix(_PRIVATE))
    signer = _signer(name, seed)
    if signer.verifier.hash != own_hash:
        raise ValueError("its hash does not match the key")
    return signer


def parse_verifier(text: str) -> Verifier:
    """Raises ValueError."""
    name, own_hash, public = _parsed(text)
    verifier = Verifier(name, public)
    if verifier.hash != own_hash:
        raise ValueError("its hash does not match the key")
    return verifier


def sign_note(text: str, signers: Sequence[Signer]) -> bytes:
    """`text` ends with a line feed."""
    content = text.encode()
    return content + b"\n" + "".join(signer.signature_line(content) for signer in signers).encode()


def note_text(content: bytes) -> str:
    """The text of a note, from any signer. Raises NotTrusted for anything else."""
    return _split(content)[0].decode()


def verified_text(content: bytes, trusted: Sequence[Verifier]) -> str:
    """The text of a note that one of these keys signed. Raises NotTrusted."""
    text, signatures = _split(content)
    by_name = {(verifier.name, verifier.hash): verifier for verifier in trusted}
    signed = False
    for name, own_hash, signature in signatures:
        verifier = by_name.get((name, own_hash))
        if verifier is None:
            continue  # the signature of an unknown key
        if not verifier.signed(text, signature):
            raise NotTrusted(f"the signature of {name} does not match this text")
        signed = True
    if not signed:
        raise NotTrusted("no trusted key signed it")
    return text.decode()


def _split(content: bytes) -> tuple[bytes, list[tuple[str, bytes, bytes]]]:
    """The text, and name, hash and signature of each line below it."""
    text, blank, below = content.rpartition(b"\n\n")
    text += b"\n"
    if not blank or not below.endswith(b"\n"):
        raise NotTrusted("it is not a signed note")
    try:
        printed = text.decode()
        lines = below.decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        raise NotTrusted("it is not a signed note") from None
    if any(character < " " for character in printed.replace("\n", "")) or len(lines) > _MOST_SIGNATURES:
        raise NotTrusted("it is not a signed note")
    return text, [_signature(line) for line in lines]


def _signature(line: str) -> tuple[str, bytes, bytes]:
    name, _, signature = line.removeprefix(_DASH).partition(" ")
    try:
        decoded = b64decode(signature, validate=True)
    except (NotBase64, ValueError):
        decoded = b""
    if not line.startswith(_DASH) or not _is_name(name) or len(decoded) <= _HASH_BYTES:
        raise NotTrusted("it is not a signed note")
    return name, decoded[:_HASH_BYTES], decoded[_HASH_BYTES:]


def _signer(name: str, seed: bytes) -> Signer:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    return Signer(Verifier(name, public), seed)


def _parsed(text: str) -> tuple[str, bytes, bytes]:
    """Name, hash and 32 bytes of a key as text."""
    name, _, rest = text.partition("+")
    own_hash, _, key = rest.partition("+")
    try:
        decoded = b64decode(key, validate=True)
        hashed = bytes.fromhex(own_hash)
    except (NotBase64, ValueError):
        decoded = hashed = b""
    if not _is_name(name) or len(hashed) != _HASH_BYTES or len(own_hash) != 2 * _HASH_BYTES:
        raise ValueError("expected NAME+HASH+BASE64")
    if decoded[:1] != _ED25519 or len(decoded) != 1 + _KEY_BYTES:
        raise ValueError("not an Ed25519 key")
    return name, hashed, decoded[1:]


def _is_name(name: str) -> bool:
    return bool(name) and "+" not in name and not any(character.isspace() for character in name)


HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()
LEAF: Final = sha256(b"\x00")
"""The beginning of every leaf's hash, to be copied."""
_NODE: Final = sha256(b"\x01")


def leaf_hash(content: bytes) -> bytes:
    return sha256(b"\x00" + content).digest()


def level_above(level: Sequence[bytes]) -> list[bytes]:
    """The hashes of a level's pairs. A hash without a partner moves up unchanged."""
    pairs = iter(level)
    above = [sha256(b"\x01" + left + right).digest() for left, right in zip(pairs, pairs, strict=False)]
    if len(level) % 2:
        above.append(level[-1])
    return above


def levels_above(level: Sequence[bytes]) -> list[Sequence[bytes]]:
    """A level and all levels above it, up to the root."""
    levels = [level]
    while len(levels[-1]) > 1:
        levels.append(level_above(levels[-1]))
    return levels


def root_of(level: Sequence[bytes]) -> bytes:
    """The root over leaf hashes, or over the hashes of any level."""
    return levels_above(level)[-1][0] if level else EMPTY_ROOT


def joined_root(level: bytes) -> bytes:
    """The same for hashes joined together, at half the cost."""
    while len(level) > HASH_BYTES:
        whole = len(level) // (2 * HASH_BYTES) * 2 * HASH_BYTES
        above = []
        for at in range(0, whole, 2 * HASH_BYTES):
            node = _NODE.copy()  # cheaper than a new one
            node.update(level[at : at + 2 * HASH_BYTES])
            above.append(node.digest())
        level = b"".join(above) + level[whole:]
    return level


def inclusion_path(levels: Iterable[Sequence[bytes]], index: int) -> list[bytes]:
    """The hashes that lead from a node of the first of these levels to the root, the lowest first."""
    path = []
    for level in levels:
        if (index ^ 1) < len(level):
            path.append(level[index ^ 1])
        index //= 2
    return path


def consistency_path(leaves: Sequence[bytes], size: int) -> list[bytes]:
    """The hashes that prove that the first `size` leaves are those of an older tree (RFC 9162, 2.1.4.1)."""
    if not 0 < size < len(leaves):
        return []
    path: list[bytes] = []
    start, end, is_older_root = 0, len(leaves), True
    while size != end:
        split = start + (1 << (end - start - 1).bit_length() - 1)
        if size <= split:
            path.append(root_of(leaves[split:end]))
            end = split
        else:
            path.append(root_of(leaves[start:split]))
            start, is_older_root = split, False
    if not is_older_root:
        path.append(root_of(leaves[start:end]))
    return path[::-1]
