"""Conditions of roles and groups (§2.7), read already (see `input.conditions`), and whether one holds for a user.

Members of one object combine with AND. What asks for nothing (``{}``, ``and: []``, ``or: []``) holds for nobody: an
accident of editing must not open a door.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from sso.core.net import Network, contains

if TYPE_CHECKING:
    from sso.perm.engine.facts import UserFacts


class Condition(NamedTuple):
    domain: str | None = None  # as `domain_key` gives it
    uid: frozenset[str] | None = None
    tag: str | None = None
    ip: Network | None = None
    purchase: str | None = None
    everyone: bool = False  # false is as if absent
    all_of: "tuple[Condition, ...] | None" = None
    any_of: "tuple[Condition, ...] | None" = None


NOBODY = Condition()


def holds(condition: Condition, user: "UserFacts") -> bool:
    if condition == NOBODY:
        return False
    return (
        (condition.domain is None or condition.domain == user.domain)
        and (condition.uid is None or user.user_id in condition.uid)
        and (condition.tag is None or condition.tag in user.tags)
        and (condition.purchase is None or condition.purchase in user.purchases)
        and (condition.ip is None or _inside(condition.ip, user))
        and (condition.all_of is None or (condition.all_of != () and all(holds(c, user) for c in condition.all_of)))
        and (condition.any_of is None or any(holds(c, user) for c in condition.any_of))
    )


class Compared(NamedTuple):
    """One comparison, for people who ask why."""

    member: str  # with its place, such as ``or[1].domain``
    asked: Any
    found: Any
    holds: bool


def compare(condition: Condition, user: "UserFacts", where: str = "") -> tuple[Compared, ...]:
    """Every comparison of a condition with its outcome. Of tags and purchases it tells only whether they exist."""
    if condition == NOBODY:
        return (Compared(f"{where}condition", "nothing", None, False),)
    found: list[Compared] = []

    def note(member: str, asked: Any, actual: Any, outcome: bool) -> None:
        found.append(Compared(where + member, asked, actual, outcome))

    if condition.domain is not None:
        note("domain", condition.domain, user.domain, condition.domain == user.domain)
    if condition.uid is not None:
        note("uid", f"one of {len(condition.uid)}", user.user_id, user.user_id in condition.uid)
    if condition.tag is not None:
        note("tag", condition.tag, condition.tag in user.tags, condition.tag in user.tags)
    if condition.purchase is not None:
        has = condition.purchase in user.purchases
        note("purchase", condition.purchase, has, has)
    if condition.ip is not None:
        address = None if user.address is None else str(user.address)
        note("ip", str(condition.ip), address, _inside(condition.ip, user))
    if condition.everyone:
        note("everyone", True, True, True)
    for word, parts in (("and", condition.all_of), ("or", condition.any_of)):
        if parts == ():
            note(word, "nothing", None, False)
        for at, part in enumerate(parts or ()):
            found.extend(compare(part, user, f"{where}{word}[{at}]."))
    return tuple(found)


def _inside(network: Network, user: "UserFacts") -> bool:
    return user.address is not None and contains((network,), user.address)
