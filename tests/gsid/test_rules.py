"""Parts without a server: the match code, the delay, the envelope."""

import random
from typing import Any

import pytest
import trio

from sso.gsid.backpressure import MAX_DELAY_S, Backpressure
from sso.gsid.match_code import FIRST_WORDS, SECOND_WORDS, new_match_code
from sso.gsid.model import GSID, Cancelled, Failed, LoginReady, Poll, PollOutcome, Retry, SessionSnapshot
from sso.gsid.routes import envelope

STANDING = SessionSnapshot("pending", True, 1, 0, started=100, last_seen=7, ts=130)
COMMON = {"gsid": "g", "ts": 130, "started": 100, "last_seen": 7}


def test_the_words_are_short_distinct_and_many() -> None:
    assert len(set(FIRST_WORDS)) == len(FIRST_WORDS) >= 100
    assert len(set(SECOND_WORDS)) == len(SECOND_WORDS) >= 100
    assert not set(FIRST_WORDS) & set(SECOND_WORDS)
    assert all(
        word.isascii() and word.isalpha() and word.islower() and len(word) <= 8 for word in FIRST_WORDS + SECOND_WORDS
    )
    first, second = new_match_code().split(" ")
    assert first in FIRST_WORDS
    assert second in SECOND_WORDS


def test_at_ease_the_delay_is_the_least() -> None:
    assert Backpressure(0).delay() == 0
    assert Backpressure(3).delay() == 3


def test_the_delay_grows_with_the_pressure_and_is_bounded() -> None:
    delays = []
    for seconds in (0.01, 0.5, 2.0, 5.0, 1000.0):
        ease = Backpressure(1)
        for _ in range(50):
            ease.record_poll_duration(seconds)
        delays.append(ease.delay())
    assert delays == sorted(delays)
    assert delays[0] == 1 < delays[1] < delays[2] < delays[3]
    assert delays[-1] == 1 + MAX_DELAY_S
    assert all(type(delay) is int for delay in delays)


async def test_what_is_over_is_forgotten(autojump_clock: trio.testing.MockClock) -> None:
    ease = Backpressure(0)
    for _ in range(50):
        ease.record_poll_duration(5.0)
    async with trio.open_nursery() as nursery:
        await nursery.start(ease.run)
        await trio.sleep(10)
        assert ease.delay() == 0
        nursery.cancel_scope.cancel()


def test_who_is_sent_away_by_a_server_that_leaves_is_spread() -> None:
    random.seed(1)
    ease = Backpressure(0)
    ease.drain(10_000)
    assert {ease.delay() for _ in range(500)} == set(range(11))


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Retry(STANDING, 2), {"status": "RETRY", **COMMON, "delay": 2}),
        (Cancelled(STANDING), {"status": "CANCELLED", **COMMON}),
        (Failed("session expired"), {"status": "ERROR", "error": "session expired"}),
        (
            LoginReady(STANDING, {"status": "OK", "token": "t"}, Poll("g", 1, 0, 0.0, False, STANDING)),
            {"status": "OK", **COMMON, "token": "t"},
        ),
    ],
)
def test_each_status_has_its_fields(outcome: PollOutcome, expected: dict[str, Any]) -> None:
    assert envelope("g", outcome) == expected


def test_the_data_never_hides_what_is_said_of_the_session() -> None:
    data = {"gsid": "other", "ts": 0, "status": "x"}
    answer = envelope("g", LoginReady(STANDING, data, Poll("g", 1, 0, 0.0, False, STANDING)))
    assert answer == {"status": "OK", **COMMON}


def test_what_is_handed_out_is_not_printed() -> None:
    assert "secret" not in repr(LoginReady(STANDING, {"token": "secret"}, Poll("g", 1, 0, 0.0, False, STANDING)))


@pytest.mark.parametrize(
    ("status", "alive", "error"),
    [
        ("pending", True, None),
        ("pending", False, "session expired"),
        ("confirmed", True, None),
        ("confirmed", False, "session expired"),
        ("delivered", True, None),
        ("delivered", False, None),
        ("closed", True, "session closed"),
        ("closed", False, "session closed"),
        ("denied", True, "session denied"),
    ],
)
def test_why_nothing_comes_of_a_session(status: str, alive: bool, error: str | None) -> None:
    assert SessionSnapshot(status, alive, 1, 0, 0, 0, 0).error == error


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "0" * 36, "9B2D1C3A-0000-4000-8000-000000000000", "{9b2d1c3a-0000-4000-8000-000000000000}",
        "9b2d1c3a000040008000000000000000", "9b2d1c3a-0000-1000-8000-000000000000",
        "9b2d1c3a-0000-4000-8000-000000000000\n", "9b2d1c3a-0000-4000-c000-000000000000",
    ],
)  # fmt: skip
def test_a_gsid_has_one_spelling(text: str) -> None:
    assert not GSID.fullmatch(text)
    assert GSID.fullmatch("9b2d1c3a-0000-4000-8000-000000000000")
