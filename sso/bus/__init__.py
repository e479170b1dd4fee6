"""Wake-ups between workers, carried by PostgreSQL or NATS."""
