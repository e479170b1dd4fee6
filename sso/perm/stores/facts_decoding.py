"""Converts rows of `facts_sql` to the types of the engine."""

from typing import Any

import orjson

from sso.core.ban import read_bans
from sso.core.net import Address
from sso.db.transaction import Row, Runner, run_pure
from sso.perm.engine.decode import decode_group, decode_own_record, decode_project
from sso.perm.engine.facts import Group, PermissionFacts, ProjectApplication, ProjectFacts
from sso.perm.engine.user_facts import UserFacts
from sso.perm.stores.compilation import LARGE_BYTES


async def decode_row(runner: Runner, row: Row, user_id: str, address: Address | None) -> PermissionFacts:
    """Returns the facts about a user at this address. Large ones are decoded in a thread of ``runner``."""
    return await run_pure(runner, count_characters(row) > LARGE_BYTES, decode_facts, row, user_id, address)


def count_characters(row: Row) -> int:
    """Returns the length of the columns that may be large."""
    return len(row["record"] or "") + len(row["home"] or "") + len(row["projects"] or "")


def decode_facts(row: Row, user_id: str, address: Address | None) -> PermissionFacts:
    user = UserFacts.from_login(user_id, row["login"], tuple(row["tags"] or ()), tuple(row["purchases"] or ()), address)
    record, home, projects = decode_json(row["record"]), decode_json(row["home"]), decode_json(row["projects"])
    return PermissionFacts(
        user=user,
        own=decode_own_record({**(record or {}), "roles": decode_json(row["roles"])}),
        removed=row["removed"],
        home=_project(home, user_id) if home else None,
        projects=tuple(_project(project, user_id) for project in projects or ()),
        bans=read_bans(decode_json(row["bans"])),
    )


def decode_json(text: str | None) -> Any:
    """Returns the value of a column of JSON, which is selected as text."""
    return None if text is None else orjson.loads(text)


def _project(stored: dict[str, Any], user_id: str) -> ProjectFacts:
    return decode_project(
        stored,
        applications=[ProjectApplication(*item) for item in stored["applications"]],
        groups=[_group(item, user_id) for item in stored["groups"]],
        member_roles=member_roles(stored["members"]),
    )


def _group(item: list[Any], user_id: str) -> Group:
    group_id, title, conditions, tags, is_member = item
    return decode_group(group_id, [user_id] if is_member else [], conditions, tags, title)


def member_roles(rows: list[list[Any]]) -> dict[str, Any]:
    """Returns the roles of one member, by level and resource, from rows (level, resource, role, expired, ttl)."""
    roles: dict[str, Any] = {"project": [], "applications": {}, "services": {}, "groups": {}}
    for level, resource, role, expired, ttl in rows:
        item = {"name": role, "expired": expired, "ttl": ttl}
        if level == "project":
            roles["project"].append(item)
        else:
            roles[level].setdefault(resource, []).append(item)
    return roles
