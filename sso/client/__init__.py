"""A client of the service for Python programs: sign-in, the management API, permissions, the change stream, webhooks,
and the verification of players.

Methods of resources return requests, which a ``SsoClient`` or an ``AsyncSsoClient`` sends::

    from sso.client import SsoClient, ServiceClient, users

    with SsoClient("https://sso.example.com", ServiceClient("management", secret)) as sso:
        ann = sso.send(users.get("1001"))
        sso.send(users.update("1001", fields={"disabled": True}, if_match=ann.etag))
        for user in sso.pages(users.list(search="ann")):
            print(user["login"])

This package imports nothing of the server, except for ``PlayerVerifier``, ``Replica`` and their asynchronous forms:
they verify JWTs and evaluate permissions with the code of the server, which is imported when one of them is used.
"""

import importlib
from typing import Any

from sso.client.call import ApiCall, ListCall, Record
from sso.client.clients import AsyncSsoClient, SsoClient
from sso.client.credentials import (
    BrowserLogin,
    ServiceClient,
    ServiceToken,
    SessionToken,
    TicketLogin,
    UserJwt,
    UserLogin,
)
from sso.client.errors import (
    ClientError,
    ConnectionFailed,
    MissingRight,
    OtpMissing,
    PlayerRefused,
    RecordChanged,
    RecordNotFound,
    RequestRefused,
    SignInRequired,
    TooManyRequests,
    UnexpectedResponse,
    WebhookRefused,
)
from sso.client.permissions import (
    RuleQuestion,
    assign_roles,
    check_rule,
    effective_permissions,
    explain_rule,
    read_assignments,
    read_permissions,
    rule_holders,
    user_rules,
)
from sso.client.player_guard import VerifiedPlayer
from sso.client.resources import (
    access_keys,
    applications,
    audit,
    check_assertions,
    clients,
    game_sessions,
    groups,
    identity_providers,
    invitations,
    members,
    projects,
    registration_tokens,
    roles,
    schemas,
    signing_keys,
    state,
    system,
    users,
    violations,
    webhooks,
)
from sso.client.webhook_signature import read_webhook

__all__ = [
    "ApiCall",
    "AsyncPlayerVerifier",
    "AsyncReplica",
    "AsyncSsoClient",
    "BrowserLogin",
    "ClientError",
    "ConnectionFailed",
    "ListCall",
    "MissingRight",
    "OtpMissing",
    "PlayerRefused",
    "PlayerVerifier",
    "Record",
    "RecordChanged",
    "RecordNotFound",
    "Replica",
    "ReplicaUnavailable",
    "RequestRefused",
    "RuleQuestion",
    "ServiceClient",
    "ServiceToken",
    "SessionToken",
    "SignInRequired",
    "SsoClient",
    "TicketLogin",
    "TooManyRequests",
    "UnexpectedResponse",
    "UserJwt",
    "UserLogin",
    "VerifiedPlayer",
    "WebhookRefused",
    "access_keys",
    "applications",
    "assign_roles",
    "audit",
    "check_assertions",
    "check_rule",
    "clients",
    "effective_permissions",
    "explain_rule",
    "game_sessions",
    "groups",
    "identity_providers",
    "invitations",
    "members",
    "projects",
    "read_assignments",
    "read_permissions",
    "read_webhook",
    "registration_tokens",
    "roles",
    "rule_holders",
    "schemas",
    "signing_keys",
    "state",
    "system",
    "user_rules",
    "users",
    "violations",
    "webhooks",
]

_IMPORTED_WHEN_USED = {
    "AsyncReplica": "sso.replica.async_replica",
    "AsyncPlayerVerifier": "sso.verification.verifier",
    "Replica": "sso.replica.replica",
    "ReplicaUnavailable": "sso.replica.replica",
    "PlayerVerifier": "sso.verification.verifier",
}


def __getattr__(name: str) -> Any:
    if name not in _IMPORTED_WHEN_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_IMPORTED_WHEN_USED[name]), name)
