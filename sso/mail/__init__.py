"""Mail to users: the outbox, its sender, and delivery by SMTP."""
