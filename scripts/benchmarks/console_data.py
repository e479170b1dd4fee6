"""Fills a database for the benchmark of the console: a million users, 1,000 applications, 10 million audit entries.

Rows are written by statements, without triggers, and the indexes of the largest tables are created after their rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from scripts.benchmarks.report import progress
from tests.kit import postgres

SLICE = 500_000  # rows that one statement inserts
GROUPS_PER_APPLICATION = 100
ROLES_PER_APPLICATION = 20
FIRST_USER = 10_000_000
_QUICK = """SET session_replication_role = replica; SET synchronous_commit = off;
    SET maintenance_work_mem = '512MB'; SET max_parallel_maintenance_workers = 0;"""
_INDEXES = "SELECT string_agg(indexdef, ';') FROM pg_indexes WHERE tablename = '{table}' AND indexname LIKE 'ix_%'"


@dataclass(frozen=True)
class Sizes:
    users: int
    applications: int
    audit: int

    @property
    def game_sessions(self) -> int:
        return self.users // 10


def is_filled(dsn: str, sizes: Sizes) -> bool:
    """Returns whether an earlier run has filled the database with at least this many rows."""
    for table, count in (("users", sizes.users), ("applications", sizes.applications), ("audit", sizes.audit)):
        if postgres.fetch(dsn, f"SELECT reltuples < {count} * 0.9 FROM pg_class WHERE relname = '{table}'"):
            return False
    return True


def fill(dsn: str, sizes: Sizes) -> None:
    with _without_indexes(dsn, "users"):
        for begin, end in _slices(sizes.users):
            progress(f"filling the database: {begin:,} of {sizes.users:,} users …")
            postgres.execute(dsn, _QUICK + _USERS.format(begin=begin, end=end, first=FIRST_USER))
    for what, statement in _statements(sizes):
        progress(f"filling the database: {what} …")
        postgres.execute(dsn, f"{_QUICK} {statement}")
    with _without_indexes(dsn, "audit"):
        _fill_audit(dsn, sizes)
    progress("filling the database: statistics …")
    postgres.execute(dsn, "VACUUM (ANALYZE)")


@contextmanager
def _without_indexes(dsn: str, table: str) -> Iterator[None]:
    """The indexes of the table are created after the block, which is faster than with each row."""
    indexes = postgres.fetch(dsn, _INDEXES.format(table=table)).split(";")
    postgres.execute(dsn, f"DROP INDEX {', '.join(index.split()[2] for index in indexes)}")
    yield
    for index in indexes:
        progress(f"filling the database: {index.split()[2]} …")
        postgres.execute(dsn, f"{_QUICK} {index}")


def _fill_audit(dsn: str, sizes: Sizes) -> None:
    postgres.execute(dsn, "ALTER TABLE audit SET UNLOGGED")
    for begin, end in _slices(sizes.audit):
        progress(f"filling the database: {begin:,} of {sizes.audit:,} audit entries …")
        postgres.execute(dsn, _QUICK + _AUDIT.format(begin=begin, end=end, **vars(sizes), first=FIRST_USER))


def _slices(count: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, count, SLICE):
        yield begin, min(begin + SLICE, count) - 1


def _statements(sizes: Sizes) -> Iterator[tuple[str, str]]:
    values = {
        "users": sizes.users,
        "applications": sizes.applications,
        "sessions": sizes.game_sessions,
        "groups": GROUPS_PER_APPLICATION,
        "roles": ROLES_PER_APPLICATION,
        "first": FIRST_USER,
    }
    for what, statement in _TABLES.items():
        yield what, statement.format(**values)


_USERS = """
    INSERT INTO users (user_id, login, login_key, nick, country, tags, reg_time)
    SELECT CAST({first} + n AS text), name, name, 'nick' || CAST(n AS bigint) * 7919 % 100000, 'US',
        CASE n % 10 WHEN 0 THEN '{{tester}}'::text[] ELSE '{{}}' END, now() - n * interval '30 seconds'
    FROM generate_series({begin}, {end}) AS n, CAST('u' || n || '@example.com' AS text) AS name
"""
_AUDIT = """
    INSERT INTO audit (at, user_id, address, operation, target, application_id, before, after)
    SELECT now() - ({audit} - n) * interval '3 seconds', CAST({first} + n % 50 AS text), '192.0.2.' || n % 250,
        (ARRAY['user.save', 'data.save', 'role.save', 'client.save'])[n % 4 + 1],
        CAST({first} + CAST(n AS bigint) * 7919 % {users} AS text), 10 + n % {applications},
        jsonb_build_object('nick', 'nick' || n), jsonb_build_object('nick', 'nick' || n + 1)
    FROM generate_series({begin}, {end}) AS n
