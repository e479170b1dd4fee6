"""Games can be asked for the data of a user, and to remove it."""

import sqlalchemy as sa
from alembic import op

revision = "0069"
down_revision = "0068"
oldest_program = "0049"


def upgrade() -> None:
    op.create_table(
        "used_applications",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("application_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "application_id", name="pk_used_applications"),
    )
    op.create_table(
        "data_requests",
        sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True),
        sa.Column("request_id", sa.Text(), nullable=False, unique=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("export_id", sa.Text()),
        sa.Column(
            "application_id",
            sa.Integer(),
            sa.ForeignKey("applications.application_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("url", sa.Text(), nullable=False, server_default=""),
        sa.Column("accepted", sa.ARRAY(sa.Text()), nullable=False, server_default=sa.text("'{}'::text[]")),
        sa.Column("state", sa.Text(), nullable=False, server_default="pending"),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("now()")),
        sa.Column("tries", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("next_try", sa.DateTime(timezone=True), server_default=sa.text("now()")),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False, server_default=""),
        sa.Column("link_digest", sa.LargeBinary(), unique=True),
        sa.Column("content", sa.Text()),
        sa.Column("size", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("characters", sa.ARRAY(sa.Text()), nullable=False, server_default=sa.text("'{}'::text[]")),
        sa.Column("finished", sa.DateTime(timezone=True)),
        sa.Column("expires", sa.DateTime(timezone=True)),
    )
    op.create_index("ix_data_requests_user_id", "data_requests", ["user_id"])
    op.create_index("ix_data_requests_export_id", "data_requests", ["export_id"])
    op.create_index("ix_data_requests_application_id", "data_requests", ["application_id"])
    op.create_index(
        "ix_data_requests_next_try", "data_requests", ["next_try"], postgresql_where=sa.text("next_try IS NOT NULL")
    )
    op.create_index("ix_data_requests_expired", "data_requests", [sa.text("(expires AT TIME ZONE 'UTC')")])
    op.add_column("applications", sa.Column("data_secret_sealed", sa.Text()))
    # PostgreSQL checks large answers, so that no worker parses them.
    op.execute(
        """CREATE FUNCTION is_json_document(document text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN
            PERFORM document::json;
            RETURN true;
        EXCEPTION WHEN data_exception OR statement_too_complex THEN
            RETURN false;
        END $$"""
    )
