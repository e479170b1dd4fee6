"""The rules for new passwords: their length, a list of common passwords, and an estimate of their strength.

A rejected password gets advice in plain words. Passwords that exist are not judged again.
"""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from zxcvbn_rs_py import Warning as Weakness
from zxcvbn_rs_py import zxcvbn

from sso.core.language import Text

MIN_LENGTH, MAX_LENGTH = 8, 256
MIN_GUESSES = 10**8  # that an attacker who knows how people choose passwords needs
# The estimator does not let other threads run, and its time grows faster than the length of the text. So it gets parts
# of a password: one that is hard to guess makes the password hard to guess.
PART, MAX_PARTS = 32, 2
MAX_ESTIMATED = PART * MAX_PARTS  # characters; the rest can only make the password stronger
MAX_GUESSABLE = 100  # characters of each text that the user's passwords are likely to contain

# The union of the ranked lists in zxcvbn and Django, in lower case, without those that are too short anyway.
COMMON_PASSWORDS = Path(__file__).with_name("common_passwords.txt")

# The time of an estimate grows with the number of ways to read substitutes such as "@" for "a" as letters: 64
# characters with all of them would take two seconds. These are the letters that have several substitutes.
_SUBSTITUTES = ("4@", "({[<", "69", "1!|", "1|7", "$5", "+7")
_MAX_READINGS = 4
_WITHOUT_SYMBOLS = str.maketrans(dict.fromkeys("@({[<!|$+%", "~"))

_COMMON = Text("This is a very common password. Use several words that do not belong together.")
_GUESSABLE = Text(
    "Your e-mail address, your nickname and the name of this service are easy to guess. Choose a password without them."
)
_WEAK = Text("This password is easy to guess. Make it longer: add a word or two that do not belong together.")
_KEYS = Text("Neighbouring keys are easy to guess. Use several words that do not belong together.")
_NAMES = Text("Names are easy to guess. Add a word or two that have nothing to do with them.")
_REPEATS = Text("Repeated letters and words are easy to guess. Use several words that do not belong together.")
_SEQUENCES = Text("Sequences such as abc or 6543 are easy to guess. Use several words that do not belong together.")
_DATES = Text("Dates and years are easy to guess. Use several words that do not belong together.")
_SIMILAR = Text("This is close to a very common password. Use several words that do not belong together.")
_ONE_WORD = Text("A single word is easy to guess, even with a number. Add a word or two that do not belong together.")
_ADVICE = (
    (Weakness.ThisIsATop10Password, _COMMON),
    (Weakness.ThisIsATop100Password, _COMMON),
    (Weakness.ThisIsACommonPassword, _COMMON),
    (Weakness.ThisIsSimilarToACommonlyUsedPassword, _SIMILAR),
    (Weakness.StraightRowsOfKeysAreEasyToGuess, _KEYS),
    (Weakness.ShortKeyboardPatternsAreEasyToGuess, _KEYS),
    (Weakness.RepeatsLikeAaaAreEasyToGuess, _REPEATS),
    (Weakness.RepeatsLikeAbcAbcAreOnlySlightlyHarderToGuess, _REPEATS),
    (Weakness.SequencesLikeAbcAreEasyToGuess, _SEQUENCES),
    (Weakness.RecentYearsAreEasyToGuess, _DATES),
    (Weakness.DatesAreOftenEasyToGuess, _DATES),
    (Weakness.AWordByItselfIsEasyToGuess, _ONE_WORD),
    (Weakness.NamesAndSurnamesByThemselvesAreEasyToGuess, _NAMES),
    (Weakness.CommonNamesAndSurnamesAreEasyToGuess, _NAMES),
)


class UnacceptablePassword(Exception):
    """A new password is too short, too long or too easy to guess. ``text`` tells the user why, and what to do."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


def check_length(password: str) -> None:
    """Raises UnacceptablePassword."""
    if len(password) < MIN_LENGTH:
        raise UnacceptablePassword(Text("Your password must have at least %(count)s characters.", count=MIN_LENGTH))
    if len(password) > MAX_LENGTH:
        raise UnacceptablePassword(Text("Your password must have at most %(count)s characters.", count=MAX_LENGTH))


def check_new_password(password: str, guessable: Sequence[str] = ()) -> None:
    """Raises UnacceptablePassword. ``guessable``: the user's login and nickname, the name of the service.

    Takes half a millisecond as a rule and some 5 ms at most, so call it in a thread, in a slot of the hashing queue.
    """
    check_length(password)
    folded = password.casefold()
    if f"\n{folded}\n" in _common_passwords():
        raise UnacceptablePassword(_COMMON)
    texts = [text[:MAX_GUESSABLE].casefold() for whole in guessable for text in (whole, whole.partition("@")[0])]
    texts = [text for text in texts if len(text) > 2]
    if folded in texts:
        raise UnacceptablePassword(_GUESSABLE)
    first = zxcvbn(_estimated_part(password, 0), texts)
    if first.guesses >= MIN_GUESSES:
        return
    for start in range(PART, min(len(password), MAX_ESTIMATED), PART):
        if zxcvbn(_estimated_part(password, start), texts).guesses >= MIN_GUESSES:
            return
    if any(text in folded for text in texts):
        raise UnacceptablePassword(_GUESSABLE)
    weakness = first.feedback.warning if first.feedback else None
    raise UnacceptablePassword(next((advice for known, advice in _ADVICE if known == weakness), _WEAK))


def _estimated_part(password: str, start: int) -> str:
    """Returns a part of the password, without symbols if they could be read in too many ways."""
    part = password[start : start + PART]
    readings = math.prod(max(1, sum(character in part for character in group)) for group in _SUBSTITUTES)
    return part.translate(_WITHOUT_SYMBOLS) if readings > _MAX_READINGS else part


@cache
def _common_passwords() -> str:
    return "\n" + COMMON_PASSWORDS.read_text()
