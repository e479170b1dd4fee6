"""Which clients may act as services: parts of statements. ``{0}`` is the row that has ``application_id``."""

# Whether neither the application nor its project was removed.
HAS_ACTIVE_APPLICATION = """EXISTS (SELECT FROM applications a LEFT JOIN projects p ON p.id = a.project_id
                WHERE a.application_id = {0}.application_id AND NOT a.removed AND p.removed IS NOT TRUE)"""
# Whether the client ``{0}`` could still get a token that manages its streams. Such tokens are not bound to a key.
MAY_HAVE_STREAMS = f"""NOT {{0}}.disabled AND 'client_credentials' = ANY ({{0}}.grant_types)
            AND NOT {{0}}.dpop_bound_access_tokens AND {HAS_ACTIVE_APPLICATION}"""
