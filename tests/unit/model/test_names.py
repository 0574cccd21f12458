"""Names as people search for them."""

from hypothesis import given
from hypothesis import strategies as st

from sankofa.model.folding import search_form
from sankofa.model.names import are_near, neighbourhood, slips, tolerated, words

WORD = st.text("abcde", min_size=0, max_size=8)


def test_accents_case_dots_and_punctuation_do_not_matter() -> None:
    assert search_form("Société  Échantillon du Cacao, S.A.") == "societe echantillon du cacao sa"
    assert search_form("O'Reilly & Sons (Pty) Ltd.") == "oreilly and sons pty ltd"


def test_legal_forms_are_dropped_where_something_else_is_left() -> None:
    assert words("Kgalagadi Sample Retail (Pty) Ltd") == words("KGALAGADI SAMPLE RETAIL PLC")
    assert words("Limited") == ["limited"]


def test_a_name_in_another_script_is_kept_without_its_marks() -> None:
    assert words("الدلتا للأدوية") == words("الدلتا للادوية") == ["الدلتا", "للادوية"]


@given(WORD, WORD)
def test_slips_are_symmetric_and_zero_only_for_the_same_word(one: str, other: str) -> None:
    assert slips(one, other) == slips(other, one)
    assert (slips(one, other) == 0) == (one == other)
    assert slips(one, other) <= max(len(one), len(other))


def test_a_swap_of_neighbours_is_one_slip() -> None:
    assert slips("retial", "retail") == 1


@given(WORD | st.text("ab", max_size=6), WORD | st.text("ab", max_size=6))
def test_words_are_near_where_they_share_a_form(one: str, other: str) -> None:
    assert are_near(one, other) == (not set(neighbourhood(one)).isdisjoint(neighbourhood(other)))


@given(st.text(st.characters(max_codepoint=127)))
def test_a_name_without_accents_is_folded_as_one_with_them(name: str) -> None:
    assert f"{search_form(name)} e".split() == search_form(f"{name} é").split()


@given(st.text("abcdefgh", min_size=4, max_size=9), st.data())
def test_two_words_one_slip_apart_share_a_form(word: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(word) - 1))
    changed = word[:position] + data.draw(st.sampled_from("abcxyz")) + word[position + 1 :]
    shortened = word[:position] + word[position + 1 :]
    assert set(neighbourhood(word)) & set(neighbourhood(changed))
    assert set(neighbourhood(word)) & set(neighbourhood(shortened))


def test_short_words_must_be_right() -> None:
    assert [tolerated(w) for w in ("abc", "abcd", "abcdefghi")] == [0, 1, 2]
