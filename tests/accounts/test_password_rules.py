"""Rules for new passwords: length, common passwords, strength and advice."""

import random
import time

import pytest
from zxcvbn_rs_py import zxcvbn

from sso.accounts import password_rules
from sso.accounts.password_rules import (
    COMMON_PASSWORDS,
    MAX_ESTIMATED,
    MAX_LENGTH,
    MIN_LENGTH,
    UnacceptablePassword,
    check_new_password,
)

ABOUT = ("ann.smith@example.com", "Moonwalker", "Sign-on")
COMMON = "This is a very common password. Use several words that do not belong together."
VARIED = "".join(f"{word * 7919 % 9973} " for word in range(100))
SUBSTITUTES = "4@8({[<369!|1/7%2$50+"  # for letters; the time of an estimate grows with the number of readings


def problem(password: str) -> str:
    try:
        check_new_password(password, ABOUT)
    except UnacceptablePassword as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery",
        "x7$kQ!2p",
        "vier wörter ohne sinn",
        "パスワードは秘密の言葉",
        VARIED[:256],
        "\0 odd \n bytes 7",
    ],
)
def test_passwords_that_are_hard_to_guess_are_accepted(password: str) -> None:
    assert problem(password) == ""


@pytest.mark.parametrize(
    ("password", "advice"),
    [
        ("", "at least 8 characters"),
        ("x7$kQ!2", "at least 8 characters"),
        (VARIED[:257], "at most 256 characters"),
        ("password", COMMON),
        ("PASSWORD1", COMMON),
        ("Passw0rd!", "close to a very common password"),
        ("qwertzuiop", "password"),
        ("ichliebedich", COMMON),
        ("aaaaaaaaaaaaaaaa", "Repeated"),
        ("19900412", "Dates"),
        ("ann.smith@example.com", "e-mail address"),
        ("Ann.Smith7", "e-mail address"),
        ("moonwalker!", "nickname"),
        ("sign-on 1", "name of this service"),
    ],
)
def test_passwords_that_are_easy_to_guess_are_rejected_with_advice(password: str, advice: str) -> None:
    assert advice in problem(password)


def test_every_common_password_is_rejected_in_any_case() -> None:
    passwords = COMMON_PASSWORDS.read_text().split()
    assert len(passwords) > 15_000
    for password in random.Random(1).sample(passwords, 300):
        assert MIN_LENGTH <= len(password) <= MAX_LENGTH
        assert problem(password.upper()) == COMMON, password


def test_estimator_gets_at_most_32_characters_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not let other threads run, and its time grows faster than the length: 64 characters take 24 ms."""
    lengths = []

    def record(password: str, words: list[str]) -> object:
        lengths.append(len(password))
        return zxcvbn(password, words)

    monkeypatch.setattr(password_rules, "zxcvbn", record)
    assert problem("password" * 32)
    assert problem("password" * 4 + VARIED[:40]) == ""
    assert lengths == [32, 32, 32, 32]


def test_estimate_of_a_hostile_password_is_cheap() -> None:
    """Without a bound, 64 such characters take some two seconds: a few requests would occupy a worker."""
    generator = random.Random(2)
    check_new_password("correct horse battery")  # compiles the patterns of the library
    started = time.thread_time()
    for _ in range(10):
        problem("".join(generator.choice(SUBSTITUTES) for _ in range(MAX_ESTIMATED)))
    assert time.thread_time() - started < 2
