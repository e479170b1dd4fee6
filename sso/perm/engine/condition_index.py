"""Find the roles whose condition holds, without looking at the others.

Most conditions can hold only for users who have something nameable: a domain, an id, a tag, a purchase, an address in a
network. Each role is filed under the rarest of the things it cannot do without, so that a user's own few keys lead to
the few roles worth evaluating. A role that needs nothing nameable is evaluated for everybody; one that can hold for
nobody is filed nowhere. The index only narrows: what is found is always read and evaluated in full. So it can work on
conditions as they are stored, and reading all thousand of them is saved when three of them matter.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from sso.core.domains import domain_key
from sso.core.net import parse_network
from sso.perm.engine.conditions import Condition, holds
from sso.perm.engine.facts import UserFacts

NetworkKey: TypeAlias = tuple[int, int, int]  # version, prefix length, the bits before it
Key: TypeAlias = tuple[str, str | NetworkKey]
Keys: TypeAlias = list[Key]  # the condition can hold only for users with one of these; [] holds for nobody


class ConditionIndex:
    """`stored` are conditions by the name of their role; `read` gives the condition of a role, ready to evaluate."""

    def __init__(self, stored: Mapping[str, Mapping[str, Any]], read: Callable[[str], Condition]) -> None:
        self._read = read
        self._files: dict[Key, list[str]] = {}
        self._prefixes: dict[int, set[int]] = {4: set(), 6: set()}
        self._everybody: list[str] = []
        uses: dict[Key, int] = {}
        usable = {name: condition for name, condition in stored.items() if _count(condition, uses)}
        for name, condition in usable.items():
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
        return frozenset(name for name in names if holds(self._read(name), user))

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


def _count(condition: Mapping[str, Any], uses: dict[Key, int]) -> bool:
    """Count how often each key is asked for, to tell a rare one from a common one. False: this is no condition.

    Conditions are checked when they are saved; one that cannot be understood all the same opens nothing.
    """
    try:
        for member, value in condition.items():
            if member in ("and", "or"):
                if not all(_count(part, uses) for part in value):
                    return False
            else:
                for key in _keys_of(member, value) or ():
                    uses[key] = uses.get(key, 0) + 1
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def _needed(condition: Mapping[str, Any], uses: Mapping[Key, int]) -> Keys | None:
    """The rarest set of keys of which a user must have one; None if everybody must be looked at."""
    best: Keys | None = None
    asks = False
    for member, value in condition.items():
        if member == "everyone" and value is False:
            continue  # as if absent
        asks = True
        for keys in _member_needs(member, value, uses):
            if best is None or sum(map(uses.__getitem__, keys)) < sum(map(uses.__getitem__, best)):
                best = keys
    return best if asks else []


def _member_needs(member: str, value: Any, uses: Mapping[Key, int]) -> Iterator[Keys]:
    """Sets of keys, each of which the member needs one of."""
    if member == "and":
        if not value:
            yield []
        for part in value:
            keys = _needed(part, uses)
            if keys is not None:
                yield keys
    elif member == "or":
        parts = [_needed(part, uses) for part in value]
        if None not in parts:
            yield list(dict.fromkeys(key for keys in parts for key in keys or ()))
    else:
        own = _keys_of(member, value)
        if own is not None:
            yield own


def _keys_of(member: str, value: Any) -> Keys | None:
    match member:
        case "domain":
            return [("domain", domain_key(value))]
        case "uid":
            return [("uid", uid) for uid in value]
        case "tag" | "purchase":
            return [(member, value)]
        case "ip":
            return [("ip", _network_key(value))]
    return None


@lru_cache(maxsize=4096)
def _network_key(text: str) -> NetworkKey:
    host, _, mask = text.partition("/")
    if ":" not in host:  # the common case, much quicker than making a network of it
        a, b, c, d = map(int, host.split("."))
        prefix = int(mask or 32)
        return 4, prefix, (a << 24 | b << 16 | c << 8 | d) >> (32 - prefix)
    network = parse_network(text)
    shift = network.max_prefixlen - network.prefixlen
    return network.version, network.prefixlen, int(network.network_address) >> shift
