import trio

from sso.db.circuit_breaker import PAUSE_S, CircuitBreaker


def away() -> CircuitBreaker:
    breaker = CircuitBreaker()
    breaker.record_failure(began=trio.current_time())
    return breaker


async def test_it_is_taken_for_well_until_something_fails(autojump_clock: object) -> None:
    breaker = CircuitBreaker()
    assert all(breaker.allows_call(2) for _ in range(10))


async def test_what_was_answered_since_the_failed_call_began_shows_that_it_lives(autojump_clock: object) -> None:
    breaker = CircuitBreaker()
    began = trio.current_time()
    await trio.sleep(1)
    breaker.record_success()
    await trio.sleep(1)
    breaker.record_failure(began)
    assert breaker.allows_call(2)


async def test_while_it_is_away_one_at_a_time_tries(autojump_clock: object) -> None:
    breaker = away()
    assert not breaker.allows_call(2)
    await trio.sleep(PAUSE_S)
    assert [breaker.allows_call(2) for _ in range(3)] == [True, False, False]
    await trio.sleep(2)
    assert not breaker.allows_call(2)
    await trio.sleep(PAUSE_S)  # whoever tried has not been heard of since
    assert breaker.allows_call(2)


async def test_one_answer_is_enough(autojump_clock: object) -> None:
    breaker = away()
    breaker.record_success()
    assert all(breaker.allows_call(2) for _ in range(3))


async def test_each_failed_attempt_is_followed_by_a_pause(autojump_clock: object) -> None:
    breaker = away()
    for _ in range(3):
        await trio.sleep(PAUSE_S)
        began = trio.current_time()
        assert breaker.allows_call(2)
        breaker.record_failure(began)
        assert not breaker.allows_call(2)
