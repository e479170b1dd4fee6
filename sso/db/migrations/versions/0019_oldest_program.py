"""The oldest program that can use the schema, so that the previous release can start during a rolling upgrade.

A migration that only adds says ``oldest_program``, the newest migration of that program. Programs from this one on read
it; older ones refuse any newer schema.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.create_table(
        "schema_compatibility",
        sa.Column("oldest_program", sa.Text),
        sa.PrimaryKeyConstraint("oldest_program", name=op.f("pk_schema_compatibility")),
    )
