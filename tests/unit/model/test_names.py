"""Names as people search for them."""

from hypothesis import given
from hypothesis import strategies as st

from sankofa.model.text import near_words, neighbourhood, search_form, slips_between, tolerated, words

WORD = st.text("abcde", min_size=0, max_size=8)


def test_accents_case_dots_and_punctuation_do_not_matter() -> None:
    assert search_form("Société  Échantillon du Cacao, S.A.") == "societe echantillon du cacao sa"
    assert search_form("O'Reilly & Sons (Pty) Ltd.") == "oreilly and sons pty ltd"


def test_legal_forms_are_dropped_where_something_else_is_left() -> None:
    assert words("Kgalagadi Sample Retail (Pty) Ltd") == words("KGALAGADI SAMPLE RETAIL PLC")
    assert words("Limited") == ["limited"]


def test_a_name_in_another_script_is_kept_without_its_marks() -> None:
    assert words("الدلتا للأدوية") == words("الدلتا للادوية") == ["الدلتا", "للادوية"]


def errors_between(word: str, other: str) -> int:
    """The distance as it is defined: letters added, left out, changed, or two neighbours swapped."""
    before, row = list[int](), list(range(len(other) + 1))
    for i, a in enumerate(word, 1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and word[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


@given(WORD | st.text("ab", max_size=6), WORD | st.text("ab", max_size=6))
def test_words_that_share_a_form_are_as_many_slips_apart_as_errors(one: str, other: str) -> None:
    near = not set(neighbourhood(one)).isdisjoint(neighbourhood(other))
    expected = errors_between(one, other) if near else None
    assert slips_between(one, other) == slips_between(other, one) == expected


@given(WORD | st.text("ab", max_size=6), st.lists(WORD | st.text("ab", max_size=6)))
def test_near_words_are_found_among_strangers(word: str, others: list[str]) -> None:
    distances = [(slips_between(word, other), other) for other in others]
    assert near_words(word, others) == [pair for pair in distances if pair[0] is not None]


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
