"""Runs the migrations on the connection that sso.db.migrate hands over, each in a transaction of its own."""

from typing import Any

import sqlalchemy as sa
from alembic import context

from sso.db.tables import metadata


def record_oldest_program(ctx: Any, step: Any) -> None:
    """Records which programs can use the schema after this migration: by default none but its own."""
    oldest = getattr(step.up_revision.module, "oldest_program", step.up_revision.revision)
    ctx.connection.execute(sa.text("DELETE FROM schema_compatibility"))
    ctx.connection.execute(sa.text("INSERT INTO schema_compatibility VALUES (:oldest)"), {"oldest": oldest})


def after_migration(ctx: Any, step: Any, heads: Any, run_args: Any) -> None:
    record_oldest_program(ctx, step)
    if report := context.config.attributes.get("on_version"):
        report(step.up_revision.revision)


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=True,
    on_version_apply=after_migration,
)
with context.begin_transaction():
    context.run_migrations()
