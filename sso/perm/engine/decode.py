"""Convert stored JSON to the types of the engine.

`sso.perm.input` checks records before they are stored, so this module only converts. A condition that is malformed all
the same holds for no user.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import orjson

from sso.core.domains import domain_key
from sso.core.net import parse_network
from sso.perm.engine.conditions import NEVER, Condition, time_windows
from sso.perm.engine.facts import Group, GroupAction, GroupCondition, Membership, ProjectApplication, ProjectFacts
from sso.perm.engine.records import Assignment, OwnRecord
from sso.perm.engine.time_windows import (
    DAYS,
    FOREVER,
    MAX_MOMENT,
    TimeWindow,
    WeeklyHours,
    clock_minute,
    time_zone,
)


def decode_condition(stored: object, *, ip_allowed: bool = True) -> Condition:
    """Returns a stored condition.

    Returns `NEVER` if it is malformed, or asks for an address where that is not allowed.
    """
    try:
        return _condition(stored, ip_allowed)
    except ValueError:
        return NEVER


def _condition(stored: object, ip_allowed: bool) -> Condition:
    if not isinstance(stored, dict):
        raise ValueError("not an object")  # noqa: TRY004 - the caller handles one kind of error
    members: dict[str, Any] = {}
    for name, value in stored.items():
        match name, value:
            case "domain", str() if value:
                members["domain"] = domain_key(value)
            case "uid", list() if all(isinstance(user_id, str) for user_id in value):
                members["uid"] = frozenset(value)
            case "tag" | "purchase", str() if value:
                members[name] = value
            case "ip", str() if ip_allowed:
                members["ip"] = parse_network(value)
            case "time", dict():
                members["time"] = _time_window(orjson.dumps(value))
            case "everyone", bool():
                members["everyone"] = value
            case "and", list():
                members["all_of"] = tuple(_condition(part, ip_allowed) for part in value)
            case "or", list():
                members["any_of"] = tuple(_condition(part, ip_allowed) for part in value)
            case _:
                raise ValueError("unknown member or value")
    return Condition(**members)


@lru_cache(maxsize=4096)
def _time_window(stored: bytes) -> TimeWindow | None:
    """Returns the window, which remembers its period, so equal ones are one object.

    Returns None if it requires nothing: that is the same as no window.
    """
    value = orjson.loads(stored)
    starts, ends, items = value.get("from", 0), value.get("until", FOREVER), value.get("weekly")
    if items is None and "from" not in value and "until" not in value:
        return None
    zone = value.get("zone", "UTC")
    try:
        time_zone(zone)
        weekly = tuple(_weekly_hours(item) for item in items or ())
    except (AttributeError, TypeError) as error:
        raise ValueError("not a time window") from error
    if items is not None and (not items or type(items) is not list):
        raise ValueError("not a time window")
    if not (type(starts) is type(ends) is int and 0 <= starts <= MAX_MOMENT and ends >= 0):
        raise ValueError("not a time window")
    return TimeWindow(starts, ends, weekly, zone)


def _weekly_hours(item: Mapping[str, Any]) -> WeeklyHours:
    days = frozenset(map(DAYS.index, item.get("days", DAYS)))
    return WeeklyHours(days, clock_minute(item.get("from", "00:00")), clock_minute(item.get("to", "24:00")))


def decode_assignments(items: Iterable[Any]) -> tuple[Assignment, ...]:
    """Returns role assignments: names, or objects ``{name, expired, ttl}``."""
    return tuple(
        Assignment(item)
        if isinstance(item, str)
        else Assignment(item["name"], item.get("expired") or 0, item.get("ttl") or 0)
        for item in items
    )


def decode_own_record(stored: Mapping[str, Any]) -> OwnRecord:
    return OwnRecord(
        roles=decode_assignments(stored.get("roles") or ()),
        public_data=stored.get("public_data") or {},
        private_data=stored.get("private_data") or {},
        secret_data=stored.get("secret_data") or {},
        login=stored.get("login") or {},
    )


def decode_membership(stored: Mapping[str, Any]) -> Membership:
    """Returns the roles of one user in a project: ``{project: [..], applications: {<app_id>: [..]}, …}``."""
    return Membership(
        project=decode_assignments(stored.get("project") or ()),
        applications={int(key): decode_assignments(items) for key, items in (stored.get("applications") or {}).items()},
        services={int(key): decode_assignments(items) for key, items in (stored.get("services") or {}).items()},
        groups={key: decode_assignments(items) for key, items in (stored.get("groups") or {}).items()},
    )


def decode_services(stored: Mapping[str, Any]) -> dict[int, tuple[GroupAction, ...]]:
    """``settings.services`` of a project."""
    return {
        int(key): tuple(
            GroupAction(item["group_id"], item["role"], item["action"]) for item in entry.get("groups") or ()
        )
        for key, entry in stored.items()
    }


def decode_group(
    group_id: str,
    users: Iterable[str],
    conditions: Iterable[Mapping[str, Any]],
    tags: Iterable[str] = (),
    title: str = "",
) -> Group:
    decoded = tuple(
        GroupCondition(item["title"], decode_condition(item["condition"], ip_allowed=False)) for item in conditions
    )
    windows = tuple(window for item in decoded for window in time_windows(item.condition))
    return Group(group_id, frozenset(users), decoded, tuple(tags), title, windows)


def decode_project(
    stored: Mapping[str, Any],
    applications: Iterable[ProjectApplication] = (),
    groups: Iterable[Group] = (),
    member_roles: Mapping[str, Any] | None = None,
) -> ProjectFacts:
    """Returns a project record with its ``allow`` and ``disallow`` lists, and the user's roles in the project."""
    settings = stored.get("settings") or {}
    return ProjectFacts(
        id=stored["id"],
        title=stored.get("title") or "",
        aliases=tuple(stored.get("aliases") or ()),
        removed=bool(stored.get("removed")),
        allowed_domains=frozenset(map(domain_key, settings.get("allowed_domains") or ())),
        services=decode_services(settings.get("services") or {}),
        allow=tuple(stored.get("allow") or ()),
        disallow=tuple(stored.get("disallow") or ()),
        applications=tuple(applications),
        groups=tuple(groups),
        membership=decode_membership(member_roles or {}),
    )
