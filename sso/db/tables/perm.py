"""The permission model: applications with their schemas and roles, projects, groups, and what users have."""

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

from sso.db.tables.columns import SEALED, created, flag, json_object, metadata, moment, number, text_column, words


def _application() -> Column[object]:
    return Column("application_id", Integer, ForeignKey("applications.application_id"), nullable=False)


def _json_array(name: str) -> Column[object]:
    return Column(name, JSONB, nullable=False, server_default=text("'[]'::jsonb"))


def _project() -> Column[object]:
    return Column("project_id", Text, ForeignKey("projects.id"), nullable=False)


# The central application has id 1; those that are made get ids from 10 on.
applications = Table(
    "applications",
    metadata,
    Column("application_id", Integer, Identity(start=10), primary_key=True),
    text_column("name"),
    text_column("description"),
    Column("project_id", Text, ForeignKey("projects.id")),
    flag("removed"),
    json_object("settings"),
    json_object("service_meta"),  # without the private key
    Column("private_key_sealed", Text, info=SEALED),
    Column("email_secret_sealed", Text, info=SEALED),
    created(),
    # The schema of §2.8.
    number("version", 1),
    number("updated_at"),
    json_object("login"),
    json_object("public_data"),
    json_object("private_data"),
    json_object("secret_data"),
    # Raised with every change of the schema or of a role: what is compiled from them is kept in memory under it.
    number("revision", 1),
    Index(
        "uq_applications_name_in_project",
        "project_id",
        "name",
        unique=True,
        postgresql_where=text("NOT removed AND project_id IS NOT NULL"),
    ),
)

roles = Table(
    "roles",
    metadata,
    _application(),
    Column("name", Text, nullable=False),
    json_object("meta"),
    text_column("description"),
    flag("protected"),
    flag("default"),
    json_object("condition"),
    number("user_limit"),
    text_column("params"),
    PrimaryKeyConstraint("application_id", "name", name="pk_roles"),
)

# Users need not exist: a schema can be saved for somebody who never logged in.
user_records = Table(
    "user_records",
    metadata,
    _application(),
    Column("user_id", Text, nullable=False),
    json_object("login"),
    json_object("public_data"),
    json_object("private_data"),
    json_object("secret_data"),
    PrimaryKeyConstraint("user_id", "application_id", name="pk_user_records"),
)

role_assignments = Table(
    "role_assignments",
    metadata,
    _application(),
    Column("user_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    number("expired"),
    number("ttl"),
    number("position"),
    PrimaryKeyConstraint("user_id", "application_id", "name", name="pk_role_assignments"),
    Index("ix_role_assignments_role", "application_id", "name"),
)

projects = Table(
    "projects",
    metadata,
    Column("id", Text, primary_key=True),
    Column("title", Text, nullable=False),
    text_column("description"),
    words("aliases"),
    words("tags"),
    json_object("settings"),
    words("allow"),
    words("disallow"),
    text_column("author"),
    flag("removed"),
    created(),
    Index("ix_projects_author", "author"),
)

# Ids, titles and aliases share one namespace, in the one form in which they are compared (`sso.perm.engine.names`).
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
    text_column("resource"),  # which of them; empty for the project itself
    Column("role", Text, nullable=False),
    number("expired"),
    number("ttl"),
    number("position"),
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
    words("tags"),
    _json_array("conditions"),
    created(),
    Index("ix_user_groups_project_id", "project_id"),
)

group_users = Table(
    "group_users",
    metadata,
    Column("group_id", Text, ForeignKey("user_groups.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", Text, nullable=False),
    number("position"),
    PrimaryKeyConstraint("group_id", "user_id", name="pk_group_users"),
)

access_keys = Table(
    "access_keys",
    metadata,
    Column("id", Text, primary_key=True),
    _application(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("hash_sealed", Text, nullable=False, info=SEALED),  # read back to check signatures made with it
    text_column("comment"),
    created(),
    Column("modified", DateTime(timezone=True), nullable=False, server_default=func.now()),
    moment("last_used", nullable=True),
    Index("ix_access_keys_application_id", "application_id"),
)

# Usable public keys of applications: two of them may know the same key, so it is never looked up by its id alone.
application_keys = Table(
    "application_keys",
    metadata,
    _application(),
    Column("id", Text, nullable=False),  # the kid of what it signs
    Column("source", Text, nullable=False),  # meta: service_meta.public_key; custom: added by hand
    Column("pem", Text, nullable=False),
    created(),
    PrimaryKeyConstraint("application_id", "id", "source", name="pk_application_keys"),
    Index("ix_application_keys_id", "id"),
)

# Who changed what. Written in the same transaction as the change.
audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    text_column("user_id"),  # who; empty for the command line
    Column("service_id", Integer),  # the application whose service JWT came with it
    Column("key_id", Text),  # the access key that came with it
    text_column("operator"),  # the account of the operating system that ran a command
    text_column("address"),
    Column("operation", Text, nullable=False),
    text_column("target"),
    Column("project_id", Text),
    Column("application_id", Integer),
    Column("before", JSONB),
    Column("after", JSONB),
    Index("ix_audit_project_id", "project_id", "id"),
    Index("ix_audit_application_id", "application_id", "id"),
)
