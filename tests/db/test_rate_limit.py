"""Rate limits by network: an IPv6 /48 has a limit of its own, so that its 65,536 networks do not multiply the limit."""

import trio

from sso.core.net import SITE_FACTOR, parse_address
from sso.core.rate_window import RateWindow
from sso.db.database import Database
from sso.db.rate_limit import EventCounter, RateLimiter, WindowLimiter, claim_turn, turn_wait
from sso.telemetry.counters import THROTTLED_REQUESTS

LIMIT = 3


async def test_networks_of_one_ipv6_site_share_a_limit(database: Database) -> None:
    rate, admitted = RateLimiter(database, "test", LIMIT), 0

    async def add(number: int) -> None:
        nonlocal admitted
        wait_s = await rate.add(parse_address(f"2001:db8:1:{number:x}::1"))
        admitted += wait_s == 0

    async with trio.open_nursery() as nursery:
        for number in range(3 * LIMIT * SITE_FACTOR):
            nursery.start_soon(add, number)
    assert admitted == LIMIT * SITE_FACTOR
    assert not await rate.add(parse_address("2001:db8:2::1"))


async def test_one_network_over_its_limit_does_not_use_up_the_limit_of_its_site(database: Database) -> None:
    rate = RateLimiter(database, "test", LIMIT)
    waits = [await rate.add(parse_address("2001:db8:1::1")) for _ in range(2 * LIMIT * SITE_FACTOR)]
    assert [wait == 0 for wait in waits] == [True] * LIMIT + [False] * (len(waits) - LIMIT)
    assert not await rate.add(parse_address("2001:db8:1:2::1"))


def test_window_forgets_what_is_long_ago() -> None:
    window = RateWindow(2, 5.0)
    assert [window.exceeded(now) for now in (0.0, 1.0, 2.0, 6.5, 7.0, 7.5)] == [False, False, True, False, False, True]


async def test_limit_of_an_address_and_of_a_subject(database: Database) -> None:
    rate, off = RateLimiter(database, "test", LIMIT), RateLimiter(database, "off", 0)
    for address, other in (("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8:0:1::1")):
        waits = [await rate.add(parse_address(address)) for _ in range(LIMIT + 1)]
        assert waits[:LIMIT] == [0] * LIMIT
        assert 0 < waits[LIMIT] <= 60
        assert await rate.add(parse_address(other)) == 0
        assert not any([await off.add(parse_address(address)) for _ in range(LIMIT + 1)])
    waits = [await rate.add_subject("user 1") for _ in range(LIMIT + 1)]
    assert waits[:LIMIT] == [0] * LIMIT
    assert 0 < waits[LIMIT] <= 60
    assert await rate.add_subject("user 2") == 0
    assert not any([await off.add_subject("user 1") for _ in range(LIMIT + 1)])


async def test_refused_requests_are_counted_by_the_name_of_the_limit(database: Database) -> None:
    def count() -> int:
        return THROTTLED_REQUESTS.counts.get(("counted",), 0)

    rate, window = RateLimiter(database, "counted", 1), WindowLimiter("counted", 1, 60)
    before = count()
    for number, expected in enumerate((0, 1, 2)):
        assert bool(await rate.add(parse_address("192.0.2.9"))) == bool(number)
        assert count() - before == expected
    assert await rate.add_subject("user 9") == 0
    assert await window.add(database, "a@example.com") == 0
    assert count() - before == 2
    assert await rate.add_subject("user 9")
    assert await window.add(database, "a@example.com")
    assert count() - before == 4


async def test_events_of_a_minute_are_numbered(database: Database) -> None:
    counter = EventCounter(database)
    counts = [await counter.add(b"key", 2, 30.0) for _ in range(3)]
    assert [count.number for count in counts] == [1, 2, 3]
    assert all(0 < count.seconds_left <= 60 for count in counts)
    blocked = await database.run_sql("SELECT blocked_until > now() + interval '25 s' FROM throttle", [])
    assert blocked[0][0]


async def test_turn_is_free_again_after_its_pause(database: Database) -> None:
    assert await turn_wait(database, "turn") == 0
    assert await claim_turn(database, "turn", 100)
    assert not await claim_turn(database, "turn", 100)
    assert 90 < await turn_wait(database, "turn") <= 100
    assert await claim_turn(database, "other", 100)


async def test_window_counts_nothing_beyond_its_limit(database: Database) -> None:
    limiter = WindowLimiter("mails", LIMIT, 1000)
    waits = [await limiter.add(database, "a") for _ in range(LIMIT + 2)]
    assert waits[:LIMIT] == [0] * LIMIT
    assert all(900 < wait <= 1000 for wait in waits[LIMIT:])
    assert await limiter.add(database, "b") == 0
    assert sorted(row[0] for row in await database.run_sql("SELECT failures FROM throttle", [])) == [1, LIMIT]
