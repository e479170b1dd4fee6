"""The permission model."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("user_id", sa.Text(), server_default="", nullable=False),
        sa.Column("service_id", sa.Integer(), nullable=True),
        sa.Column("address", sa.Text(), server_default="", nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), server_default="", nullable=False),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.Column("application_id", sa.Integer(), nullable=True),
        sa.Column("before", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("after", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_application_id", "audit", ["application_id", "id"], unique=False)
    op.create_index("ix_audit_project_id", "audit", ["project_id", "id"], unique=False)
    op.create_table(
        "projects",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("aliases", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("tags", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column(
            "settings", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("allow", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("disallow", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("author", sa.Text(), server_default="", nullable=False),
        sa.Column("removed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
    )
    op.create_index("ix_projects_author", "projects", ["author"], unique=False)
    op.create_table(
        "project_members",
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), server_default="", nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("expired", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("ttl", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("position", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_project_members_project_id")),
        sa.PrimaryKeyConstraint("project_id", "user_id", "level", "resource", "role", name="pk_project_members"),
    )
    op.create_index("ix_project_members_user_id", "project_members", ["user_id"], unique=False)
    op.create_table(
        "project_names",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_project_names_project_id")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_project_names")),
    )
    op.create_table(
        "user_groups",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("tags", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column(
            "conditions", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'[]'::jsonb"), nullable=False
        ),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_user_groups_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_groups")),
    )
    op.create_index("ix_user_groups_project_id", "user_groups", ["project_id"], unique=False)
    op.create_table(
        "access_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("application_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("hash_sealed", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), server_default="", nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("modified", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_used", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.application_id"], name=op.f("fk_access_keys_application_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_keys")),
        sa.UniqueConstraint("digest", name=op.f("uq_access_keys_digest")),
    )
    op.create_index("ix_access_keys_application_id", "access_keys", ["application_id"], unique=False)
    op.create_table(
        "application_keys",
        sa.Column("application_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("pem", sa.Text(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.application_id"], name=op.f("fk_application_keys_application_id")
        ),
        sa.PrimaryKeyConstraint("application_id", "id", "source", name="pk_application_keys"),
    )
    op.create_index("ix_application_keys_id", "application_keys", ["id"], unique=False)
    op.create_table(
        "group_users",
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["user_groups.id"], name=op.f("fk_group_users_group_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("group_id", "user_id", name="pk_group_users"),
    )
    op.create_table(
        "role_assignments",
        sa.Column("application_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("expired", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("ttl", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("position", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.application_id"], name=op.f("fk_role_assignments_application_id")
        ),
        sa.PrimaryKeyConstraint("user_id", "application_id", "name", name="pk_role_assignments"),
    )
    op.create_index("ix_role_assignments_role", "role_assignments", ["application_id", "name"], unique=False)
    op.create_table(
        "roles",
        sa.Column("application_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "meta", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("protected", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("default", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "condition", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("user_limit", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("params", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.application_id"], name=op.f("fk_roles_application_id")
        ),
        sa.PrimaryKeyConstraint("application_id", "name", name="pk_roles"),
    )
    op.create_table(
        "user_records",
        sa.Column("application_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column(
            "login", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column(
            "public_data",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "private_data",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "secret_data",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.application_id"], name=op.f("fk_user_records_application_id")
        ),
        sa.PrimaryKeyConstraint("user_id", "application_id", name="pk_user_records"),
    )
    op.add_column("applications", sa.Column("private_key_sealed", sa.Text(), nullable=True))
    op.add_column("applications", sa.Column("email_secret_sealed", sa.Text(), nullable=True))
    op.add_column("applications", sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False))
    op.add_column("applications", sa.Column("updated_at", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column(
        "applications",
        sa.Column(
            "login", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
    )
    op.add_column(
        "applications",
        sa.Column(
            "public_data",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
    )
    op.add_column(
        "applications",
        sa.Column(
            "private_data",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
    )
    op.add_column(
        "applications",
        sa.Column(
            "secret_data",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
    )
    op.add_column("applications", sa.Column("revision", sa.BigInteger(), server_default=sa.text("1"), nullable=False))
    op.create_index(
        "uq_applications_name_in_project",
        "applications",
        ["project_id", "name"],
        unique=True,
        postgresql_where=sa.text("NOT removed AND project_id IS NOT NULL"),
    )
    op.create_foreign_key(op.f("fk_applications_project_id"), "applications", "projects", ["project_id"], ["id"])
