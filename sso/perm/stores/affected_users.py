"""Finds the users whom a change of permissions may concern by what they have, and the applications with conditions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction

_ALL_USERS = Statement("SELECT user_id FROM users ORDER BY user_id LIMIT :limit")
_COUNT_USERS = Statement("SELECT count(*) FROM (SELECT FROM users LIMIT :limit) AS counted")
# The domain of ``login_key`` has the form of `domain_key`. Many users may have a tag: without a limit of their own, all
# of them would be read before the first one is returned.
_NAMED = """WITH named AS (
        SELECT item.user_id FROM unnest(CAST(:users AS text[])) AS item (user_id)
        UNION SELECT s.user_id FROM role_assignments s
            WHERE s.application_id = :application_id AND (s.name = ANY(CAST(:roles AS text[])) OR :all_records)
        UNION SELECT r.user_id FROM user_records r WHERE r.application_id = :application_id AND :all_records
        UNION SELECT m.user_id FROM project_members m
            WHERE :application_id = 1 AND m.role = ANY(CAST(:roles AS text[]))
        UNION (SELECT u.user_id FROM users u WHERE :by_attribute AND (
            u.tags && CAST(:tags AS text[]) OR u.purchases && CAST(:purchases AS text[])
            OR substring(u.login_key FROM '@([^@]*)$') = ANY(CAST(:domains AS text[]))) LIMIT :limit))"""
_FIND = Statement(f"{_NAMED} SELECT u.user_id FROM named JOIN users u USING (user_id) LIMIT :limit")
_COUNT = Statement(
    f"{_NAMED} SELECT count(*) FROM (SELECT FROM named JOIN users u USING (user_id) LIMIT :limit) AS counted"
)
# An index on arrays reads all rows with a value; with this setting it returns some of them if there are many more.
_LIMIT_INDEX_READS = Statement("SELECT set_config('gin_fuzzy_search_limit', :rows, true)")
_WITH_OWN_ENTRY = Statement(
    """SELECT user_id FROM user_records WHERE application_id = :application_id
        AND (private_data #> CAST(:path AS text[]) IS NOT NULL OR public_data #> CAST(:path AS text[]) IS NOT NULL)
    ORDER BY user_id LIMIT :limit"""
)
_HOLDERS = Statement(
    """SELECT user_id FROM role_assignments WHERE application_id = :application_id AND name = :name
    UNION SELECT user_id FROM project_members WHERE :application_id = 1 AND role = :name LIMIT :limit"""
)
# Applications where an attribute of a user matters: in a condition of a role, or of a group that gets roles, or in
# the allowed domains of a project that gives roles. Values are compared as they are written in JSON.
_WITH_CONDITIONS = Statement(
    """WITH part AS (SELECT to_jsonb(value)::text AS text FROM unnest(CAST(:values AS text[])) AS value)
    SELECT r.application_id FROM roles r
    WHERE EXISTS (SELECT FROM part WHERE strpos(r.condition::text, part.text) > 0)
    UNION SELECT a.application_id FROM applications a JOIN projects p ON p.id = a.project_id
    WHERE p.settings -> 'services' ? a.application_id::text AND (
        EXISTS (SELECT FROM user_groups g, part WHERE g.project_id = p.id AND strpos(g.conditions::text, part.text) > 0)
        OR (:domain AND p.settings ? 'allowed_domains'))"""
)


async def find_candidates(runner: Runner, criteria: Mapping[str, Any] | None, limit: int) -> list[str]:
    """Returns the ids of users who exist and meet one of the criteria. None is met by every user."""
    if criteria is None:
        rows = await runner.rows(_ALL_USERS, limit=limit)
    else:
        rows = await runner.rows(_FIND, limit=limit, **criteria)
    return [row["user_id"] for row in rows]


async def limit_index_reads(tx: Transaction, rows: int) -> None:
    """Makes the indexes on tags and purchases return about so many rows at most, until the end of the transaction."""
    await tx.value(_LIMIT_INDEX_READS, rows=str(rows))


async def count_candidates(runner: Runner, criteria: Mapping[str, Any] | None, limit: int) -> int:
    """Counts the users who meet one of the criteria, up to ``limit``."""
    statement, values = (_COUNT_USERS, {}) if criteria is None else (_COUNT, criteria)
    number: int = await runner.value(statement, limit=limit, **values)
    return number


async def find_users_with_entry(runner: Runner, application_id: int, path: Sequence[str], limit: int) -> list[str]:
    """Returns the ids of users whose own data at the application has an entry at the path."""
    rows = await runner.rows(_WITH_OWN_ENTRY, application_id=application_id, path=list(path), limit=limit)
    return [row["user_id"] for row in rows]


async def find_holders_of(runner: Runner, application_id: int, role: str, limit: int) -> list[str]:
    """Returns the ids of users with the role, by assignment or by membership."""
    rows = await runner.rows(_HOLDERS, application_id=application_id, name=role, limit=limit)
    return [row["user_id"] for row in rows]


async def applications_with_conditions(runner: Runner, attributes: Iterable[str]) -> set[int]:
    """Returns the applications where a difference of these attributes of a user may matter."""
    values = list(attributes)
    rows = await runner.rows(_WITH_CONDITIONS, values=values, domain="domain" in values)
    return {row["application_id"] for row in rows}
