"""Rate limits by network: an IPv6 /48 has a limit of its own, so that its 65,536 networks do not multiply the limit."""

import trio

from sso.core.net import SITE_FACTOR, parse_address
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter

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
