"""Clients can have streams of signals about their users (Shared Signals Framework)."""

import sqlalchemy as sa
from alembic import op

revision = "0071"
down_revision = "0070"
oldest_program = "0049"


def _moment(name: str, *, is_now: bool = False) -> sa.Column[object]:
    return sa.Column(
        name,
        sa.DateTime(timezone=True),
        nullable=not is_now,
        server_default=sa.text("now()") if is_now else None,
    )


def _text(name: str, default: str = "") -> sa.Column[object]:
    return sa.Column(name, sa.Text(), nullable=False, server_default=default)


def _texts(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.ARRAY(sa.Text()), nullable=False, server_default=sa.text("'{}'::text[]"))


def _flag(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.text("false"))


def _reference(name: str, target: str) -> sa.Column[object]:
    return sa.Column(name, sa.Text(), sa.ForeignKey(target, ondelete="CASCADE"), nullable=False)


def upgrade() -> None:
    op.add_column("oauth_service_tokens", _texts("scopes"))
    op.create_table(
        "signal_streams",
        sa.Column("stream_id", sa.Text(), primary_key=True),
        _reference("client_id", "oauth_clients.client_id"),
        _moment("created", is_now=True),
        _text("description"),
        _text("method", "poll"),
        _text("endpoint_url"),
        sa.Column("authorization_sealed", sa.Text()),
        _texts("requested"),
        _texts("events"),
        _text("status", "enabled"),
        _text("reason"),
        _flag("overfull"),
        _moment("verified"),
        _text("lease"),
        _moment("lease_until", is_now=True),
        sa.Column("tries", sa.Integer(), nullable=False, server_default=sa.text("0")),
        _moment("next_try", is_now=True),
        _moment("failing_since"),
        _text("problem"),
        _moment("last_delivery"),
    )
    op.create_index("ix_signal_streams_client_id", "signal_streams", ["client_id"])
    op.create_table(
        "signal_subjects",
        _reference("stream_id", "signal_streams.stream_id"),
        _reference("user_id", "users.user_id"),
        _flag("excluded"),
        sa.PrimaryKeyConstraint("stream_id", "user_id", name="pk_signal_subjects"),
    )
    op.create_index("ix_signal_subjects_user_id", "signal_subjects", ["user_id"])
    op.create_table(
        "signal_events",
        sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True),
        _reference("stream_id", "signal_streams.stream_id"),
        sa.Column("jti", sa.Text(), nullable=False, server_default=sa.text("(gen_random_uuid())::text")),
        _moment("at", is_now=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("sub", sa.Text()),
        sa.Column("sid", sa.Text()),
        sa.Column("email", sa.Text()),
        sa.Column("data", sa.dialects.postgresql.JSONB(), nullable=False, server_default=sa.text("'{}'::jsonb")),
        sa.Column("txn", sa.Text(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_signal_events_stream_id", "signal_events", ["stream_id", "id"])
    op.create_index("ix_signal_events_sub", "signal_events", ["sub"], postgresql_where=sa.text("sub IS NOT NULL"))
    op.create_index("ix_signal_events_expired", "signal_events", [sa.text("(expires AT TIME ZONE 'UTC')")])
