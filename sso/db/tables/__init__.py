"""All tables. Columns with encrypted values are marked (``SEALED``), so that a change of the master key finds them."""

from sso.db.tables.accounts import (
    browser_sessions,
    email_codes,
    factor_guesses,
    known_factors,
    login_challenges,
    registration_codes,
    session_tokens,
    sign_ins,
    throttle,
    used_puzzles,
    user_ids,
    users,
)
from sso.db.tables.changes import change_events, change_stream, webhook_failures, webhooks
from sso.db.tables.columns import metadata
from sso.db.tables.figures import login_funnel, service_figures
from sso.db.tables.gsid import game_sessions, game_violations
from sso.db.tables.keys import signing_keys
from sso.db.tables.mail import outbox
from sso.db.tables.nodes import node_workers
from sso.db.tables.oauth import (
    oauth_access_tokens,
    oauth_clients,
    oauth_codes,
    oauth_consents,
    oauth_grants,
    oauth_requests,
)
from sso.db.tables.perm import (
    access_keys,
    application_keys,
    applications,
    audit,
    group_users,
    project_members,
    project_names,
    projects,
    role_assignments,
    roles,
    user_groups,
    user_records,
)
from sso.db.tables.permission_history import permission_commits, permission_history, permission_versions
from sso.db.tables.schema import schema_compatibility
from sso.db.tables.upstream import (
    identity_providers,
    linked_identities,
    pending_identities,
    upstream_attempts,
    upstream_nonces,
)
from sso.db.tables.web import untrusted_proxies

__all__ = [
    "access_keys",
    "application_keys",
    "applications",
    "audit",
    "browser_sessions",
    "change_events",
    "change_stream",
    "email_codes",
    "factor_guesses",
    "game_sessions",
    "game_violations",
    "group_users",
    "identity_providers",
    "known_factors",
    "linked_identities",
    "login_challenges",
    "login_funnel",
    "metadata",
    "node_workers",
    "oauth_access_tokens",
    "oauth_clients",
    "oauth_codes",
    "oauth_consents",
    "oauth_grants",
    "oauth_requests",
    "outbox",
    "pending_identities",
    "permission_commits",
    "permission_history",
    "permission_versions",
    "project_members",
    "project_names",
    "projects",
    "registration_codes",
    "role_assignments",
    "roles",
    "schema_compatibility",
    "service_figures",
    "session_tokens",
    "sign_ins",
    "signing_keys",
    "throttle",
    "untrusted_proxies",
    "upstream_attempts",
    "upstream_nonces",
    "used_puzzles",
    "user_groups",
    "user_ids",
    "user_records",
    "users",
    "webhook_failures",
    "webhooks",
]
