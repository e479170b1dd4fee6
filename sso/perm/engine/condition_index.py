"""Find the roles whose condition holds for a user without evaluating the conditions of all roles.

Most conditions hold only for users who have a certain attribute: a domain, an id, a tag, a purchase, an address in a
network. The index files each role under the rarest attribute that its condition requires, so that the few attributes of
a user lead to the few roles worth evaluating. A role that requires no attribute is evaluated for every user; a role
whose condition can hold for no user is not filed at all.

A condition that asks for one attribute and nothing else is met by all who have it. For the others the index only
narrows the search: `find` decodes and evaluates each candidate's condition in full. The index therefore works on
conditions as they are stored and does not decode a thousand of them when three matter.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from sso.core.domains import domain_key
from sso.core.net import parse_network
from sso.perm.engine.conditions import Condition, holds
from sso.perm.engine.time_windows import When
from sso.perm.engine.user_facts import UserFacts

NetworkKey: TypeAlias = tuple[int, int, int]  # IP version, prefix length, the bits of the prefix
Key: TypeAlias = tuple[str, str | NetworkKey]  # an attribute of a user
Keys: TypeAlias = list[Key]  # the condition holds only for users with one of these; [] holds for no user


_ATTRIBUTES = frozenset(("domain", "tag", "purchase"))


class ConditionIndex:
    """``stored`` holds the conditions by role name; ``decode`` returns the condition of a role, ready to evaluate."""

    def __init__(self, stored: Mapping[str, Mapping[str, Any]], decode: Callable[[str], Condition]) -> None:
        self._decode = decode
        self._met_by_key: dict[Key, list[str]] = {}
        self._candidates_by_key: dict[Key, list[str]] = {}
        self._prefix_lengths: dict[int, set[int]] = {4: set(), 6: set()}
        self._always_evaluated: list[str] = []
        uses: dict[Key, int] = {}
        well_formed = {name: condition for name, condition in stored.items() if _count_uses(condition, uses)}
        for name, condition in well_formed.items():
            keys = _required_keys(condition, uses)
            if keys is None:
                self._always_evaluated.append(name)
                continue
            is_met = len(condition) == 1 and next(iter(condition)) in _ATTRIBUTES
            roles_by_key = self._met_by_key if is_met else self._candidates_by_key
            for key in keys:
                roles_by_key.setdefault(key, []).append(name)
                if isinstance(key[1], tuple):
                    version, prefix_length, _ = key[1]
                    self._prefix_lengths[version].add(prefix_length)

    def find(self, user: UserFacts, when: When) -> frozenset[str]:
        """Returns the names of the roles whose condition holds for the user."""
        met: set[str] = set()
        candidates = set(self._always_evaluated)
        if self._met_by_key or self._candidates_by_key:
            for key in self._user_keys(user):
                if names := self._met_by_key.get(key):
                    met.update(names)
                if names := self._candidates_by_key.get(key):
                    candidates.update(names)
        met.update(name for name in candidates if holds(self._decode(name), user, when))
        return frozenset(met)

    def _user_keys(self, user: UserFacts) -> Iterator[Key]:
        yield "domain", user.domain
        yield "uid", user.user_id
        for tag in user.tags:
            yield "tag", tag
        for purchase in user.purchases:
            yield "purchase", purchase
        if user.address is not None:
            address = getattr(user.address, "ipv4_mapped", None) or user.address
            number, bits = int(address), address.max_prefixlen
            for prefix_length in self._prefix_lengths[address.version]:
                yield "ip", (address.version, prefix_length, number >> (bits - prefix_length))


def _count_uses(condition: Mapping[str, Any], uses: dict[Key, int]) -> bool:
    """Counts how many conditions ask for each key, to find the rare ones. Returns False for a malformed condition.

    Conditions are checked when they are saved; a malformed one is not filed, so it holds for no user.
    """
    try:
        for member, value in condition.items():
            if member in ("and", "or"):
                if not all(_count_uses(part, uses) for part in value):
                    return False
            else:
                for key in _member_keys(member, value) or ():
                    uses[key] = uses.get(key, 0) + 1
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def _required_keys(condition: Mapping[str, Any], uses: Mapping[Key, int]) -> Keys | None:
    """Returns the rarest set of keys of which a user must have one, or None if the condition requires no key."""
    rarest: Keys | None = None
    has_requirement = False
    for member, value in condition.items():
        if member == "everyone" and value is False:
            continue  # the same as absent
        has_requirement = True
        for keys in _alternatives(member, value, uses):
            if rarest is None or sum(map(uses.__getitem__, keys)) < sum(map(uses.__getitem__, rarest)):
                rarest = keys
    return rarest if has_requirement else []


def _alternatives(member: str, value: Any, uses: Mapping[Key, int]) -> Iterator[Keys]:
    """Sets of keys; of each set, a user must have at least one key for the member to hold."""
    if member == "and":
        if not value:
            yield []
        for part in value:
            part_keys = _required_keys(part, uses)
            if part_keys is not None:
                yield part_keys
    elif member == "or":
        parts = [_required_keys(part, uses) for part in value]
        if None not in parts:
            yield list(dict.fromkeys(key for keys in parts for key in keys or ()))
    else:
        keys = _member_keys(member, value)
        if keys is not None:
            yield keys


def _member_keys(member: str, value: Any) -> Keys | None:
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
    if ":" not in host:  # IPv4, the common case, is much quicker without a network object
        a, b, c, d = map(int, host.split("."))
        prefix_length = int(mask or 32)
        return 4, prefix_length, (a << 24 | b << 16 | c << 8 | d) >> (32 - prefix_length)
    network = parse_network(text)
    shift = network.max_prefixlen - network.prefixlen
    return network.version, network.prefixlen, int(network.network_address) >> shift
