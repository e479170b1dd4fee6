"""Sign-in with other providers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0025"
down_revision = "0024"
oldest_program = "0020"


def upgrade() -> None:
    op.create_table(
        "identity_providers",
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("issuer", sa.Text(), server_default="", nullable=False),
        sa.Column("client_id", sa.Text(), server_default="", nullable=False),
        sa.Column("secret_sealed", sa.Text(), nullable=True),
        sa.Column("scopes", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("authorization_url", sa.Text(), server_default="", nullable=False),
        sa.Column("token_url", sa.Text(), server_default="", nullable=False),
        sa.Column("userinfo_url", sa.Text(), server_default="", nullable=False),
        sa.Column("claims", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("position", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("trusted_email", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("trusted_second_factor", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("keep_tokens", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("provider_id", name=op.f("pk_identity_providers")),
    )
    op.create_table(
        "linked_identities",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("tokens_sealed", sa.Text(), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_used", sa.DateTime(timezone=True), nullable=False),
        _provider_key("linked_identities"),
        _user_key("linked_identities"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_linked_identities")),
        sa.UniqueConstraint("provider_id", "subject", name="uq_linked_identities_subject"),
    )
    op.create_index("ix_linked_identities_user_id", "linked_identities", ["user_id"])
    op.create_table(
        "upstream_attempts",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("browser", sa.LargeBinary(), nullable=False),
        sa.Column("next", sa.Text(), server_default="", nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        _provider_key("upstream_attempts"),
        _user_key("upstream_attempts"),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_upstream_attempts")),
    )
    op.create_table(
        "upstream_nonces",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_upstream_nonces")),
    )
    op.create_table(
        "pending_identities",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("identity_sealed", sa.Text(), nullable=False),
        sa.Column("next", sa.Text(), server_default="", nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        _provider_key("pending_identities"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pending_identities")),
    )
    for table in ("upstream_attempts", "upstream_nonces", "pending_identities"):
        op.create_index(f"ix_{table}_expired", table, [sa.text("(expires AT TIME ZONE 'UTC')")])


def _provider_key(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["provider_id"], ["identity_providers.provider_id"], name=op.f(f"fk_{table}_provider_id"), ondelete="CASCADE"
    )


def _user_key(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name=op.f(f"fk_{table}_user_id"), ondelete="CASCADE")
