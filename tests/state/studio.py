"""A small studio as a document, and queries of the stored state."""

import copy
from typing import Any

from sso.db.statement import Statement
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from sso.state.summary import ApplyCounts

ANN, BOB = "5001", "5002"
TESTERS = "0123456789abcdef01234567"
SECRET = "an-access-key-of-more-than-32-characters"

_STUDIO: dict[str, Any] = {
    "users": [
        {"user_id": ANN, "login": "ann@example.com", "nick": "Ann"},
        {"user_id": BOB, "login": "bob@example.com", "nick": "Bob", "tags": ["beta"]},
    ],
    "projects": [
        {
            "title": "Red Dawn",
            "description": "A studio",
            "admins": [ANN],
            "aliases": ["rd"],
            "settings": {
                "allowed_domains": ["example.com"],
                "services": {"40": {"groups": [{"group_id": TESTERS, "role": "moderator", "action": "grant"}]}},
            },
        }
    ],
    "applications": [
        {
            "application_id": 40,
            "name": "Tanks",
            "description": "A game",
            "project_id": "red_dawn",
            "settings": {"restricted_domains": ["example.com"]},
            "service_meta": {"name": "tanks", "tags": ["game"]},
        }
    ],
    "schemas": {"40": {"private_data": {"chat": {"mute": {"value": False, "protected": False}}}}},
    "roles": {"40": [{"name": "moderator", "meta": {"private_data": {"chat": {"mute": {"value": True}}}}}]},
    "groups": [
        {
            "group_id": TESTERS,
            "project_id": "red_dawn",
            "title": "Testers",
            "users": [ANN],
            "conditions": [{"title": "beta", "condition": {"tag": "beta"}}],
            "tags": ["project"],
        }
    ],
    "memberships": [
        {
            "id": "red_dawn",
            "users": [{"user_id": BOB, "roles": {"project": ["viewer"], "groups": {TESTERS: ["group_admin"]}}}],
            "allow": [TESTERS],
            "disallow": [],
        }
    ],
    "permissions": [
        {"user_id": ANN, "application_id": 1, "data": {"roles": ["root"]}},
        {
            "user_id": BOB,
            "application_id": 40,
            "data": {
                "roles": [{"name": "moderator", "ttl": 60}],
                "login": {"cannot": {"value": False}},
                "public_data": {"title": {"value": "Major"}},
                "private_data": {"chat": {"ban": {"value": True, "params": "a,b"}}},
                "secret_data": {"application": {"canRead": {"value": True}}},
            },
        },
    ],
    "access_keys": [{"application_id": 40, "hash": SECRET, "comment": "ci"}],
}

_AUDITED = Statement("SELECT count(*) FROM audit WHERE operation <> 'state.export'")
_VERSIONS = Statement("SELECT application_id, version, revision FROM applications ORDER BY application_id")


def studio() -> dict[str, Any]:
    return copy.deepcopy(_STUDIO)


async def apply(services: Services, document: dict[str, Any]) -> ApplyCounts:
    return await Applier(services.database, services.hasher, services.operations).apply(parse(document))


async def traces(services: Services) -> tuple[int, list[tuple[Any, ...]]]:
    """Returns what every change updates: audit entries, schema versions, revisions."""
    rows = await services.database.rows(_VERSIONS)
    return await services.database.value(_AUDITED), [tuple(row) for row in rows]


async def rules(services: Services, user_id: str, application_id: int = 1) -> list[str]:
    from sso.perm.engine.effective_permissions import compute_permissions
    from sso.perm.engine.render import as_list_short

    loaded = await services.permissions.facts.load(user_id, application_id, None)
    assert loaded is not None
    return as_list_short(compute_permissions(loaded.application, loaded.facts, 1_900_000_000))
