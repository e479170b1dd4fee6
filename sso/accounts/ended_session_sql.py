"""Sessions that someone ended elsewhere are remembered: a browser that still has one of their cookies is told why."""

# The last part of a statement that has deleted the sessions ``ended``.
REMEMBER_ENDED = """INSERT INTO ended_sessions (digest, user_id, expires)
    SELECT digest, user_id, now() + interval '30 days' FROM ended ON CONFLICT DO NOTHING"""
