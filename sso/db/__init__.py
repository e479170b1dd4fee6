"""PostgreSQL: access from Trio, tables, migrations, the embedded server, and notifications between processes."""
