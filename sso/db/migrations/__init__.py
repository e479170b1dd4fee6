"""The migrations of the database schema, which alembic runs."""
