"""Tests conditions of groups and roles: whether they hold for a user at an address, and which of their members decide.

Nothing is stored or changed.
"""

from collections.abc import Sequence
from typing import Any

from sso.perm.engine.conditions import compare, deciding_members, holds
from sso.perm.engine.decode import decode_condition
from sso.perm.engine.user_facts import UserFacts
from sso.perm.input.conditions import check_condition


def judge_condition(condition: object, user: UserFacts, title: str = "") -> dict[str, Any]:
    """Returns the outcome and every comparison. Raises FieldError for a malformed condition."""
    check_condition(condition)
    decoded = decode_condition(condition)
    deciding = set(deciding_members(decoded, user))
    return {
        "title": title,
        "holds": holds(decoded, user),
        "compared": [{**item._asdict(), "decides": item.member in deciding} for item in compare(decoded, user)],
    }


def judge_group(group: dict[str, Any], user: UserFacts) -> dict[str, Any]:
    """Returns whether the user is a member of the group: was added to it, or meets one of its conditions."""
    outcome = judge_conditions(group["conditions"], user)
    is_added = user.user_id in group["users"]
    return {**outcome, "holds": is_added or outcome["holds"], "added": is_added}


def judge_conditions(conditions: Sequence[dict[str, Any]], user: UserFacts) -> dict[str, Any]:
    judged = [judge_condition(item["condition"], user, item["title"]) for item in conditions]
    return {"holds": any(item["holds"] for item in judged), "conditions": judged}
