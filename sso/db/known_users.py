"""Remembers the users of grants that are deleted, for the streams of the client and for the game that it belongs to."""

# A part of a statement, after ``deleted``, which has the columns ``client_id`` and ``user_id`` of grants or consents.
# The application of the client is asked for the data of its users, and to remove it, as long as their accounts exist.
REMEMBER_APPLICATIONS = """used AS (
        INSERT INTO used_applications (user_id, application_id)
        SELECT DISTINCT d.user_id, c.application_id FROM deleted d JOIN oauth_clients c USING (client_id)
        WHERE c.application_id > 0 ORDER BY 1, 2
        ON CONFLICT DO NOTHING
    )"""
# A part of a statement, after ``deleted``, which also has the column ``act`` of the grants.
# A site whose user has no valid tokens there may still have a session, so its streams go on to tell of the user.
REMEMBER_USERS = f"""known AS (
        INSERT INTO signal_subjects (stream_id, user_id)
        SELECT DISTINCT s.stream_id, d.user_id FROM deleted d JOIN signal_streams s USING (client_id)
        WHERE cardinality(d.act) = 0 ORDER BY 1, 2
        ON CONFLICT DO NOTHING
    ), {REMEMBER_APPLICATIONS}"""


def delete_grants(rest: str) -> str:
    """Returns a statement that deletes grants ``g`` and returns their ids. ``rest`` is its part after the table."""
    return f"""WITH deleted AS (
        DELETE FROM oauth_grants g {rest} RETURNING g.id, g.client_id, g.user_id, g.act
    ), {REMEMBER_USERS}
    SELECT id FROM deleted"""
