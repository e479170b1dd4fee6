"""What a replica of an application keeps: the application's roles, and of each user what they are compared with.

A user is a row of JSON: user id, domain, tags, purchases, whether the user is a guest, bans, own data, assigned roles,
and groups of the application's project. The row of a user who was merged into another one ends with the id of that one.
Attributes that no condition of the application names are left out, and so is all secret data but the right on which the
names of public rules depend.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sso.core.domains import domain_key
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

MAX_PAGE_USERS = 5000
MAX_PAGE_BYTES = 8 * 1024 * 1024  # of rows; the user with whom a page exceeds it is its last one

# The version changes with every row that the definition is read from. See `version_sql`.
_VERSION = """concat(a.revision, '-', a.xmin, '-', p.xmin, '-', (
    SELECT md5(string_agg(concat(g.id, ':', g.xmin), ',' ORDER BY g.id))
    FROM user_groups g WHERE g.project_id = p.id))"""
_READ_VERSION = Statement(
    f"""SELECT {_VERSION} AS version
    FROM applications a LEFT JOIN projects p ON p.id = a.project_id WHERE a.application_id = :application_id"""
)
_RIGHT = "{meta,public,canWrite}"  # in secret_data
_SERVICES = """CASE WHEN p.settings -> 'services' ? CAST(a.application_id AS text) THEN jsonb_build_object(
    CAST(a.application_id AS text), p.settings -> 'services' -> CAST(a.application_id AS text)) END"""
_DEFINITION = Statement(
    f"""SELECT {_VERSION} AS version, CAST(jsonb_build_object(
        'application_id', a.application_id, 'name', a.name, 'removed', a.removed, 'revision', a.revision,
        'schema', jsonb_build_object('public_data', a.public_data, 'private_data', a.private_data,
            'public_can_write', a.secret_data #> '{_RIGHT}'),
        'roles', (
            SELECT coalesce(jsonb_agg(jsonb_build_object('name', r.name, 'protected', r.protected, 'default', r.default,
                'condition', r.condition, 'params', r.params, 'meta', jsonb_build_object(
                    'public_data', r.meta -> 'public_data', 'private_data', r.meta -> 'private_data'))
                ORDER BY r.name), '[]')
            FROM roles r WHERE r.application_id = a.application_id),
        'project', CASE WHEN p.id IS NOT NULL THEN jsonb_build_object(
            'id', p.id, 'title', p.title, 'aliases', p.aliases, 'removed', p.removed,
            'allow', p.allow, 'disallow', p.disallow,
            'settings', jsonb_build_object('allowed_domains', p.settings -> 'allowed_domains', 'services', {_SERVICES}),
            'groups', (
                SELECT coalesce(jsonb_agg(jsonb_build_array(g.id, g.title, g.conditions, g.tags) ORDER BY g.id), '[]')
                FROM user_groups g WHERE g.project_id = p.id)) END) AS text) AS definition,
        (SELECT jsonb_agg(r.condition) FROM roles r WHERE r.application_id = a.application_id) AS conditions,
        (SELECT jsonb_agg(g.conditions) FROM user_groups g WHERE g.project_id = p.id) AS group_conditions,
        p.id AS project_id, p.settings -> 'allowed_domains' AS allowed_domains
    FROM applications a LEFT JOIN projects p ON p.id = a.project_id WHERE a.application_id = :application_id"""
)
_USER = f"""jsonb_build_array(
    u.user_id,
    (SELECT domain FROM substring(u.login_key FROM '@([^@]*)$') AS domain
        WHERE domain = ANY (CAST(:domains AS text[]))),
    (SELECT jsonb_agg(tag) FROM unnest(u.tags) AS tag WHERE tag = ANY (CAST(:tags AS text[]))),
    (SELECT jsonb_agg(item) FROM unnest(u.purchases) AS item WHERE item = ANY (CAST(:purchases AS text[]))),
    u.login = '',
    (SELECT jsonb_agg(ban) FROM jsonb_array_elements(u.bans) AS ban
        WHERE coalesce(CAST(ban ->> 'application_id' AS int) = CAST(:application_id AS int), true)
            AND coalesce(ban ->> 'project_id' IS NOT DISTINCT FROM CAST(:project_id AS text)
                OR ban ->> 'project_id' IS NULL, true)),
    (SELECT jsonb_build_array(r.public_data, r.private_data, r.secret_data #> '{_RIGHT}')
        FROM user_records r WHERE r.user_id = u.user_id AND r.application_id = CAST(:application_id AS int)),
    (SELECT jsonb_agg(jsonb_build_array(s.name, s.expired, s.ttl) ORDER BY s.position) FROM role_assignments s
        WHERE s.user_id = u.user_id AND s.application_id = CAST(:application_id AS int)),
    (SELECT jsonb_agg(gu.group_id ORDER BY gu.group_id) FROM group_users gu JOIN user_groups g ON g.id = gu.group_id
        WHERE gu.user_id = u.user_id AND g.project_id = CAST(:project_id AS text))
    ) || CASE WHEN u.merged_into IS NULL THEN CAST('[]' AS jsonb) ELSE jsonb_build_array(u.merged_into) END"""


def _rows_of(users: str) -> Statement:
    """Returns the statement for a page of rows. ``users`` selects the users, sorted by ``place``.

    Each user takes one of the parts of a page, and another one for each ``part_bytes`` of the row. So the LIMIT ends a
    page with large rows early: PostgreSQL builds no row that does not fit, since no step has to sort. NULL is no limit.
    """
    return Statement(
        f"""SELECT coalesce(array_agg(user_id) FILTER (WHERE part = 0), '{{}}') AS user_ids,
            coalesce(string_agg(encoded, ',') FILTER (WHERE part = 0), '') AS rows,
            coalesce(count(*) = CAST(:max_parts AS bigint), false) AS is_full
        FROM (
            SELECT user_id, encoded, generate_series(0, octet_length(encoded) / CAST(:part_bytes AS int)) AS part
            FROM (
                SELECT u.user_id, u.place, CAST({_USER} AS text) AS encoded
                FROM ({users}) AS u ORDER BY u.place) AS built
            ORDER BY place LIMIT CAST(:max_parts AS bigint)) AS parts"""
    )


_COLUMNS = "u.user_id, u.login, u.login_key, u.tags, u.purchases, u.bans, u.merged_into"
_PAGE = _rows_of(
    f"SELECT {_COLUMNS}, u.user_id AS place FROM users u WHERE u.user_id > :after ORDER BY u.user_id LIMIT :limit"
)
_BY_ID = _rows_of(
    f"""SELECT {_COLUMNS}, r.place FROM unnest(CAST(:ids AS text[])) WITH ORDINALITY AS r (user_id, place)
    JOIN users u ON u.user_id = r.user_id ORDER BY r.place"""
)


class NamedAttributes(NamedTuple):
    """The attributes of users that conditions of an application compare with."""

    project_id: str | None
    domains: list[str]
    tags: list[str]
    purchases: list[str]


class ReplicaDefinition(NamedTuple):
    version: str
    json: str
    attributes: NamedAttributes


class ReplicaUsers(NamedTuple):
    """``is_full``: the page ends with its last user because of its size, and others may follow."""

    json: str  # rows, separated by commas
    user_ids: list[str]  # in the order of the rows
    is_full: bool

    def unread(self, requested: Sequence[str]) -> Sequence[str]:
        """Returns the users, of those who were requested, whom the page has no room for."""
        return requested[requested.index(self.user_ids[-1]) + 1 :] if self.is_full else ()


async def read_version(runner: Runner, application_id: int) -> str | None:
    """Returns None if the application does not exist."""
    version: str | None = await runner.value(_READ_VERSION, application_id=application_id)
    return version


async def read_definition(runner: Runner, application_id: int) -> ReplicaDefinition | None:
    row = await runner.row(_DEFINITION, application_id=application_id)
    return None if row is None else ReplicaDefinition(row["version"], row["definition"], _attributes(row))


async def read_page(
    runner: Runner, application_id: int, attributes: NamedAttributes, after: str, limit: int
) -> ReplicaUsers:
    """Returns the users whose ids follow ``after``, as many as fit into a page."""
    values = {"application_id": application_id, "after": after, "limit": limit, **attributes._asdict()}
    return await _read_rows(runner, _PAGE, values, MAX_PAGE_USERS)


async def read_users(
    runner: Runner, application_id: int, attributes: NamedAttributes, user_ids: Sequence[str], *, whole: bool = False
) -> ReplicaUsers:
    """Returns those of the users that exist, in this order, as many as fit into a page; with ``whole``, all of them."""
    values = {"application_id": application_id, "ids": user_ids, **attributes._asdict()}
    return await _read_rows(runner, _BY_ID, values, None if whole else MAX_PAGE_USERS)


async def _read_rows(
    runner: Runner, statement: Statement, values: dict[str, Any], max_parts: int | None
) -> ReplicaUsers:
    part_bytes = MAX_PAGE_BYTES // MAX_PAGE_USERS
    row = await runner.row(statement, **values, max_parts=max_parts, part_bytes=part_bytes)
    assert row is not None  # an aggregate always has one
    return ReplicaUsers(row["rows"], row["user_ids"], row["is_full"])


def _attributes(row: Row) -> NamedAttributes:
    named: dict[str, set[str]] = {"domain": set(), "tag": set(), "purchase": set()}
    _collect([row["conditions"], row["group_conditions"]], named)
    domains = {domain_key(domain) for domain in (*named["domain"], *(row["allowed_domains"] or ()))}
    return NamedAttributes(row["project_id"], sorted(domains), sorted(named["tag"]), sorted(named["purchase"]))


def _collect(stored: object, named: dict[str, set[str]]) -> None:
    if isinstance(stored, list):
        for item in stored:
            _collect(item, named)
    elif isinstance(stored, dict):
        for name, value in stored.items():
            if name in named and isinstance(value, str):
                named[name].add(value)
            else:
                _collect(value, named)
