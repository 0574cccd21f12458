"""Text as publishers write it, made fit to be stored."""

from sankofa.model import text
from tests.every import every


@every("unfit", ["a\0b", "a\nb", "a\x85b", "a\udc80b"])
def test_what_cannot_be_stored_everywhere_is_not_fit(unfit: str) -> None:
    assert not text.fit(unfit)
    assert text.name(unfit) == "a b"


@every("kept", ["Société", "A\u200fB", "株式会社", "O'Neil & Sons (Pty) Ltd"])
def test_letters_and_marks_of_every_script_are_fit(kept: str) -> None:
    assert text.fit(kept)
    assert text.name(kept) == kept


def test_a_name_is_one_line_and_never_empty() -> None:
    assert text.name("  ACME \t HOLDINGS\u00a0 LTD ") == "ACME HOLDINGS LTD"
    assert text.name(" \0 ") is None
