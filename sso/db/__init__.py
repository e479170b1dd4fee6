"""PostgreSQL: access from Trio, tables, migrations, and the embedded server."""
