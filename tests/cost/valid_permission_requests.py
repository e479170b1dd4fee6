"""Valid requests at the limits to the endpoints of permissions and to the management API."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

from sso.perm.input.questions import MAX_QUESTIONS, MAX_QUESTIONS_WITH_REASON
from sso.webhooks.event_filter import EVENT_NAMES
from tests.cost.conftest import World
from tests.cost.large_records import LargeRecords, any_of, create_users, largest_key, rules
from tests.cost.valid_request import ValidRequest, get, post

ADMINISTRATOR, PLAYER, ROOT = "project administrator", "player", "root"
_numbers = itertools.count(1)


def permission_requests(world: World, large: LargeRecords) -> Iterator[ValidRequest]:
    yield from _reads(world, large)
    yield from _writes(large, world.records.ids["user_id"])
    yield from _management(large)
    create_users(world.studio)
    yield from _memberships(large)


def _reads(world: World, large: LargeRecords) -> Iterator[ValidRequest]:
    application_id = large.application_id
    player = world.callers[PLAYER].user
    assert player is not None
    path = "/api/permissions/meta/data"
    read: dict[str, Any] = {"action": "get", "application_id": application_id, "data": {"type": "list"}}
    for name, options in {
        "all": {},
        "explain": {"explain": True},
        "explain one rule": {"explain": "rule10_1"},
        "explain unknown rule": {"explain": "*" * 512},
        "explain at a past moment": {"at": large.read_at, "explain": True},
    }.items():
        yield post(f"read permissions, {name}", PLAYER, path, read | {"options": options})

    def forget_past() -> dict[str, Any]:
        world.server.services.permissions.facts.past._past_applications._entries.clear()
        return read | {"options": {"at": large.read_at}}

    yield post("read permissions, first at a past moment", PLAYER, path, forget_past)
    question = {"rule": "private_data.rule10_1", "user_id": player.user_id}
    questions = {"questions": [question] * MAX_QUESTIONS}
    yield post("check", PLAYER, "/api/permissions/check", {"application_id": application_id, "data": questions})
    questions = {"questions": [question] * MAX_QUESTIONS_WITH_REASON}
    body = {"application_id": application_id, "data": questions, "options": {"reason": True}}
    yield post("check with reasons", PLAYER, "/api/permissions/check", body)


def _writes(large: LargeRecords, user_id: str) -> Iterator[ValidRequest]:
    application_id = large.application_id

    def save(data: Any) -> dict[str, Any]:
        return {"action": "save", "application_id": application_id, "data": data}

    def text() -> str:
        return f"{next(_numbers)}" + "x" * 20

    yield post(
        "role with the largest condition",
        ADMINISTRATOR,
        "/api/permissions/roles",
        lambda: save({"name": "r0", "description": text(), "condition": any_of(256, text())}),
    )
    sections = ("public_data", "private_data")
    held = {"or": [{"everyone": True}, *any_of(255, "held")["or"]]}
    yield post(
        "role with the most rules",
        ROOT,
        "/api/permissions/roles",
        lambda: save(
            {
                "name": "r0",
                "condition": held,
                "meta": {name: rules(9_900, "", f"m{next(_numbers)}_") for name in sections},
            }
        ),
    )
    read = {"action": "get", "application_id": application_id, "data": {"type": "list"}, "options": {"explain": True}}
    yield post("explain the most rules", PLAYER, "/api/permissions/meta/data", read)
    path = f"/api/admin/users/{user_id}/permissions?application_id={application_id}&explain=*"
    yield get("explain the most rules of another user", ROOT, path)
    yield post(
        "schema of 1 MB",
        ROOT,
        "/api/permissions/meta/schema",
        lambda: save({name: rules(6000, text() + "x" * 10, f"own_{name[:4]}") for name in sections}),
    )
    yield post(
        "small schema",
        ROOT,
        "/api/permissions/meta/schema",
        lambda: save({name: rules(1, text(), f"own_{name[:4]}") for name in sections}),
    )
    yield post(
        "data of a user with the most entries",
        ROOT,
        "/api/permissions/meta/data",
        lambda: save(
            {
                "user_id": user_id,
                "roles": [f"r{number}" for number in range(1000)],
                **{name: rules(9000, "", f"u{next(_numbers)}_") for name in sections},
            }
        ),
    )
    yield post(
        "group with the largest conditions",
        ROOT,
        "/api/permissions/group/access",
        lambda: {
            "group_id": large.group_id,
            "data": {
                "users": large.user_ids[:100],
                "conditions": [{"title": f"c{n}", "condition": any_of(256, f"{text()}{n}")} for n in range(18)],
            },
        },
    )
    key = largest_key().pem
    yield post(
        "application with the largest keys",
        ROOT,
        "/api/permissions/application",
        lambda: {
            "action": "save",
            "data": {
                "application_id": application_id,
                "description": text(),
                "service_meta": {"public_key": key * ((16 * 1024) // len(key))},
            },
        },
    )


def _memberships(large: LargeRecords) -> Iterator[ValidRequest]:
    roles = itertools.cycle((["viewer"], ["admin"]))
    yield post(
        "membership with the most members",
        ROOT,
        "/api/permissions/project/membership",
        lambda: {"action": "save", "data": {"id": large.project_id, "users": _members(large, next(roles))}},
    )
    yield post(
        "membership of many dry run",
        ROOT,
        "/api/permissions/project/membership?dry_run=1",
        lambda: {"action": "save", "data": {"id": large.project_id, "users": _members(large, next(roles))}},
    )


def _members(large: LargeRecords, roles: list[str]) -> list[dict[str, Any]]:
    """As many as the body can have, with an administrator of the project."""
    members = [{"user_id": user_id, "roles": {"project": roles}} for user_id in large.user_ids[:4700]]
    return [{"user_id": large.user_ids[-1], "roles": {"project": ["admin"]}}, *members]


def _management(large: LargeRecords) -> Iterator[ValidRequest]:
    test = {"condition": any_of(256, "t"), "domain": "a." * 120 + "org", "tags": [f"t_{n}" for n in range(100)]}
    yield post("condition tester", ROOT, "/api/admin/conditions/test", test)
    yield post("condition count", ROOT, "/api/admin/conditions/matches", {"conditions": [any_of(256, "t")] * 20})
    yield get("suggestions for conditions", ROOT, "/api/admin/conditions/suggestions", search="%_" * 100)
    yield post("group tester", ROOT, "/api/admin/conditions/test", {"group_id": large.group_id, "tags": ["t"]})
    searches = ("users", "clients", "applications", "groups", "projects", "roles", "schemas", "webhooks")
    for name, search in itertools.product(searches, ("%_" * 160, "a" * 320)):
        yield get(f"search {name}, {search[:2]}", ROOT, f"/api/admin/{name}", search=search, limit=1000)
    for name in ("users", "roles", "groups", "applications"):
        yield get(f"list {name}", ROOT, f"/api/admin/{name}", limit=1000)
    yield get("read the schema", ROOT, f"/api/admin/schemas/{large.application_id}")
    yield post(
        "webhook with the most events",
        ROOT,
        "/api/admin/webhooks",
        lambda: {
            "url": "https://example.com/" + "a" * 2000,
            "secret": "s" * 512,
            "events": sorted(EVENT_NAMES),
            "disabled": True,
        },
        status=201,
    )
    uris = [f"https://game.example.com/{number}" for number in range(4000)]
    yield post(
        "client with the most redirect URIs",
        ROOT,
        "/api/admin/clients/costly",
        lambda: {"name": f"{next(_numbers)}", "profile": "oidc", "redirect_uris": uris},
        method="PATCH",
    )
    keys = {"keys": [largest_key().jwk(f"key-{number}") for number in range(10)]}
    yield post(
        "client with the most keys",
        ROOT,
        "/api/admin/clients/costly",
        lambda: {"name": f"{next(_numbers)}", "jwks": keys},
        method="PATCH",
    )
    yield post("state of 4 MB", ROOT, "/api/admin/state/apply?dry_run=1", lambda: _large_document(large))
    yield post(
        "state with the most records for administrators",
        "state administrator",
        "/api/admin/state/diff",
        {"users": [{"login": f"new{number}@example.com", "nick": "N" * 100} for number in range(500)]},
    )


def _large_document(large: LargeRecords) -> dict[str, Any]:
    """A schema and users whose data takes most of the bytes."""
    sections = {name: rules(9000, "d" * 20, name[:4]) for name in ("public_data", "private_data")}
    meta = {f"field{number}": "x" * 1000 for number in range(50)}
    users = [{"login": f"many{number}@example.com", "meta": meta} for number in range(1, 50)]
    return {"schemas": {str(large.application_id): sections}, "users": users, "override": bool(time.time() < 0)}
