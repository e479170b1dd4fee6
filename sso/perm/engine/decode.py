"""From stored JSON to facts. What was stored was checked by `input`, so this only converts, and opens nothing by it."""

from collections.abc import Iterable, Mapping
from typing import Any

from sso.core.domains import domain_key
from sso.perm.engine.conditions import NOBODY, Condition
from sso.perm.engine.facts import (
    Assignment,
    Group,
    GroupAction,
    GroupCondition,
    Membership,
    OwnRecord,
    ProjectApplication,
    ProjectFacts,
)
from sso.perm.errors import InvalidInput
from sso.perm.input.conditions import read_condition


def assignments(items: Iterable[Any]) -> tuple[Assignment, ...]:
    """Role assignments: names, or objects ``{name, expired, ttl}``."""
    return tuple(
        Assignment(item)
        if isinstance(item, str)
        else Assignment(item["name"], item.get("expired") or 0, item.get("ttl") or 0)
        for item in items
    )


def own_record(stored: Mapping[str, Any]) -> OwnRecord:
    return OwnRecord(
        roles=assignments(stored.get("roles") or ()),
        public_data=stored.get("public_data") or {},
        private_data=stored.get("private_data") or {},
        secret_data=stored.get("secret_data") or {},
        login=stored.get("login") or {},
    )


def membership(stored: Mapping[str, Any]) -> Membership:
    """The ``roles`` of one user in a membership: ``{project: [..], applications: {<app_id>: [..]}, …}``."""
    return Membership(
        project=assignments(stored.get("project") or ()),
        applications={int(key): assignments(items) for key, items in (stored.get("applications") or {}).items()},
        services={int(key): assignments(items) for key, items in (stored.get("services") or {}).items()},
        groups={key: assignments(items) for key, items in (stored.get("groups") or {}).items()},
    )


def services(stored: Mapping[str, Any]) -> dict[int, tuple[GroupAction, ...]]:
    """``settings.services`` of a project."""
    return {
        int(key): tuple(
            GroupAction(item["group_id"], item["role"], item["action"]) for item in entry.get("groups") or ()
        )
        for key, entry in stored.items()
    }


def group(
    group_id: str,
    users: Iterable[str],
    conditions: Iterable[Mapping[str, Any]],
    tags: Iterable[str] = (),
    title: str = "",
) -> Group:
    read = tuple(GroupCondition(item["title"], _condition(item["condition"])) for item in conditions)
    return Group(group_id, frozenset(users), read, tuple(tags), title)


def project(
    stored: Mapping[str, Any],
    applications: Iterable[ProjectApplication] = (),
    groups: Iterable[Group] = (),
    member_roles: Mapping[str, Any] | None = None,
) -> ProjectFacts:
    """A project record with its ``allow`` and ``disallow`` lists, what belongs to it, and the user's roles in it."""
    settings = stored.get("settings") or {}
    return ProjectFacts(
        id=stored["id"],
        title=stored.get("title") or "",
        aliases=tuple(stored.get("aliases") or ()),
        removed=bool(stored.get("removed")),
        allowed_domains=frozenset(map(domain_key, settings.get("allowed_domains") or ())),
        services=services(settings.get("services") or {}),
        allow=tuple(stored.get("allow") or ()),
        disallow=tuple(stored.get("disallow") or ()),
        applications=tuple(applications),
        groups=tuple(groups),
        membership=membership(member_roles or {}),
    )


def _condition(stored: Any) -> Condition:
    try:
        return read_condition(stored, ip_allowed=False)
    except InvalidInput:
        return NOBODY
