"""The addresses at which a condition holds for a user, for all addresses at once.

The networks of the conditions divide the addresses into ranges, and within a range the conditions cannot tell addresses
apart. A set of addresses is a bit mask with one bit for each range. A request without an address is like one from an
address that is in none of the networks.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from sso.core.net import Network
from sso.perm.engine.conditions import NEVER, Condition, has_attributes
from sso.perm.engine.time_windows import TimeBound
from sso.perm.engine.user_facts import UserFacts

# IPv4-mapped IPv6 addresses count as IPv4, so no request comes from this range of IPv6.
_MAPPED_START, _MAPPED_END = 0xFFFF << 32, 1 << 48


class AddressSets:
    def __init__(self, conditions: Iterable[Condition]) -> None:
        networks = {network for condition in conditions for network in _networks(condition)}
        starts = {boundary for network in networks for boundary in _range(network)}
        self._starts = sorted({_outside_mapped(start) for start in starts})  # version and first address of each range
        self.everywhere = (1 << (len(self._starts) + 1)) - 1  # the last bit: no address

    def where(self, condition: Condition, user: UserFacts, bound: TimeBound) -> int:
        """Returns the set of addresses at which the condition holds for the user at some time, or all the time.

        The user's own address does not matter.
        """
        if condition == NEVER or not has_attributes(condition, user) or condition.all_of == ():
            return 0
        if condition.time is not None and not condition.time.includes(bound):
            return 0
        addresses = self.everywhere if condition.ip is None else self._inside(condition.ip)
        for part in condition.all_of or ():
            addresses &= self.where(part, user, bound)
        if condition.any_of is not None:
            alternatives = 0
            for part in condition.any_of:
                alternatives |= self.where(part, user, bound)
            addresses &= alternatives
        return addresses

    def _inside(self, network: Network) -> int:
        first, after = (bisect_left(self._starts, boundary) for boundary in _range(network))
        return (1 << after) - (1 << first)


def _networks(condition: Condition) -> Iterator[Network]:
    if condition.ip is not None:
        yield condition.ip
    for part in (*(condition.all_of or ()), *(condition.any_of or ())):
        yield from _networks(part)


def _range(network: Network) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns the first address of the network, and the one after its last."""
    first, last = int(network.network_address), int(network.broadcast_address)
    return (network.version, first), (network.version, last + 1)


def _outside_mapped(start: tuple[int, int]) -> tuple[int, int]:
    version, number = start
    return (6, _MAPPED_END) if version == 6 and _MAPPED_START <= number < _MAPPED_END else start
