"""Permissions of a user: what the user may do, and why."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

from sso.client.call import (
    ApiCall,
    ListCall,
    Record,
    ServerAnswer,
    if_match_header,
    read_data,
    read_page,
    read_record,
    without_none,
)

CENTRAL_APPLICATION = 1
MAX_QUESTIONS = 100  # in one request


def effective_permissions(
    user_id: str, application_id: int = CENTRAL_APPLICATION, kind: str = "list", at: int | None = None
) -> ApiCall[Any]:
    """The permissions as list, list_short, tree or roles; ``at`` is a past moment in Unix seconds."""
    return ApiCall("GET", _path(user_id), read_data, without_none({**_query(application_id, at), "type": kind}))


def explain_rule(
    user_id: str, rule: str, application_id: int = CENTRAL_APPLICATION, at: int | None = None
) -> ApiCall[dict[str, Any]]:
    """Why the user has the rule, or the most likely reasons why not: ``held``, with ``sources`` or ``reasons``."""
    return ApiCall("GET", _path(user_id), _read_explanation, {**_query(application_id, at), "explain": rule})


def check_rule(
    user_id: str, rule: str, application_id: int = CENTRAL_APPLICATION, at: int | None = None
) -> ApiCall[bool]:
    """Whether the user has the rule."""
    return ApiCall("GET", _path(user_id), _is_held, {**_query(application_id, at), "explain": rule})


class RuleQuestion(NamedTuple):
    """Whether a user has a rule at an application."""

    user_id: str
    application_id: int
    rule: str


def check_calls(questions: Sequence[RuleQuestion | tuple[str, int, str]]) -> Iterator[ApiCall[list[bool]]]:
    """The requests that answer these questions, with up to 100 each. What may not be asked is answered with False."""
    for start in range(0, len(questions), MAX_QUESTIONS):
        evaluations = [
            {
                "subject": {"type": "user", "id": user_id},
                "action": {"name": rule},
                "resource": {"type": "application", "id": str(application_id)},
            }
            for user_id, application_id, rule in questions[start : start + MAX_QUESTIONS]
        ]
        read = partial(_read_decisions, len(evaluations))
        body = {"evaluations": evaluations}
        yield ApiCall("POST", "/access/v1/evaluations", read, json=body, only_asks=True)


def rule_holders(
    application_id: int,
    rule: str,
    *,
    project_id: str | None = None,
    at: int | None = None,
    reason: bool = False,
    limit: int | None = None,
) -> ListCall:
    """The users who have the rule: ``user_id``, ``params``, ``expires``, and ``reason`` if it is asked for."""
    query = {"rule": rule, "project_id": project_id, "at": at, "reason": _flag(reason), "limit": limit}
    return ListCall("GET", f"/api/admin/applications/{application_id}/who", read_page, without_none(query))


def user_rules(
    user_id: str,
    application_id: int | None = None,
    rule: str | None = None,
    *,
    at: int | None = None,
    reason: bool = False,
    limit: int | None = None,
) -> ListCall:
    """The rules of the user everywhere, or at one application; with ``rule``, the applications where the user has
    it."""
    query = {"application_id": application_id, "rule": rule, "at": at, "reason": _flag(reason), "limit": limit}
    return ListCall("GET", f"/api/admin/users/{quote(user_id, safe='')}/can", read_page, without_none(query))


def read_assignments(user_id: str, application_id: int) -> ApiCall[Record]:
    """What is stored for the user at the application: ``roles``, and the user's own data."""
    return ApiCall("GET", _path(user_id), _read_stored, _query(application_id, None))


def assign_roles(
    user_id: str, application_id: int, assigned: Sequence[Any], *, if_match: str | None = None
) -> ApiCall[Record]:
    """Replaces the roles that are assigned to the user: names, or objects with name, expired and ttl."""
    body = {"application_id": application_id, "roles": list(assigned)}
    return ApiCall("PATCH", _path(user_id), read_record, json=body, headers=if_match_header(if_match))


def read_permissions(application_id: int, user_id: str | None = None, kind: str = "list") -> ApiCall[Any]:
    """The same, as the endpoint of applications has it (POST /api/permissions/meta/data)."""
    data = without_none({"user_id": user_id, "type": kind})
    body = {"action": "get", "application_id": application_id, "data": data}
    return ApiCall("POST", "/api/permissions/meta/data", read_data, json=body)


def _path(user_id: str) -> str:
    return f"/api/admin/users/{quote(user_id, safe='')}/permissions"


def _flag(value: bool) -> int | None:
    return 1 if value else None


def _query(application_id: int, at: int | None) -> dict[str, Any]:
    return without_none({"application_id": application_id, "at": at})


def _read_explanation(answer: ServerAnswer) -> dict[str, Any]:
    explanation = answer.body["explain"]
    assert isinstance(explanation, dict)
    return explanation


def _read_stored(answer: ServerAnswer) -> Record:
    record = Record(answer.body.get("record", {}))
    record.etag = answer.etag
    return record


def _is_held(answer: ServerAnswer) -> bool:
    return bool(_read_explanation(answer)["held"])


def _read_decisions(number: int, answer: ServerAnswer) -> list[bool]:
    decisions = [item["decision"] for item in answer.body["evaluations"]]
    if len(decisions) != number or not all(isinstance(decision, bool) for decision in decisions):
        raise ValueError("the answers do not fit the questions")
    return decisions
