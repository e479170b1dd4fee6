"""Conditions of roles and groups (§2.7), and whether a condition holds for a user at a moment.

The members of one object combine with AND. A condition without requirements (``{}``, ``and: []``, ``or: []``) holds
for no user, so that an editing mistake cannot grant access.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sso.core.net import Network, contains
from sso.perm.engine.rules import earliest_end, latest_end
from sso.perm.engine.time_window_text import window_text
from sso.perm.engine.time_windows import FOREVER, TimeWindow, When
from sso.perm.engine.user_facts import UserFacts


class Condition(NamedTuple):
    domain: str | None = None  # in the form of `domain_key`
    uid: frozenset[str] | None = None
    tag: str | None = None
    ip: Network | None = None
    purchase: str | None = None
    time: TimeWindow | None = None
    everyone: bool = False  # false is the same as absent
    all_of: "tuple[Condition, ...] | None" = None
    any_of: "tuple[Condition, ...] | None" = None


NEVER = Condition()  # holds for no user


def holds(condition: Condition, user: UserFacts, when: When) -> bool:
    if not has_attributes(condition, user) or condition == NEVER:
        return False
    return (
        (condition.ip is None or _inside(condition.ip, user))
        and (condition.time is None or condition.time.includes(when))
        and (
            condition.all_of is None
            or (condition.all_of != () and all(holds(part, user, when) for part in condition.all_of))
        )
        and (condition.any_of is None or any(holds(part, user, when) for part in condition.any_of))
    )


def end_of(condition: Condition, user: UserFacts, now: int) -> int:
    """Returns when a condition that holds ends by its time windows; 0 if it does not.

    It may hold longer if another part of an ``or`` begins to hold before that.
    """
    ends = [end_of(part, user, now) for part in condition.all_of or ()]
    if condition.time is not None and (until := condition.time.period(now).until) < FOREVER:
        ends.append(until)
    if condition.any_of is not None:
        ends.append(latest_end(end_of(part, user, now) for part in condition.any_of if holds(part, user, now)))
    return earliest_end(ends)


def time_windows(condition: Condition) -> Iterator[TimeWindow]:
    """Returns the windows that occur anywhere in the condition."""
    if condition.time is not None:
        yield condition.time
    for part in (*(condition.all_of or ()), *(condition.any_of or ())):
        yield from time_windows(part)


def has_attributes(condition: Condition, user: UserFacts) -> bool:
    """Returns whether the user meets the condition's own requirements, without those on the address and the time
    and those of its parts."""
    return (
        (condition.domain is None or condition.domain == user.domain)
        and (condition.uid is None or user.user_id in condition.uid)
        and (condition.tag is None or condition.tag in user.tags)
        and (condition.purchase is None or condition.purchase in user.purchases)
    )


def required_attributes(condition: Condition) -> frozenset[tuple[str, str]] | None:
    """Returns the attributes, such as ``("tag", "vip")``, of which a user must have one for the condition to hold.

    Returns None if users without any of these attributes may meet it, and an empty set if no user does. Requirements
    on the address count as not met.
    """
    alternatives: list[frozenset[tuple[str, str]]] = [
        frozenset(((name, value),))
        for name, value in (("domain", condition.domain), ("tag", condition.tag), ("purchase", condition.purchase))
        if value is not None
    ]
    if condition.uid is not None:
        alternatives.append(frozenset(("uid", user_id) for user_id in condition.uid))
    if condition == NEVER or condition.ip is not None or condition.all_of == () or condition.any_of == ():
        alternatives.append(frozenset())
    alternatives += [part for part in map(required_attributes, condition.all_of or ()) if part is not None]
    parts = [required_attributes(part) for part in condition.any_of or ()]
    if parts and None not in parts:
        alternatives.append(frozenset(attribute for part in parts for attribute in part or ()))
    return min(alternatives, key=_breadth) if alternatives else None


def count_nodes(condition: Condition) -> int:
    """Returns how many objects the condition consists of. Each user id and weekly window counts like an object."""
    parts = (*(condition.all_of or ()), *(condition.any_of or ()))
    windows = len(condition.time.weekly) if condition.time is not None else 0
    return 1 + len(condition.uid or ()) + windows + sum(map(count_nodes, parts))


def named_users(condition: Condition) -> frozenset[str]:
    """Returns the user ids that occur anywhere in the condition."""
    parts = (*(condition.all_of or ()), *(condition.any_of or ()))
    return frozenset(condition.uid or ()).union(*map(named_users, parts))


def _breadth(attributes: frozenset[tuple[str, str]]) -> tuple[bool, int]:
    """Returns how many users may have one of the attributes, roughly: ids name few."""
    return any(name != "uid" for name, _ in attributes), len(attributes)


class Comparison(NamedTuple):
    """One comparison of an explanation."""

    member: str  # with its path, such as ``or[1].domain``
    asked: Any
    found: Any  # of a time window, when it ends or next begins
    holds: bool


def compare(condition: Condition, user: UserFacts, now: int, path: str = "") -> tuple[Comparison, ...]:
    """Every comparison of a condition with its outcome. Tags and purchases are shown only as present or absent."""
    comparisons = [*_own_comparisons(condition, user, now, path)]
    for member, parts in (("and", condition.all_of), ("or", condition.any_of)):
        for index, part in enumerate(parts or ()):
            comparisons.extend(compare(part, user, now, f"{path}{member}[{index}]."))
    return tuple(comparisons)


def deciding_members(condition: Condition, user: UserFacts, now: int, path: str = "") -> tuple[str, ...]:
    """Returns the members, as `compare` names them, that settle whether the condition holds.

    If it holds, these are all that are required, and of an ``or`` the first part that holds. If it does not, these are
    those of the first requirement that is not met; of an ``or``, those of all its parts.
    """
    own = _own_comparisons(condition, user, now, path)
    all_of = [(part, f"{path}and[{index}].") for index, part in enumerate(condition.all_of or ())]
    any_of = [(part, f"{path}or[{index}].") for index, part in enumerate(condition.any_of or ())]
    if holds(condition, user, now):
        required = [*all_of, *next(([item] for item in any_of if holds(item[0], user, now)), [])]
        nested = [member for part, place in required for member in deciding_members(part, user, now, place)]
        return (*(item.member for item in own), *nested)
    for item in own:
        if not item.holds:
            return (item.member,)
    for part, place in all_of:
        if not holds(part, user, now):
            return deciding_members(part, user, now, place)
    return tuple(member for part, place in any_of for member in deciding_members(part, user, now, place))


def _own_comparisons(condition: Condition, user: UserFacts, now: int, path: str) -> tuple[Comparison, ...]:
    """Returns the comparisons without those of the parts of ``and`` and ``or``."""
    if condition == NEVER:
        return (Comparison(f"{path}condition", "nothing", None, False),)
    comparisons: list[Comparison] = []

    def add(member: str, asked: Any, actual: Any, outcome: bool) -> None:
        comparisons.append(Comparison(path + member, asked, actual, outcome))

    if condition.domain is not None:
        add("domain", condition.domain, user.domain, condition.domain == user.domain)
    if condition.uid is not None:
        add("uid", f"one of {len(condition.uid)}", user.user_id, user.user_id in condition.uid)
    if condition.tag is not None:
        has_tag = condition.tag in user.tags
        add("tag", condition.tag, has_tag, has_tag)
    if condition.purchase is not None:
        has_purchase = condition.purchase in user.purchases
        add("purchase", condition.purchase, has_purchase, has_purchase)
    if condition.ip is not None:
        address = None if user.address is None else str(user.address)
        add("ip", str(condition.ip), address, _inside(condition.ip, user))
    if condition.time is not None:
        period = condition.time.period(now)
        change = period.until if period.until < FOREVER else None
        add("time", window_text(condition.time), change, period.is_open)
    if condition.everyone:
        add("everyone", True, True, True)
    for member, parts in (("and", condition.all_of), ("or", condition.any_of)):
        if parts == ():
            add(member, "nothing", None, False)
    return tuple(comparisons)


def _inside(network: Network, user: UserFacts) -> bool:
    return user.address is not None and contains((network,), user.address)
