"""Recovery codes, passkeys, and the time of the last authentication of a browser session."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
oldest_program = "0020"

NOW, ZERO, NONE = sa.text("now()"), sa.text("0"), sa.text("'{}'::text[]")


def upgrade() -> None:
    op.add_column("users", sa.Column("passkey_count", sa.Integer(), server_default=ZERO, nullable=False))
    op.add_column("users", sa.Column("passkey_handle", sa.LargeBinary(), nullable=True))
    op.create_unique_constraint(op.f("uq_users_passkey_handle"), "users", ["passkey_handle"])
    op.add_column("browser_sessions", sa.Column("authenticated", sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        "browser_sessions", sa.Column("must_enrol", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.create_table(
        "recovery_code_sets",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("key_sealed", sa.Text(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        _owner("recovery_code_sets"),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_recovery_code_sets")),
    )
    op.create_table(
        "recovery_codes",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        _owner("recovery_codes"),
        sa.PrimaryKeyConstraint("user_id", "digest", name=op.f("pk_recovery_codes")),
    )
    op.create_table(
        "passkeys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("credential_id", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("transports", sa.ARRAY(sa.Text()), server_default=NONE, nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("last_used", sa.DateTime(timezone=True), nullable=True),
        _owner("passkeys"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passkeys")),
        sa.UniqueConstraint("credential_id", name=op.f("uq_passkeys_credential_id")),
    )
    op.create_index("ix_passkeys_user_id", "passkeys", ["user_id"])
    op.create_table(
        "used_passkey_challenges",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_used_passkey_challenges")),
    )
    op.create_index(
        "ix_used_passkey_challenges_expired", "used_passkey_challenges", [sa.text("(expires AT TIME ZONE 'UTC')")]
    )


def _owner(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name=op.f(f"fk_{table}_user_id"), ondelete="CASCADE")
