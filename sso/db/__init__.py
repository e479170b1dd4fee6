"""PostgreSQL: the bridge to it, its tables and migrations, the embedded server, and wake-ups between processes."""
