"""The statement that reads the facts as they were at a past moment.

Triggers store each row of the permission data as it was before a transaction changed it (``permission_versions``). A
table at a moment is therefore the oldest version of each row among the transactions that ended after the moment, and
the rows that have no such version.
"""

from sso.db.statement import Statement
from sso.perm.stores.facts_sql import application_sql, facts_sql

LATEST = 253402300799  # the end of the year 9999, which every function for times accepts

_USERS = "ARRAY[CAST(:user_id AS text)]"
_APPLICATIONS = "ARRAY[CAST(CAST(:application_id AS int) AS text)]"
_PROJECTS = "ARRAY(SELECT id FROM project_ids)"


def _versions(kind: str, owners: str) -> str:
    """Returns the rows that were changed after the moment, as they were at the moment."""
    return f"""{kind}_versions AS MATERIALIZED (
        SELECT DISTINCT ON (v.owner, v.key) v.owner, v.key, v.image
        FROM permission_versions v JOIN permission_commits c ON c.id = v.commit_id
        WHERE v.kind = '{kind}' AND v.owner = ANY ({owners}) AND c.at >= to_timestamp(CAST(:at AS bigint) + 1)
        ORDER BY v.owner, v.key, v.id)"""


def _at(table: str, owners: str, condition: str, owner: str, key: str) -> str:
    """Returns the rows of a table at the moment. ``condition`` finds the present rows of ``owners`` with an index."""
    return f"""{_versions(table, owners)},
    {table}_at AS MATERIALIZED (
        SELECT t.* FROM {table} t WHERE {condition} AND NOT EXISTS (
            SELECT FROM {table}_versions v WHERE v.owner = {owner} AND v.key = {key})
        UNION ALL
        SELECT t.* FROM {table}_versions v, jsonb_populate_record(CAST(NULL AS {table}), v.image) t
        WHERE v.image IS NOT NULL)"""


def _at_user(table: str, key: str) -> str:
    return _at(table, _USERS, "t.user_id = :user_id", "t.user_id", key)


def _at_application(table: str, key: str) -> str:
    condition = "t.application_id = CAST(:application_id AS int)"
    return _at(table, _APPLICATIONS, condition, "CAST(t.application_id AS text)", key)


# The applications of a project have versions of their own, without their schemas.
_PROJECT_APPLICATIONS_AT = f"""{_versions("project_applications", _PROJECTS)},
    project_applications_at AS MATERIALIZED (
        SELECT t.project_id, t.application_id, t.name, t.removed, t.service_meta <> '{{}}' AS is_service
        FROM applications t WHERE t.project_id = ANY ({_PROJECTS}) AND NOT EXISTS (
            SELECT FROM project_applications_versions v
            WHERE v.owner = t.project_id AND v.key = CAST(t.application_id AS text))
        UNION ALL
        SELECT t.* FROM project_applications_versions v, jsonb_to_record(v.image) AS t (
            project_id text, application_id int, name text, removed boolean, is_service boolean)
        WHERE v.image IS NOT NULL)"""

_ITEM = "(SELECT 1 AS n, CAST(:user_id AS text) AS user_id, CAST(:application_id AS int) AS application_id) item"

# The first change of the application's schema, roles or other data after the moment; NULL if there is none.
_APPLICATION_COMMIT = """(
    SELECT c.id FROM permission_versions v JOIN permission_commits c ON c.id = v.commit_id
    WHERE v.kind IN ('applications', 'roles') AND v.owner = CAST(CAST(:application_id AS int) AS text)
        AND c.at >= to_timestamp(CAST(:at AS bigint) + 1)
    ORDER BY c.at, c.id LIMIT 1)"""

# Always returns one row; without ``n`` if the application did not exist. ``now`` and ``since`` are the limits of ``at``
# in Unix seconds.
PAST_FACTS = Statement(
    f"""WITH {_at_user("users", "''")},
    {_at_user("user_records", "CAST(t.application_id AS text)")},
    {_at_user("role_assignments", "t.application_id || '/' || t.name")},
    {_at_user("group_users", "t.group_id")},
    {_at_user("project_members", "concat_ws('/', t.project_id, t.level, t.resource, t.role)")},
    {_at_application("applications", "''")},
    project_ids AS MATERIALIZED (
        SELECT project_id AS id FROM applications_at WHERE project_id IS NOT NULL
        UNION SELECT project_id FROM project_members_at WHERE CAST(:application_id AS int) = 1),
    {_PROJECT_APPLICATIONS_AT},
    {_at("projects", _PROJECTS, f"t.id = ANY ({_PROJECTS})", "t.id", "''")},
    {_at("user_groups", _PROJECTS, f"t.project_id = ANY ({_PROJECTS})", "t.project_id", "t.id")},
    facts AS ({facts_sql(_ITEM, "_at")})
    SELECT facts.*,
        {_APPLICATION_COMMIT} AS application_commit,
        CAST(floor(extract(epoch FROM clock_timestamp())) AS bigint) AS now,
        CAST(floor(extract(epoch FROM history.since)) AS bigint) AS since
    FROM permission_history history LEFT JOIN facts ON true"""
)
# The schema and the roles at the moment; no row if the application did not exist.
PAST_APPLICATION = Statement(
    f"""WITH {_at_application("applications", "''")},
    {_at_application("roles", "t.name")}
    {application_sql("CAST(:application_id AS int)", "_at")}"""
)
