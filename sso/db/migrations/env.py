"""Runs the migrations on the connection that sso.db.migrate hands over, each in a transaction of its own."""

from alembic import context

from sso.db.tables import metadata

on_version = context.config.attributes["on_version"]

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=True,
    on_version_apply=lambda *, step, **_: on_version(step.up_revision_id),
)
with context.begin_transaction():
    context.run_migrations()
