"""The SQL that reads the facts, from the tables or from what they contained at another moment."""

_PRESENT_PROJECT_APPLICATIONS = """(
    SELECT project_id, application_id, name, removed, service_meta <> '{}' AS is_service FROM applications)"""


def facts_sql(items: str, suffix: str = "", more: str = "") -> str:
    """Selects the facts about each user and application of ``items``, a table ``item`` with ``n`` and both ids.

    ``more`` is added to the selected columns. JSON is selected as text, because it may be so large that it has to be
    decoded in a thread.

    ``suffix`` is added to the names of the tables; ``project_applications`` is then one of them. Project access is
    reported with the central application only, so memberships are read only for it.
    """
    project_applications = f"project_applications{suffix}" if suffix else _PRESENT_PROJECT_APPLICATIONS
    project = f"""jsonb_build_object(
        'id', p.id, 'title', p.title, 'aliases', p.aliases, 'removed', p.removed, 'settings', p.settings,
        'allow', p.allow, 'disallow', p.disallow,
        'applications', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(x.application_id, x.name, x.removed, x.is_service)
                ORDER BY x.application_id), '[]')
            FROM {project_applications} x WHERE x.project_id = p.id),
        'groups', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(g.id, g.title, g.conditions, g.tags, EXISTS (
                SELECT 1 FROM group_users{suffix} gu WHERE gu.group_id = g.id AND gu.user_id = item.user_id))
                ORDER BY g.id), '[]')
            FROM user_groups{suffix} g WHERE g.project_id = p.id),
        'members', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(m.level, m.resource, m.role, m.expired, m.ttl)
                ORDER BY m.position), '[]')
            FROM project_members{suffix} m WHERE m.project_id = p.id AND m.user_id = item.user_id))"""
    return f"""SELECT item.n, u.login, u.tags, u.purchases, CAST(u.bans AS text) AS bans,
        u.user_id IS NOT NULL AS known, a.removed, a.revision, a.name AS app_name,
        CAST(a.settings AS text) AS app_settings,
        (SELECT CAST(jsonb_build_object('login', r.login, 'public_data', r.public_data, 'private_data', r.private_data,
            'secret_data', r.secret_data) AS text)
         FROM user_records{suffix} r
         WHERE r.user_id = item.user_id AND r.application_id = item.application_id) AS record,
        (SELECT CAST(jsonb_agg(jsonb_build_object('name', s.name, 'expired', s.expired, 'ttl', s.ttl)
            ORDER BY s.position) AS text)
         FROM role_assignments{suffix} s
         WHERE s.user_id = item.user_id AND s.application_id = item.application_id) AS roles,
        (SELECT CAST({project} AS text) FROM projects{suffix} p WHERE p.id = a.project_id) AS home,
        CASE WHEN item.application_id = 1 THEN
            (SELECT CAST(jsonb_agg({project}) AS text) FROM projects{suffix} p
             WHERE p.id IN (SELECT m.project_id FROM project_members{suffix} m WHERE m.user_id = item.user_id))
        END AS projects{more}
    FROM {items}
    JOIN applications{suffix} a ON a.application_id = item.application_id
    LEFT JOIN users{suffix} u ON u.user_id = item.user_id"""


def version_sql(user_id: str, user: str = "u", application: str = "a") -> str:
    """Returns a text that changes with every row that `facts_sql` reads about a user at an application.

    It has the id of the transaction that wrote each of the rows (``xmin``). A transaction that changes or adds a row
    has an id that no row had before, and one that only removes rows makes the text shorter. So a text never comes back
    with other rows. ``user`` and ``application`` are rows of their tables; ``user`` may be missing.
    """
    project = f"""concat(p.xmin, ':',
        (SELECT string_agg(CAST(x.xmin AS text), ',') FROM applications x WHERE x.project_id = p.id), ':',
        (SELECT string_agg(CAST(g.xmin AS text), ',') FROM user_groups g WHERE g.project_id = p.id), ':',
        (SELECT string_agg(CAST(m.xmin AS text), ',') FROM project_members m
         WHERE m.project_id = p.id AND m.user_id = {user_id}))"""
    return f"""concat({user}.xmin, ';', {application}.xmin, ';',
        (SELECT r.xmin FROM user_records r
         WHERE r.user_id = {user_id} AND r.application_id = {application}.application_id), ';',
        (SELECT string_agg(CAST(s.xmin AS text), ',') FROM role_assignments s
         WHERE s.user_id = {user_id} AND s.application_id = {application}.application_id), ';',
        (SELECT string_agg(CAST(gu.xmin AS text), ',') FROM group_users gu WHERE gu.user_id = {user_id}), ';',
        (SELECT {project} FROM projects p WHERE p.id = {application}.project_id), ';',
        CASE WHEN {application}.application_id = 1 THEN
            (SELECT string_agg({project}, ' ') FROM projects p
             WHERE p.id IN (SELECT m.project_id FROM project_members m WHERE m.user_id = {user_id}))
        END)"""


def application_sql(application_id: str, suffix: str = "") -> str:
    """Selects the schema and the roles of an application, from tables with this suffix.

    JSON is selected as text, because it may be so large that it has to be decoded in a thread.
    """
    return f"""SELECT a.revision, CAST(a.login AS text), CAST(a.public_data AS text), CAST(a.private_data AS text),
        CAST(a.secret_data AS text),
        ARRAY(SELECT CAST(to_jsonb(r) - 'application_id' AS text) FROM roles{suffix} r
            WHERE r.application_id = a.application_id ORDER BY r.name) AS roles
    FROM applications{suffix} a WHERE a.application_id = {application_id}"""
