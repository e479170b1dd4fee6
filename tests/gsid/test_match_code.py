"""The match code of a game session."""

from sso.gsid.match_code import FIRST_WORDS, SECOND_WORDS, new_match_code


def test_words_are_short_distinct_and_many() -> None:
    assert len(set(FIRST_WORDS)) == len(FIRST_WORDS) >= 100
    assert len(set(SECOND_WORDS)) == len(SECOND_WORDS) >= 100
    assert not set(FIRST_WORDS) & set(SECOND_WORDS)
    for word in FIRST_WORDS + SECOND_WORDS:
        assert word.isascii()
        assert word.isalpha()
        assert word.islower()
        assert len(word) <= 8


def test_match_code_is_a_first_and_a_second_word() -> None:
    first, second = new_match_code().split(" ")
    assert first in FIRST_WORDS
    assert second in SECOND_WORDS
