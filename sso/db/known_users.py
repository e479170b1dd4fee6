"""Keeps it known to the streams of a client which users it has had grants of, when the grants are deleted."""

# A part of a statement, after ``deleted``, which has the columns ``client_id``, ``user_id`` and ``act`` of the grants.
# A site whose user has no valid tokens there may still have a session, so its streams go on to tell of the user.
REMEMBER_USERS = """known AS (
        INSERT INTO signal_subjects (stream_id, user_id)
        SELECT DISTINCT s.stream_id, d.user_id FROM deleted d JOIN signal_streams s USING (client_id)
        WHERE cardinality(d.act) = 0 ORDER BY 1, 2
        ON CONFLICT DO NOTHING
    )"""


def delete_grants(rest: str) -> str:
    """Returns a statement that deletes grants ``g`` and returns their ids. ``rest`` is its part after the table."""
    return f"""WITH deleted AS (
        DELETE FROM oauth_grants g {rest} RETURNING g.id, g.client_id, g.user_id, g.act
    ), {REMEMBER_USERS}
    SELECT id FROM deleted"""
