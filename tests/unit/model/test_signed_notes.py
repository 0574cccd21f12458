"""Signed notes, against the example in the documentation of Go's golang.org/x/mod/sumdb/note."""

import pytest

from sankofa.model.signed_notes import (
    NotTrusted,
    new_signer,
    note_text,
    parse_signer,
    parse_verifier,
    sign_note,
    verified_text,
)
from tests.every import every

SIGNER = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
VERIFIER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
NOTE = (
    f"{TEXT}\n\N{EM DASH} PeterNeumann "
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
).encode()


def test_a_note_of_another_implementation_is_verified_and_written_alike() -> None:
    signer, verifier = parse_signer(SIGNER), parse_verifier(VERIFIER)
    assert signer.verifier == verifier
    assert (signer.text, verifier.text) == (SIGNER, VERIFIER)
    assert sign_note(TEXT, [signer]) == NOTE
    assert verified_text(NOTE, [verifier]) == TEXT


def test_one_trusted_signature_is_enough_but_a_wrong_one_of_a_trusted_key_is_refused() -> None:
    peter, other, third = parse_signer(SIGNER), new_signer("other"), new_signer("PeterNeumann")
    note = sign_note(TEXT, [other, peter])
    assert verified_text(note, [peter.verifier]) == TEXT
    assert verified_text(note, [third.verifier, other.verifier]) == TEXT
    with pytest.raises(NotTrusted, match="no trusted key"):
        verified_text(note, [third.verifier])
    with pytest.raises(NotTrusted, match="no trusted key"):
        verified_text(note, [])
    with pytest.raises(NotTrusted, match="does not match this text"):
        verified_text(note.replace(b"problem is", b"problem was"), [peter.verifier, third.verifier])


@every(
    "note",
    [
        b"",
        b"\n",
        b"\n\n",
        NOTE[:-1],
        NOTE.replace(b"\n\n", b"\n"),
        NOTE.replace(b"crypto", b"cryp\tto"),
        NOTE.replace(b"crypto", b"\xff"),
        NOTE.replace(b"Neumann ", b"Neumann  "),
        NOTE.replace(b"PeterNeumann x", b"Peter+Neumann x"),
        NOTE.replace(b"=\n", b"\n"),
        NOTE + NOTE.rpartition(b"\n\n")[2] * 100,
    ],
)
def test_a_malformed_note_is_refused(note: bytes) -> None:
    with pytest.raises(NotTrusted):
        verified_text(note, [parse_verifier(VERIFIER)])


def test_a_text_may_have_blank_lines_and_the_last_one_ends_it() -> None:
    signer = new_signer("a")
    assert note_text(sign_note("one\n\ntwo\n", [signer])) == "one\n\ntwo\n"


@every(
    "key",
    [
        *("", "PeterNeumann", "a+b", "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"),
        VERIFIER.replace("c74f", "c74e"),
        VERIFIER.replace("c74f20a3", "c7 4f20a3"),
        VERIFIER.replace("Peter", "Peter "),
        VERIFIER.replace("+AR", "+BR"),
        VERIFIER[:-4],
        SIGNER,
    ],
)
def test_a_malformed_verifier_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"expected|Ed25519|hash"):
        parse_verifier(key)
