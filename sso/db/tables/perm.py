"""The permission model: applications with schemas and roles, projects, groups, and data of users."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from sso.db.tables.columns import (
    SEALED,
    bigint_column,
    bool_column,
    created_column,
    expiry_index,
    json_column,
    metadata,
    text_array_column,
    text_column,
    timestamp_column,
)


def _application() -> Column[object]:
    return Column("application_id", Integer, ForeignKey("applications.application_id"), nullable=False)


def _json_array(name: str) -> Column[object]:
    return Column(name, JSONB, nullable=False, server_default=text("'[]'::jsonb"))


def _project() -> Column[object]:
    return Column("project_id", Text, ForeignKey("projects.id"), nullable=False)


# The central application has id 1; new applications get ids from 10 on.
applications = Table(
    "applications",
    metadata,
    Column("application_id", Integer, Identity(start=10), primary_key=True),
    text_column("name"),
    text_column("description"),
    Column("project_id", Text, ForeignKey("projects.id")),
    bool_column("removed"),
    json_column("settings"),
    json_column("service_meta"),  # without the private key
    Column("private_key_sealed", Text, info=SEALED),
    Column("email_secret_sealed", Text, info=SEALED),
    Column("data_secret_sealed", Text, info=SEALED),  # signs requests about personal data
    created_column(),
    # The schema of §2.8.
    bigint_column("version", 1),
    bigint_column("updated_at"),
    json_column("login"),
    json_column("public_data"),
    json_column("private_data"),
    json_column("secret_data"),
    # Incremented with every change of the schema or of a role; the key of the cache of compiled applications.
    bigint_column("revision", 1),
    _json_array("assertions"),  # statements that every write is checked against
    Index(
        "uq_applications_name_in_project",
        "project_id",
        "name",
        unique=True,
        postgresql_where=text("NOT removed AND project_id IS NOT NULL"),
    ),
    Index("ix_applications_project_id", "project_id"),
)

roles = Table(
    "roles",
    metadata,
    _application(),
    Column("name", Text, nullable=False),
    json_column("meta"),
    text_column("description"),
    bool_column("protected"),
    bool_column("default"),
    json_column("condition"),
    bigint_column("user_limit"),
    text_column("params"),
    PrimaryKeyConstraint("application_id", "name", name="pk_roles"),
    Index("ix_roles_time", "application_id", postgresql_where=text("condition @? '$.**.time'::jsonpath")),
)

# The user need not exist: data can be saved for a user that never logged in.
user_records = Table(
    "user_records",
    metadata,
    _application(),
    Column("user_id", Text, nullable=False),
    json_column("login"),
    json_column("public_data"),
    json_column("private_data"),
    json_column("secret_data"),
    PrimaryKeyConstraint("user_id", "application_id", name="pk_user_records"),
    Index("ix_user_records_application", "application_id", "user_id"),
)

role_assignments = Table(
    "role_assignments",
    metadata,
    _application(),
    Column("user_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    bigint_column("expired"),
    bigint_column("ttl"),
    bigint_column("position"),
    PrimaryKeyConstraint("user_id", "application_id", "name", name="pk_role_assignments"),
    Index("ix_role_assignments_role", "application_id", "name"),
    Index("ix_role_assignments_holders", "application_id", "name", "user_id"),
)

projects = Table(
    "projects",
    metadata,
    Column("id", Text, primary_key=True),
    Column("title", Text, nullable=False),
    text_column("display_name"),  # in any script; the management API alone has it
    text_column("description"),
    text_array_column("aliases"),
    text_array_column("tags"),
    json_column("settings"),
    text_array_column("allow"),
    text_array_column("disallow"),
    text_column("author"),
    bool_column("removed"),
    created_column(),
    Index("ix_projects_author", "author"),
)

# Ids, titles and aliases share one namespace, in their canonical form (`sso.perm.engine.reserved_names`).
project_names = Table(
    "project_names",
    metadata,
    Column("name", Text, primary_key=True),
    _project(),
    CheckConstraint("name = replace(lower(name), '-', '_')", name="ck_project_names_compared_form"),
)

project_members = Table(
    "project_members",
    metadata,
    _project(),
    Column("user_id", Text, nullable=False),
    Column("level", Text, nullable=False),  # project, applications, services, groups
    text_column("resource"),  # the id at that level; empty for the project itself
    Column("role", Text, nullable=False),
    bigint_column("expired"),
    bigint_column("ttl"),
    bigint_column("position"),
    PrimaryKeyConstraint("project_id", "user_id", "level", "resource", "role", name="pk_project_members"),
    Index("ix_project_members_user_id", "user_id"),
    Index("ix_project_members_role", "role"),
)

user_groups = Table(
    "user_groups",
    metadata,
    Column("id", Text, primary_key=True),
    _project(),
    Column("title", Text, nullable=False),
    text_column("description"),
    text_array_column("tags"),
    _json_array("conditions"),
    created_column(),
    Index("ix_user_groups_project_id", "project_id"),
    Index("ix_user_groups_time", "project_id", postgresql_where=text("conditions @? '$.**.time'::jsonpath")),
    Index("ix_user_groups_title_c", text("lower(title)")),  # the migration gives it the collation "C"
    Index("ix_user_groups_search", text("search_trigrams(lower(title), id)"), postgresql_using="gin"),
)

group_users = Table(
    "group_users",
    metadata,
    Column("group_id", Text, ForeignKey("user_groups.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", Text, nullable=False),
    bigint_column("position"),
    PrimaryKeyConstraint("group_id", "user_id", name="pk_group_users"),
    Index("ix_group_users_user_id", "user_id"),
)

access_keys = Table(
    "access_keys",
    metadata,
    Column("id", Text, primary_key=True),
    _application(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("hash_sealed", Text, nullable=False, info=SEALED),  # decrypted to verify signatures made with it
    text_column("comment"),
    created_column(),
    Column("modified", DateTime(timezone=True), nullable=False, server_default=func.now()),
    timestamp_column("last_used", nullable=True),
    Index("ix_access_keys_application_id", "application_id"),
)

# Public keys of applications. Two applications may have the same key, so it is never looked up by its id alone.
application_keys = Table(
    "application_keys",
    metadata,
    _application(),
    Column("id", Text, nullable=False),  # the kid of the tokens that it signs
    # meta: service_meta.public_key; custom: added explicitly; file: of the key file of a node
    Column("source", Text, nullable=False),
    Column("pem", Text, nullable=False),
    text_column("node"),  # that has the file
    created_column(),
    PrimaryKeyConstraint("application_id", "id", "source", name="pk_application_keys"),
    Index("ix_application_keys_id", "id"),
)

# The audit log, written in the transaction of the change.
# The secrets of deleted records, by the audit entry of the deletion (sso.audit.deleted_secret_store).
deleted_secrets = Table(
    "deleted_secrets",
    metadata,
    Column("entry_id", BigInteger, primary_key=True, autoincrement=False),
    Column("secrets_sealed", Text, nullable=False, info=SEALED),  # as JSON
    timestamp_column("expires"),
    expiry_index("deleted_secrets"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    text_column("user_id"),  # the user that made the change; empty for the command line
    Column("service_id", Integer),  # the application of the service JWT of the request
    Column("key_id", Text),  # the access key of the request
    Column("client_id", Text),  # the service client whose access token the request has
    text_column("operator"),  # the operating system account that ran the command
    text_column("address"),
    Column("operation", Text, nullable=False),
    text_column("target"),
    Column("project_id", Text),
    Column("application_id", Integer),
    Column("before", JSONB),
    Column("after", JSONB),
    Index("ix_audit_project_id", "project_id", "id"),
    Index("ix_audit_application_id", "application_id", "id"),
    Index("ix_audit_user_id", "user_id", "id"),
    Index("ix_audit_target", "target", "id"),
    Index("ix_audit_operation", "operation", "id"),
    # The entries about the permissions of a user, whose target is such as "730/1001".
    Index(
        "ix_audit_permissions_of_user",
        text("split_part(target, '/', 2)"),
        "id",
        postgresql_where=text("operation = 'permissions.save'"),
    ),
    Index("ix_audit_at", "at"),
)

# Up to which moment the begins and ends of time windows are events. Application 0 stands for all of them.
time_window_progress = Table(
    "time_window_progress",
    metadata,
    Column("application_id", Integer, primary_key=True, autoincrement=False),
    Column("moment", BigInteger, nullable=False),  # Unix seconds
)
