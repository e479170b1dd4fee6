"""Find the roles whose condition holds, without looking at the others.

Most conditions can hold only for users who have something nameable: a domain, an id, a tag, a purchase, an address in a
network. Each role is filed under the rarest of the things it cannot do without, so that a user's own few keys lead to
the few roles worth evaluating. A role that needs nothing nameable is evaluated for everybody; one that can hold for
nobody is filed nowhere. The index only narrows: what is found is always evaluated in full.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from sso.core.net import Network
from sso.perm.engine.conditions import Condition, holds
from sso.perm.engine.facts import UserFacts

NetworkKey: TypeAlias = tuple[int, int, int]  # version, prefix length, the bits before it
Key: TypeAlias = tuple[str, str | NetworkKey]
Keys: TypeAlias = tuple[Key, ...]  # the condition can hold only for users with one of these; () holds for nobody


class ConditionIndex:
    def __init__(self, conditions: Mapping[str, Condition]) -> None:
        self._conditions = conditions
        self._files: dict[Key, list[str]] = {}
        self._prefixes: dict[int, set[int]] = {4: set(), 6: set()}
        self._everybody: list[str] = []
        uses = Counter(key for condition in conditions.values() for key in _mentioned(condition))
        for name, condition in conditions.items():
            keys = _needed(condition, uses)
            if keys is None:
                self._everybody.append(name)
                continue
            for key in keys:
                self._files.setdefault(key, []).append(name)
                if isinstance(key[1], tuple):
                    self._prefixes[key[1][0]].add(key[1][1])

    def find(self, user: UserFacts) -> frozenset[str]:
        """The names of the roles whose condition holds for the user."""
        names = set(self._everybody)
        if self._files:
            for key in self._keys(user):
                names.update(self._files.get(key, ()))
        return frozenset(name for name in names if holds(self._conditions[name], user))

    def _keys(self, user: UserFacts) -> Iterator[Key]:
        yield "domain", user.domain
        yield "uid", user.user_id
        for tag in user.tags:
            yield "tag", tag
        for purchase in user.purchases:
            yield "purchase", purchase
        if user.address is not None:
            address = getattr(user.address, "ipv4_mapped", None) or user.address
            number, bits = int(address), address.max_prefixlen
            for prefix in self._prefixes[address.version]:
                yield "ip", (address.version, prefix, number >> (bits - prefix))


def _needed(condition: Condition, uses: Mapping[Key, int]) -> Keys | None:
    """The cheapest set of keys of which a user must have one; None if everybody must be looked at."""
    best: Keys | None = None
    for keys in _alternatives(condition, uses):
        if best is None or sum(map(uses.__getitem__, keys)) < sum(map(uses.__getitem__, best)):
            best = keys
    if best is None and not condition.everyone and condition.all_of is None and condition.any_of is None:
        return ()  # it asks for nothing
    return best


def _alternatives(condition: Condition, uses: Mapping[Key, int]) -> Iterator[Keys]:
    """Each member of an object is needed, so each gives a set of keys by itself."""
    yield from _own_keys(condition)
    if condition.all_of is not None:
        if not condition.all_of:
            yield ()
        for part in condition.all_of:
            keys = _needed(part, uses)
            if keys is not None:
                yield keys
    if condition.any_of is not None:
        parts = [_needed(part, uses) for part in condition.any_of]
        if None not in parts:
            yield tuple(dict.fromkeys(key for keys in parts if keys is not None for key in keys))


def _own_keys(condition: Condition) -> Iterator[Keys]:
    if condition.domain is not None:
        yield (("domain", condition.domain),)
    if condition.uid is not None:
        yield tuple(("uid", uid) for uid in condition.uid)
    if condition.tag is not None:
        yield (("tag", condition.tag),)
    if condition.purchase is not None:
        yield (("purchase", condition.purchase),)
    if condition.ip is not None:
        yield (("ip", _network_key(condition.ip)),)


def _mentioned(condition: Condition) -> set[Key]:
    found = {key for keys in _own_keys(condition) for key in keys}
    for parts in (condition.all_of, condition.any_of):
        for part in parts or ():
            found |= _mentioned(part)
    return found


def _network_key(network: Network) -> NetworkKey:
    shift = network.max_prefixlen - network.prefixlen
    return network.version, network.prefixlen, int(network.network_address) >> shift
