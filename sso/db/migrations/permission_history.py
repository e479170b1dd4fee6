"""The history of permission data, which triggers write, whatever program and version changes a row.

A version is a row as it was before a transaction changed it, or NULL if it did not exist. The state at a moment is
therefore the oldest version of each row among the transactions after the moment, and the row itself if there is none.
"""

from alembic import op

# kind: (table, owner, key, condition, columns of the image). Columns with secrets must not be among them.
KINDS = {
    "users": ("users", "row.user_id", "''", "true", ("user_id", "login", "tags", "purchases", "bans")),
    "user_records": (
        "user_records",
        "row.user_id",
        "row.application_id::text",
        "true",
        ("user_id", "application_id", "login", "public_data", "private_data", "secret_data"),
    ),
    "role_assignments": (
        "role_assignments",
        "row.user_id",
        "row.application_id || '/' || row.name",
        "true",
        ("user_id", "application_id", "name", "expired", "ttl", "position"),
    ),
    "group_users": ("group_users", "row.user_id", "row.group_id", "true", ("group_id", "user_id")),
    "project_members": (
        "project_members",
        "row.user_id",
        "concat_ws('/', row.project_id, row.level, row.resource, row.role)",
        "true",
        ("project_id", "user_id", "level", "resource", "role", "expired", "ttl", "position"),
    ),
    "applications": (
        "applications",
        "row.application_id::text",
        "''",
        "true",
        (
            *("application_id", "name", "project_id", "removed", "settings"),
            *("login", "public_data", "private_data", "secret_data"),
        ),
    ),
    "project_applications": (
        "applications",
        "row.project_id",
        "row.application_id::text",
        "row.project_id IS NOT NULL",
        ("application_id", "project_id", "name", "removed", "is_service"),
    ),
    "roles": (
        "roles",
        "row.application_id::text",
        "row.name",
        "true",
        (
            *("application_id", "name", "meta", "description", "protected", "default"),
            *("condition", "user_limit", "params"),
        ),
    ),
    "projects": (
        "projects",
        "row.id",
        "''",
        "true",
        ("id", "title", "aliases", "removed", "settings", "allow", "disallow"),
    ),
    "user_groups": (
        "user_groups",
        "row.project_id",
        "row.id",
        "true",
        ("id", "project_id", "title", "tags", "conditions"),
    ),
}
LATER_COLUMNS = ("bans",)  # that a migration after the first one has added
OF_USERS = ("users", "user_records", "role_assignments", "group_users", "project_members")


def create_permission_history() -> None:
    _create_commit_functions()
    for kind, (*_, columns) in KINDS.items():
        _create_triggers(kind, tuple(name for name in columns if name not in LATER_COLUMNS))
    _erase_with_users()
    # The triggers have locked the tables, so every change that commits after this moment has a version.
    op.execute("INSERT INTO permission_history (since) VALUES (clock_timestamp())")


def replace_triggers(kind: str) -> None:
    """Replaces the triggers of a table after its columns among LATER_COLUMNS were added."""
    _create_triggers(kind, KINDS[kind][4])


def _create_commit_functions() -> None:
    """A transaction has one row in permission_commits. Its time is set by the last thing that the transaction does."""
    op.execute(
        """CREATE FUNCTION permission_commit_id() RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
            this_commit bigint := nullif(current_setting('sso.permission_commit_id', true), '');
        BEGIN
            IF this_commit IS NULL THEN
                INSERT INTO permission_commits DEFAULT VALUES RETURNING id INTO this_commit;
                PERFORM set_config('sso.permission_commit_id', this_commit::text, true);
            END IF;
            RETURN this_commit;
        END $$"""
    )
    op.execute(
        """CREATE FUNCTION set_permission_commit_time() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE permission_commits SET at = clock_timestamp() WHERE id = NEW.id;
            RETURN NULL;
        END $$"""
    )
    op.execute(
        """CREATE CONSTRAINT TRIGGER permission_commit_time AFTER INSERT ON permission_commits
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION set_permission_commit_time()"""
    )


def _create_triggers(kind: str, columns: tuple[str, ...]) -> None:
    table = KINDS[kind][0]
    op.execute(_function(kind, columns))
    changed = " OR ".join(f"{_value('OLD', name)} IS DISTINCT FROM {_value('NEW', name)}" for name in columns)
    for operation, condition in {"INSERT": "", "DELETE": "", "UPDATE": f"WHEN ({changed})"}.items():
        op.execute(
            f"""CREATE OR REPLACE TRIGGER {kind}_history_{operation.lower()} AFTER {operation} ON {table}
            FOR EACH ROW {condition} EXECUTE FUNCTION keep_{kind}_version()"""
        )


def _function(kind: str, columns: tuple[str, ...]) -> str:
    """Stores the row before the change, once per transaction. A row that is again as it was needs no version."""
    condition = KINDS[kind][3]
    return f"""CREATE OR REPLACE FUNCTION keep_{kind}_version() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            this_commit bigint := permission_commit_id();
        BEGIN
            IF TG_OP <> 'INSERT' AND {_of("OLD", condition)} THEN
                INSERT INTO permission_versions (commit_id, kind, owner, key, image)
                VALUES (this_commit, {_identity("OLD", kind)}, {_image("OLD", columns)}) ON CONFLICT DO NOTHING;
            END IF;
            IF TG_OP <> 'DELETE' AND {_of("NEW", condition)} THEN
                INSERT INTO permission_versions (commit_id, kind, owner, key)
                VALUES (this_commit, {_identity("NEW", kind)}) ON CONFLICT DO NOTHING;
                IF NOT FOUND THEN
                    DELETE FROM permission_versions v
                    WHERE (v.commit_id, v.kind, v.owner, v.key) = (this_commit, {_identity("NEW", kind)})
                        AND v.image = {_image("NEW", columns)};
                END IF;
            END IF;
            RETURN NULL;
        END $$"""


def _identity(row: str, kind: str) -> str:
    _, owner, key, *_ = KINDS[kind]
    return f"'{kind}', {_of(row, owner)}, {_of(row, key)}"


def _image(row: str, columns: tuple[str, ...]) -> str:
    return "jsonb_build_object({})".format(", ".join(f"'{name}', {_value(row, name)}" for name in columns))


def _value(row: str, column: str) -> str:
    return f"({row}.service_meta <> '{{}}')" if column == "is_service" else f'{row}."{column}"'


def _of(row: str, expression: str) -> str:
    return expression.replace("row.", f"{row}.")


def _erase_with_users() -> None:
    """A user is deleted only when the account is erased. Nothing of it stays in the history."""
    kinds = ", ".join(f"'{kind}'" for kind in OF_USERS)
    op.execute(
        f"""CREATE FUNCTION erase_user_versions() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            DELETE FROM permission_versions WHERE kind IN ({kinds}) AND owner = OLD.user_id;
            RETURN NULL;
        END $$"""
    )
    op.execute(
        """CREATE TRIGGER users_history_erasure AFTER DELETE ON users
        FOR EACH ROW EXECUTE FUNCTION erase_user_versions()"""
    )
