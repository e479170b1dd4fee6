"""Finds the users who may have a rule, by what gives it to them, in the order of their ids.

Each source returns the next ids after a cursor, and how far it has looked: what lies behind has to be asked for again.
The work of a call is bounded, however many users have a role, a tag or a record.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.perm.stores.affected_users import limit_index_reads

MAX_FEW = 2_000  # users with an attribute; if there are more, the users are searched in the order of their ids
WINDOW = 20_000  # users or records that are searched at a time, at most: the search ends when it has found enough
# Users who are searched in the order of their ids first, for each one that is wanted: this finds a page of an attribute
# that one in a hundred has, and costs a tenth of what reading MAX_FEW users by the index does.
FIRST_USERS_PER_RESULT = 150
USER_KINDS = ("users", "user_records", "role_assignments", "group_users", "project_members")

_SNAPSHOT = Statement("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
_USERS = Statement("SELECT user_id FROM users WHERE user_id > :after ORDER BY user_id LIMIT :limit")
_HOLDERS = Statement(
    """SELECT DISTINCT holder.user_id FROM unnest(CAST(:roles AS text[])) AS role (name)
    CROSS JOIN LATERAL (
        SELECT a.user_id FROM role_assignments a
        WHERE a.application_id = :application_id AND a.name = role.name AND a.user_id > :after
        ORDER BY a.user_id LIMIT :limit) AS holder
    ORDER BY holder.user_id LIMIT :limit"""
)
_MEMBERS = Statement(
    """SELECT DISTINCT user_id FROM project_members WHERE project_id = :project_id AND user_id > :after
    ORDER BY user_id LIMIT :limit"""
)
_GROUP_USERS = Statement("SELECT user_id FROM group_users WHERE group_id = ANY(CAST(:group_ids AS text[]))")
# The domain of ``login_key`` has the form of `domain_key`.
_DOMAIN = "substring(u.login_key FROM '@([^@]*)$')"
_FEW_WITH_ATTRIBUTES = Statement(
    f"""WITH named AS MATERIALIZED (
        (SELECT u.user_id FROM users u WHERE u.tags && CAST(:tags AS text[]) LIMIT :most)
        UNION (SELECT u.user_id FROM users u WHERE u.purchases && CAST(:purchases AS text[]) LIMIT :most)
        UNION (SELECT u.user_id FROM users u WHERE {_DOMAIN} = ANY(CAST(:domains AS text[])) LIMIT :most))
    SELECT (SELECT count(*) FROM named) AS total,
        ARRAY(SELECT user_id FROM named WHERE user_id > :after ORDER BY user_id LIMIT :limit) AS ids"""
)
_MANY_WITH_ATTRIBUTES = Statement(
    f"""SELECT u.user_id FROM (
        SELECT user_id, tags, purchases, login_key FROM users
        WHERE user_id > :after ORDER BY user_id LIMIT :window) AS u
    WHERE u.tags && CAST(:tags AS text[]) OR u.purchases && CAST(:purchases AS text[])
        OR CASE WHEN cardinality(CAST(:domains AS text[])) > 0 THEN {_DOMAIN} = ANY(CAST(:domains AS text[])) END
    ORDER BY u.user_id LIMIT :limit"""
)
_LAST_USER = Statement(
    "SELECT user_id FROM users WHERE user_id > :after ORDER BY user_id OFFSET CAST(:window AS int) - 1 LIMIT 1"
)
_OWN_ENTRIES = Statement(
    """SELECT r.user_id FROM (
        SELECT user_id, private_data, public_data FROM user_records
        WHERE application_id = :application_id AND user_id > :after ORDER BY user_id LIMIT :window) AS r
    WHERE r.private_data #> CAST(:path AS text[]) IS NOT NULL OR r.public_data #> CAST(:path AS text[]) IS NOT NULL
    ORDER BY r.user_id LIMIT :limit"""
)
_LAST_RECORD = Statement(
    """SELECT user_id FROM user_records WHERE application_id = :application_id AND user_id > :after
    ORDER BY user_id OFFSET CAST(:window AS int) - 1 LIMIT 1"""
)
# Whose permission data was changed after a moment, and may have been any other at the moment.
_CHANGED_SINCE = Statement(
    """SELECT DISTINCT changed.owner AS user_id FROM unnest(CAST(:kinds AS text[])) AS kind (name)
    CROSS JOIN LATERAL (
        SELECT DISTINCT v.owner FROM permission_versions v JOIN permission_commits c ON c.id = v.commit_id
        WHERE v.kind = kind.name AND v.owner > :after AND c.at >= to_timestamp(CAST(:at AS bigint) + 1)
        ORDER BY v.owner LIMIT :limit) AS changed
    ORDER BY changed.owner LIMIT :limit"""
)


class CandidatePage(NamedTuple):
    ids: Sequence[str]  # sorted
    covered: str | None  # all candidates up to this id are in ``ids``; None: all there are


class Attributes(NamedTuple):
    """What conditions ask for: a user has one of these values."""

    tags: list[str]
    purchases: list[str]
    domains: list[str]


async def begin_snapshot(tx: Transaction) -> None:
    """All that the transaction reads is of one moment. It must be the first statement."""
    await tx.rows(_SNAPSHOT)


async def users_page(tx: Transaction, after: str, limit: int) -> CandidatePage:
    return _page(await tx.rows(_USERS, after=after, limit=limit), limit)


async def holders_page(
    tx: Transaction, application_id: int, roles: Iterable[str], after: str, limit: int
) -> CandidatePage:
    """Returns users to whom one of the roles is assigned."""
    rows = await tx.rows(_HOLDERS, application_id=application_id, roles=list(roles), after=after, limit=limit)
    return _page(rows, limit)


async def members_page(tx: Transaction, project_id: str, after: str, limit: int) -> CandidatePage:
    return _page(await tx.rows(_MEMBERS, project_id=project_id, after=after, limit=limit), limit)


async def changed_page(tx: Transaction, at: int, after: str, limit: int) -> CandidatePage:
    """Returns users whose permission data was changed after the moment."""
    rows = await tx.rows(_CHANGED_SINCE, kinds=list(USER_KINDS), at=at, after=after, limit=limit)
    return _page(rows, limit)


async def attributes_page(tx: Transaction, attributes: Attributes, after: str, limit: int) -> CandidatePage:
    """Returns users who have one of the attributes."""
    values = {**attributes._asdict(), "after": after, "limit": limit}
    first = min(FIRST_USERS_PER_RESULT * limit, WINDOW)
    page = _page(await tx.rows(_MANY_WITH_ATTRIBUTES, window=first, **values), limit)
    if page.covered is not None:
        return page
    await limit_index_reads(tx, 20 * MAX_FEW)
    few = await tx.row(_FEW_WITH_ATTRIBUTES, most=MAX_FEW + 1, **values)
    assert few is not None
    if few["total"] <= MAX_FEW:
        ids = few["ids"]
        return CandidatePage(ids, ids[-1] if len(ids) == limit else None)
    page = _page(await tx.rows(_MANY_WITH_ATTRIBUTES, window=WINDOW, **values), limit)
    if page.covered is not None:
        return page
    return page._replace(covered=await tx.value(_LAST_USER, after=after, window=WINDOW))


async def own_entries_page(
    tx: Transaction, application_id: int, path: Sequence[str], after: str, limit: int
) -> CandidatePage:
    """Returns users whose own data at the application has an entry at the path."""
    window = {"application_id": application_id, "after": after, "window": WINDOW}
    page = _page(await tx.rows(_OWN_ENTRIES, path=list(path), limit=limit, **window), limit)
    return page if page.covered is not None else page._replace(covered=await tx.value(_LAST_RECORD, **window))


async def group_members(tx: Transaction, group_ids: Iterable[str]) -> set[str]:
    """Returns the users that were added to one of the groups."""
    return {row["user_id"] for row in await tx.rows(_GROUP_USERS, group_ids=list(group_ids))}


def listed_page(user_ids: Iterable[str], after: str, limit: int) -> CandidatePage:
    """Returns the next of these ids."""
    ids = sorted(user_id for user_id in user_ids if user_id > after)[:limit]
    return CandidatePage(ids, ids[-1] if len(ids) == limit else None)


def merge_pages(pages: Iterable[CandidatePage]) -> CandidatePage:
    """Returns the ids of all pages, up to the id that all of them have covered."""
    known = list(pages)
    covered = min((page.covered for page in known if page.covered is not None), default=None)
    ids = {user_id for page in known for user_id in page.ids if covered is None or user_id <= covered}
    return CandidatePage(sorted(ids), covered)


def _page(rows: Sequence[Row], limit: int) -> CandidatePage:
    ids = [row["user_id"] for row in rows]
    return CandidatePage(ids, ids[-1] if len(ids) == limit else None)
