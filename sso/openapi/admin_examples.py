"""Examples of the records of the management API, for the responses in the OpenAPI document."""

from typing import Any

TIME = "2026-01-31T18:00:00Z"
_PERMISSION_EVENT = {
    "id": "1763294400123456",
    "user_id": "1001",
    "application_id": 10,
    "gained": ["private_data.chat.kick"],
    "lost": [],
    "time": "2026-01-31T18:00:00.123Z",
}
_DIFFERENCES = {"created": 1, "changed": 0, "unchanged": 4}

# By the path without its variables. A path without an entry has the example of the path before its last part.
RECORDS: dict[str, Any] = {
    "users": {
        "user_id": "1001",
        "login": "ann@example.com",
        "nick": "Ann",
        "tags": ["beta"],
        "disabled": False,
        "second_factors": ["totp"],
        "reg_time": TIME,
        "deletion_due": None,
        "deletion_by": None,
    },
    "users/sessions": {
        "id": "9a57409aeb57ee8e",
        "created": TIME,
        "last_seen": TIME,
        "address": "192.0.2.7",
        "device": "Firefox on Linux",
    },
    "users/games": {
        "ids": ["622653ee52a4b985"],
        "title": "Tanks",
        "address": "192.0.2.7",
        "first_used": TIME,
        "last_used": TIME,
    },
    "users/factors": {"type": "totp", "count": 1},
    "users/factors/block": {"blocked": ["totp"]},
    "users/export": {"exported_at": TIME, "account": {"user_id": "1001", "login": "ann@example.com"}},
    "users/permissions": ["private_data.chat.write"],
    "users/assignments": {
        "applications": [
            {"application_id": 10, "name": "Tanks", "roles": [{"name": "moderator", "expired": 0, "ttl": 0}]}
        ],
        "projects": [],
    },
    "invitations": {"id": "17", "login": "bob@example.com", "created": TIME, "expires": TIME},
    "brand": {
        **dict.fromkeys(("signin_text", "support_url", "privacy_url", "terms_url", "logo"), ""),
        "name": "Iron Foundry",
        "accent": "#0f766e",
        "fixed": ["support_url"],
    },
    "clients": {"client_id": "shop", "name": "Shop", "profile": "oidc", "disabled": False, "created": TIME},
    "identity-providers": {"id": "steam", "kind": "steam", "name": "Steam", "disabled": False},
    "applications": {"application_id": 10, "name": "Tanks", "description": "", "project_id": None, "removed": False},
    "applications/assertions": {"application_id": 10, "assertions": ["ann@example.com may chat.kick"]},
    "applications/keys": {
        "kid": "fwCK9XN5FJ_0N6Ij9NGU",
        "algorithm": "RS256",
        "public_key": "-----BEGIN PUBLIC KEY-----…",
    },
    "applications/service-jwt": {"application_id": 10, "service_jwt": "eyJhbGciOiJSUzI1NiJ9…"},
    "applications/email-secret": {"application_id": 10, "email_secret": "a secret of 43 characters"},
    "applications/holders": {
        "role": "moderator",
        "user_id": "1001",
        "login": "ann@example.com",
        "expired": 0,
        "ttl": 0,
    },
    "projects": {"id": "red_dawn", "title": "Red Dawn", "description": "", "author": "1001", "removed": False},
    "projects/members": {"user_id": "1001", "roles": {"project": ["viewer"]}},
    "projects/roles": {"name": "viewer", "description": "Sees the project."},
    "groups": {"group_id": "5f1e0000000000000000000a", "project_id": "red_dawn", "title": "Testers", "users": ["1001"]},
    "assertions/test": {"checked": 4, "failed": [], "warnings": []},
    "violations": {
        "id": "5f0c9a1e77d2b483",
        "created": TIME,
        "address": "198.51.100.23",
        "reason": "wrong address",
        "expected": "203.0.113.9",
        "found": "198.51.100.23",
    },
    "conditions/test": {"holds": True, "conditions": []},
    "roles": {"application_id": 10, "name": "moderator", "meta": {"private_data": {"chat": {"kick": {"value": True}}}}},
    "schemas": {"application_id": 10, "private_data": {"chat": {"kick": {"value": False}}}, "version": 3},
    "access-keys": {"id": "36401aa0c180a5b1", "application_id": 10, "comment": "ci", "created": TIME, "modified": TIME},
    "signing-keys": {"kid": "fwCK9XN5FJ_0N6Ij9NGU", "algorithm": "RS256", "side": False, "state": "signing"},
    "game-sessions": {
        "gsid": "50b53a2b-5f14-4f66-9174-dbba47489cce",
        "id": "72c0e74bfbefb3512b1a287b",
        "stage": "opened",
        "address": "192.0.2.7",
        "application_id": 10,
        "age": 12,
    },
    "audit": {
        "id": 128,
        "at": TIME,
        "user_id": "1000",
        "operation": "user.save",
        "target": "1001",
        "before": {"nick": "Ann"},
        "after": {"nick": "Anna"},
    },
    "state": {"roles": {"10": [{"name": "moderator", "meta": {}}]}},
    "state/diff": {**_DIFFERENCES, "changes": []},
    "state/apply": _DIFFERENCES,
    "changes": _PERMISSION_EVENT,
    "webhooks": {
        "id": "98bbcbeddc36d5ab",
        "url": "https://tools.example.com/sso-events",
        "events": ["permissions"],
        "disabled": False,
        "created": TIME,
    },
    "webhooks/failed": {
        "id": "17",
        "event": _PERMISSION_EVENT,
        "failed_at": TIME,
        "tries": 40,
        "problem": "status 500",
    },
    "webhooks/failed/retry": {"events": 3},
    "system": {"version": "0.1", "nodes": []},
    "figures": {"minutes": {}, "latency_ms": {"p50": 2.1, "p95": 9.8}, "totals": {"users": 120}, "funnel": []},
}


def record_example(path: str) -> Any:
    """Returns an example of the record of a route, or None if there is none."""
    parts = [part for part in path.split("/") if part and not part.startswith("<")]
    for length in range(len(parts), 0, -1):
        if (example := RECORDS.get("/".join(parts[:length]))) is not None:
            return example
    return None
