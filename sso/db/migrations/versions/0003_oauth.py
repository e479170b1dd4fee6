"""OAuth: authorizations, codes, grants, access tokens, consents, and a client's second secret."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "oauth_codes",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("redirect_uri", sa.Text(), server_default="", nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("nonce", sa.Text(), nullable=True),
        sa.Column("challenge", sa.Text(), nullable=True),
        sa.Column("auth_time", sa.BigInteger(), nullable=False),
        sa.Column("issued", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("redeemed", sa.DateTime(timezone=True), nullable=True),
        sa.Column("grant_id", sa.Text(), nullable=True),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["client_id"], ["oauth_clients.client_id"], name=op.f("fk_oauth_codes_client_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name=op.f("fk_oauth_codes_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_oauth_codes")),
    )
    op.create_index("ix_oauth_codes_client_id", "oauth_codes", ["client_id"], unique=False)
    op.create_index("ix_oauth_codes_expires", "oauth_codes", ["expires"], unique=False)
    op.create_index("ix_oauth_codes_user_id", "oauth_codes", ["user_id"], unique=False)
    op.create_table(
        "oauth_consents",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["client_id"], ["oauth_clients.client_id"], name=op.f("fk_oauth_consents_client_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name=op.f("fk_oauth_consents_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "client_id", name=op.f("pk_oauth_consents")),
    )
    op.create_index("ix_oauth_consents_client_id", "oauth_consents", ["client_id"], unique=False)
    op.create_table(
        "oauth_grants",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("redirect_uri", sa.Text(), server_default="", nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("nonce", sa.Text(), nullable=True),
        sa.Column("auth_time", sa.BigInteger(), nullable=False),
        sa.Column("issued", sa.BigInteger(), nullable=False),
        sa.Column("ends", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.Text(), nullable=True),
        sa.Column("head_issued", sa.BigInteger(), nullable=True),
        sa.Column("head_exp", sa.BigInteger(), nullable=True),
        sa.Column("previous", sa.Text(), nullable=True),
        sa.Column("rotated", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_used", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["client_id"], ["oauth_clients.client_id"], name=op.f("fk_oauth_grants_client_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name=op.f("fk_oauth_grants_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oauth_grants")),
    )
    op.create_index("ix_oauth_grants_client_id", "oauth_grants", ["client_id"], unique=False)
    op.create_index("ix_oauth_grants_expires", "oauth_grants", ["expires"], unique=False)
    op.create_index("ix_oauth_grants_user_id", "oauth_grants", ["user_id"], unique=False)
    op.create_table(
        "oauth_requests",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("redirect_uri", sa.Text(), server_default="", nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=True),
        sa.Column("nonce", sa.Text(), nullable=True),
        sa.Column("challenge", sa.Text(), nullable=True),
        sa.Column("prompts", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("login_hint", sa.Text(), server_default="", nullable=False),
        sa.Column("sub", sa.Text(), nullable=True),
        sa.Column("login_after", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["client_id"], ["oauth_clients.client_id"], name=op.f("fk_oauth_requests_client_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_oauth_requests")),
    )
    op.create_index("ix_oauth_requests_client_id", "oauth_requests", ["client_id"], unique=False)
    op.create_index("ix_oauth_requests_expires", "oauth_requests", ["expires"], unique=False)
    op.create_table(
        "oauth_access_tokens",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("grant_id", sa.Text(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["grant_id"], ["oauth_grants.id"], name=op.f("fk_oauth_access_tokens_grant_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_oauth_access_tokens")),
    )
    op.create_index("ix_oauth_access_tokens_expires", "oauth_access_tokens", ["expires"], unique=False)
    op.create_index("ix_oauth_access_tokens_grant_id", "oauth_access_tokens", ["grant_id"], unique=False)
    op.add_column("oauth_clients", sa.Column("second_sealed", sa.Text(), nullable=True))
