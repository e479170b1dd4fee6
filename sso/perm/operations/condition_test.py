"""Tests conditions of groups and roles: whether they hold for a user at an address, and which of their members decide.

Nothing is stored or changed.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from sso.core.domains import domain_key
from sso.core.net import Address
from sso.perm.engine.conditions import compare, deciding_members, holds
from sso.perm.engine.decode import decode_condition
from sso.perm.engine.user_facts import UserFacts
from sso.perm.input.conditions import check_condition


class ConditionUser(Protocol):
    """The parts of an account that conditions compare."""

    @property
    def user_id(self) -> str: ...

    @property
    def login(self) -> str: ...

    @property
    def tags(self) -> tuple[str, ...]: ...

    @property
    def purchases(self) -> tuple[str, ...]: ...


def assumed_facts(
    user: ConditionUser | None,
    domain: str | None,
    tags: Sequence[str] | None,
    purchases: Sequence[str] | None,
    address: Address | None,
) -> UserFacts:
    """Returns the facts to compare with: those of the user, if there is one, except those that are given."""
    facts = UserFacts.from_login(user.user_id, user.login, user.tags, user.purchases) if user else UserFacts("")
    return UserFacts(
        facts.user_id,
        facts.domain if domain is None else domain_key(domain),
        facts.tags if tags is None else frozenset(tags),
        facts.purchases if purchases is None else frozenset(purchases),
        address,
    )


def facts_json(facts: UserFacts) -> dict[str, Any]:
    return {
        "user_id": facts.user_id,
        "domain": facts.domain,
        "tags": sorted(facts.tags),
        "purchases": sorted(facts.purchases),
        "address": "" if facts.address is None else str(facts.address),
    }


def judge_condition(condition: object, user: UserFacts, now: int, title: str = "") -> dict[str, Any]:
    """Returns the outcome and every comparison. Raises FieldError for a malformed condition."""
    check_condition(condition)
    decoded = decode_condition(condition)
    deciding = set(deciding_members(decoded, user, now))
    return {
        "title": title,
        "holds": holds(decoded, user, now),
        "compared": [{**item._asdict(), "decides": item.member in deciding} for item in compare(decoded, user, now)],
    }


def judge_group(group: dict[str, Any], user: UserFacts, now: int) -> dict[str, Any]:
    """Returns whether the user is a member of the group: was added to it, or meets one of its conditions."""
    outcome = judge_conditions(group["conditions"], user, now)
    is_added = user.user_id in group["users"]
    return {**outcome, "holds": is_added or outcome["holds"], "added": is_added}


def judge_conditions(conditions: Sequence[dict[str, Any]], user: UserFacts, now: int) -> dict[str, Any]:
    judged = [judge_condition(item["condition"], user, now, item["title"]) for item in conditions]
    return {"holds": any(item["holds"] for item in judged), "conditions": judged}
