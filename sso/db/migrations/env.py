"""Runs the migrations on the connection that sso.db.migrate hands over, each in a transaction of its own."""

from alembic import context

from sso.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, transaction_per_migration=True
)
with context.begin_transaction():
    context.run_migrations()
