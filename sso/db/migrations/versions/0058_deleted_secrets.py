"""The secrets of deleted records are kept while their deletion can be undone."""

from alembic import op

revision = "0058"
down_revision = "0057"
oldest_program = "0049"


def upgrade() -> None:
    op.execute(
        """CREATE TABLE deleted_secrets (
            entry_id bigint NOT NULL,
            secrets_sealed text NOT NULL,
            expires timestamp with time zone NOT NULL,
            CONSTRAINT pk_deleted_secrets PRIMARY KEY (entry_id)
        )"""
    )
    op.execute("CREATE INDEX ix_deleted_secrets_expired ON deleted_secrets ((expires AT TIME ZONE 'UTC'))")
