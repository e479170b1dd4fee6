import trio

from sso.db.circuit_breaker import PAUSE_S, CircuitBreaker


def away() -> CircuitBreaker:
    pulse = CircuitBreaker()
    pulse.failed(began=trio.current_time())
    return pulse


async def test_it_is_taken_for_well_until_something_fails(autojump_clock: object) -> None:
    pulse = CircuitBreaker()
    assert all(pulse.may_try(2) for _ in range(10))


async def test_what_was_answered_since_the_failed_call_began_shows_that_it_lives(autojump_clock: object) -> None:
    pulse = CircuitBreaker()
    began = trio.current_time()
    await trio.sleep(1)
    pulse.answered()
    await trio.sleep(1)
    pulse.failed(began)
    assert pulse.may_try(2)


async def test_while_it_is_away_one_at_a_time_tries(autojump_clock: object) -> None:
    pulse = away()
    assert not pulse.may_try(2)
    await trio.sleep(PAUSE_S)
    assert [pulse.may_try(2) for _ in range(3)] == [True, False, False]
    await trio.sleep(2)
    assert not pulse.may_try(2)
    await trio.sleep(PAUSE_S)  # whoever tried has not been heard of since
    assert pulse.may_try(2)


async def test_one_answer_is_enough(autojump_clock: object) -> None:
    pulse = away()
    pulse.answered()
    assert all(pulse.may_try(2) for _ in range(3))


async def test_each_failed_attempt_is_followed_by_a_pause(autojump_clock: object) -> None:
    pulse = away()
    for _ in range(3):
        await trio.sleep(PAUSE_S)
        began = trio.current_time()
        assert pulse.may_try(2)
        pulse.failed(began)
        assert not pulse.may_try(2)