"""
_TABLES = {
    "projects": """
        INSERT INTO projects (id, title, tags, created)
        SELECT 'project' || n, 'Project ' || n, '{{project}}', now() - interval '300 days'
        FROM generate_series(1, {applications}) n;
        INSERT INTO project_names (name, project_id) SELECT id, id FROM projects ON CONFLICT DO NOTHING""",
    "applications": """
        INSERT INTO applications (application_id, name, description, project_id, private_data, created)
        OVERRIDING SYSTEM VALUE
        SELECT 9 + n, 'Game ' || n, 'A game', 'project' || n, (SELECT jsonb_object_agg('area' || area,
            (SELECT jsonb_object_agg('rule' || rule, jsonb_build_object('value', rule = 0))
                FROM generate_series(0, 4) rule)) FROM generate_series(0, 19) area), now() - interval '300 days'
        FROM generate_series(1, {applications}) n;
        SELECT setval(pg_get_serial_sequence('applications', 'application_id'), {applications} + 10)""",
    "roles": """
        INSERT INTO roles (application_id, name, description, meta, condition)
        SELECT 9 + n, 'role' || role, 'A role', jsonb_build_object('private_data', jsonb_build_object('area' || role,
            (SELECT jsonb_object_agg('rule' || rule, '{{"value": true}}'::jsonb) FROM generate_series(1, 4) rule))),
            CASE WHEN role % 4 = 0 THEN '{{"domain": "example.com"}}'::jsonb ELSE '{{}}' END
        FROM generate_series(1, {applications}) n, generate_series(0, {roles} - 1) role""",
    "assigned roles": """
        INSERT INTO role_assignments (application_id, user_id, name)
        SELECT DISTINCT 10 + n % {applications}, CAST({first} + n AS text), 'role' || n % {roles}
        FROM generate_series(0, {users} - 1) n
        UNION SELECT 10, CAST({first} + n AS text), 'role' || n % {roles} FROM generate_series(0, {users} / 100) n""",
    "members of projects": """
        INSERT INTO project_members (project_id, user_id, level, role)
        SELECT 'project' || n, CAST({first} + (n * 50 + member) * 997 % {users} AS text), 'project', 'viewer'
        FROM generate_series(1, {applications}) n, generate_series(1, 50) member ON CONFLICT DO NOTHING""",
    "groups": """
        INSERT INTO user_groups (id, project_id, title, conditions)
        SELECT substr(md5('g' || n), 1, 24), 'project' || 1 + n % {applications}, 'Group ' || n,
            '[{{"title": "Testers", "condition": {{"tag": "tester"}}}}]'
        FROM generate_series(1, {applications} * {groups}) n;
        INSERT INTO group_users (group_id, user_id, position)
        SELECT id, CAST({first} + member * 31 + length(title) AS text), member
        FROM user_groups, generate_series(1, 5) member""",
    "OAuth clients": """
        INSERT INTO oauth_clients (client_id, name, redirect_uris, profile)
        SELECT 'client' || n, 'Site ' || n, ARRAY['https://site' || n || '.example/callback'], 'oidc'
        FROM generate_series(1, {applications}) n""",
    "game sessions": """
        INSERT INTO game_sessions (gsid, location, address, gapp_id, distr, created, ends, expires, status, stage)
        SELECT CAST(gen_random_uuid() AS text), sha256(CAST(n AS text)::bytea),
            '198.51.100.' || n % 250, 10 + n % {applications}, 'steam', now() - n * interval '5 milliseconds',
            now() + interval '2 days', now() + interval '2 days', 'pending',
            (ARRAY['', 'opened', 'signing_in'])[n % 3 + 1]
        FROM generate_series(1, {sessions}) n""",
    "browser sessions and sign-ins": """
        INSERT INTO browser_sessions (digest, id, user_id, last_seen, expires, address, device)
        SELECT sha256(CAST('b' || n AS bytea)), 'b' || n, CAST({first} + n AS text), now(),
            now() + interval '30 days', '192.0.2.1', 'Firefox' FROM generate_series(0, {users} / 5) n;
        INSERT INTO sign_ins (id, user_id, last_used, expires, address, gapp_id)
        SELECT 's' || n, CAST({first} + n AS text), now(), now() + interval '30 days', '192.0.2.1',
            10 + n % {applications} FROM generate_series(0, {users} / 5) n""",
    "invitations": """
        INSERT INTO mailed_links (digest, purpose, data, expires)
        SELECT sha256(CAST('i' || n AS bytea)), 'invitation', jsonb_build_object('id', 'invitation' || n,
            'login', 'guest' || n || '@example.com'), now() + interval '7 days' FROM generate_series(1, 500) n""",
    "logins by day": """
        INSERT INTO login_funnel (day, application_id, store, registered, opened, signed_in, confirmed, delivered,
            closed, expires)
        SELECT current_date - day, 10 + n, store, 900, 800, 700, 600, 500, 10, now() + interval '60 days'
        FROM generate_series(0, 29) day, generate_series(0, {applications} - 1) n, unnest(ARRAY['steam', 'epic', ''])
            AS store""",
    "the history of permissions": """
        UPDATE permission_history SET since = now() - interval '200 days';
        INSERT INTO permission_commits (at) SELECT now() - n * interval '20 seconds' FROM generate_series(1, 200000) n;
        INSERT INTO permission_versions (commit_id, kind, owner, key, image)
        SELECT id, 'role_assignments', CAST({first} + id AS text), 10 + id % {applications} || '/role' || id % {roles},
            NULL FROM permission_commits""",
}
