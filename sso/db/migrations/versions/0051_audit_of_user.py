"""An index for the entries of the audit trail about the permissions of a user, which exports of personal data read."""

from alembic import op

revision = "0051"
down_revision = "0050"
oldest_program = "0049"


def upgrade() -> None:
    op.execute(
        """CREATE INDEX ix_audit_permissions_of_user ON audit (split_part(target, '/', 2), id)
        WHERE operation = 'permissions.save'"""
    )
