"""Where the database has data about a person: what an export contains, and what an erasure deletes.

A test compares this list with the tables: a new table with a user id must be added here.
"""

# The tables of an export, with the columns that it contains: no secrets, and no digests of them.
EXPORTED = {
    "browser_sessions": ("id", "created", "last_seen", "expires", "address", "device", "auth"),
    "sign_ins": ("id", "created", "last_used", "expires", "address", "auth", "app_id", "gapp_id", "ended"),
    "session_tokens": ("kind", "address", "expires", "ips", "app_id", "gapp_id", "used"),
    "known_factors": ("expires",),
    "recovery_code_sets": ("created",),
    "device_keys": ("id", "algorithm", "created", "last_used"),
    "user_merges": ("user_id", "into_id", "at"),
    "passkeys": ("name", "transports", "created", "last_used"),
    "linked_identities": ("provider_id", "subject", "name", "created", "last_used"),
    "mailed_links": ("purpose", "created", "expires"),
    "account_events": ("at", "kind", "address", "device", "detail", "times", "last_at"),
    "change_events": ("at", "type", "application_id", "data"),
    "webhook_failures": ("at", "type", "application_id", "data", "failed_at"),
    "oauth_consents": ("client_id", "scopes", "created"),
    "oauth_grants": ("client_id", "scopes", "claims", "created", "last_used", "expires"),
    "user_records": ("application_id", "login", "public_data", "private_data", "secret_data"),
    "role_assignments": ("application_id", "name", "expired", "ttl"),
    "project_members": ("project_id", "level", "resource", "role", "expired", "ttl"),
    "group_users": ("group_id",),
    "used_applications": ("application_id",),
    "data_requests": ("application_id", "kind", "subject_id", "state", "problem", "created", "finished"),
    "user_bans": ("application_id", "project_id", "until", "reason", "created"),
}
# Tables whose rows contain nothing but secrets, counters and references; most of them live for minutes.
TRANSIENT = (
    "ended_sessions",
    "impersonations",
    "login_challenges",
    "email_codes",
    "factor_guesses",
    "game_sessions",
    "link_conflicts",
    "oauth_codes",
    "oauth_site_sessions",
    "recovery_codes",
    "signal_subjects",
    "upstream_attempts",
)
# The bans of an erased user are deleted, or kept without the note to keep identities from starting again.
KEPT_WITHOUT_PERSONAL_DATA = ("user_bans",)
# Tables whose rows have no foreign key to the user, because they may exist without one.
WITHOUT_FOREIGN_KEY = (
    "user_records",
    "role_assignments",
    "project_members",
    "group_users",
    "change_events",
    "webhook_failures",
    "used_applications",
    "data_requests",
)
# The kinds of permission_versions with earlier versions of rows of the user. A trigger erases them with the user.
VERSIONS_OF_USERS = ("users", "user_records", "role_assignments", "project_members", "group_users")
# The audit trail keeps what happened, with the number of the user and without personal data.
PSEUDONYMOUS = ("audit", "erased_users")
