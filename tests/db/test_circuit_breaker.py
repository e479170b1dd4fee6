"""The circuit breaker opens when nothing is answered, and lets one probe through at a time."""

import trio

from sso.db.circuit_breaker import PAUSE_S, CircuitBreaker

PROBE_S = 2.0


def open_breaker() -> CircuitBreaker:
    breaker = CircuitBreaker()
    breaker.record_failure(began=trio.current_time())
    return breaker


async def test_new_breaker_allows_all_calls(autojump_clock: object) -> None:
    breaker = CircuitBreaker()
    assert all(breaker.allows_call(PROBE_S) for _ in range(10))


async def test_answer_after_a_failed_call_began_keeps_the_breaker_closed(autojump_clock: object) -> None:
    breaker = CircuitBreaker()
    began = trio.current_time()
    await trio.sleep(1)
    breaker.record_success()
    await trio.sleep(1)
    breaker.record_failure(began)
    assert breaker.allows_call(PROBE_S)


async def test_open_breaker_allows_one_probe_at_a_time(autojump_clock: object) -> None:
    breaker = open_breaker()
    assert not breaker.allows_call(PROBE_S)
    await trio.sleep(PAUSE_S)
    assert [breaker.allows_call(PROBE_S) for _ in range(3)] == [True, False, False]
    await trio.sleep(PROBE_S)
    assert not breaker.allows_call(PROBE_S)
    await trio.sleep(PAUSE_S)  # the probe has had its time without a result
    assert breaker.allows_call(PROBE_S)


async def test_one_success_closes_the_breaker(autojump_clock: object) -> None:
    breaker = open_breaker()
    breaker.record_success()
    assert all(breaker.allows_call(PROBE_S) for _ in range(3))


async def test_failed_probe_is_followed_by_a_pause(autojump_clock: object) -> None:
    breaker = open_breaker()
    for _ in range(3):
        await trio.sleep(PAUSE_S)
        began = trio.current_time()
        assert breaker.allows_call(PROBE_S)
        breaker.record_failure(began)
        assert not breaker.allows_call(PROBE_S)
