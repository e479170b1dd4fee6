"""What permissions at an application depend on for each user, read for many users at once."""

from collections import deque
from collections.abc import Iterable
from itertools import takewhile
from typing import Any, NamedTuple, Self

import orjson

from sso.accounts.model import login_key
from sso.core.ban import Ban, read_bans
from sso.core.field_errors import FieldError, FieldPath
from sso.core.test_players import IS_TEST_PLAYER_SQL
from sso.db.batch.statement import by_index
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, run_pure
from sso.perm.engine.decode import decode_own_record
from sso.perm.engine.records import OwnRecord
from sso.perm.engine.user_facts import UserFacts
from sso.perm.stores.compilation import LARGE_BYTES, MAX_STORED_BYTES

# Characters of own data; decoded, they take about ten times as many bytes.
MAX_PART_DATA = 4 * 1024 * 1024

# Memberships matter at the central application only. Records are selected as text, because they may be so large that
# they have to be decoded in a thread. Their sizes are read without the data.
_ROWS = Statement(
    f"""SELECT r.user_id, r.login, r.tags, r.purchases, r.bans,
        r.merged_into IS NOT NULL AS is_alias, r.bytes_before < :max_bytes AS is_read,
        CASE WHEN r.bytes > 0 AND r.bytes_before < :max_bytes THEN CAST(jsonb_build_object(
            'public_data', r.public_data, 'private_data', r.private_data, 'secret_data', r.secret_data) AS text)
        END AS record,
        (SELECT jsonb_agg(jsonb_build_object('name', s.name, 'expired', s.expired, 'ttl', s.ttl) ORDER BY s.position)
         FROM role_assignments s WHERE s.user_id = r.user_id AND s.application_id = :application_id) AS roles,
        CASE WHEN :application_id = 1 THEN
            (SELECT jsonb_agg(jsonb_build_array(m.project_id, m.level, m.resource, m.role, m.expired, m.ttl)
                ORDER BY m.project_id, m.position)
             FROM project_members m WHERE m.user_id = r.user_id)
        END AS members
    FROM (
        SELECT *, sum(bytes) OVER (ORDER BY n) - bytes AS bytes_before FROM (
            SELECT item.n, u.user_id, u.login, u.tags, u.purchases, u.bans, u.merged_into,
                own.public_data, own.private_data, own.secret_data, coalesce(pg_column_size(own.public_data)
                + pg_column_size(own.private_data) + pg_column_size(own.secret_data), 0) AS bytes
            FROM unnest(CAST(:ids AS text[])) WITH ORDINALITY AS item (user_id, n)
            JOIN users u ON {by_index("u.user_id", "item.user_id")}
            LEFT JOIN user_records own
                ON :with_data AND own.application_id = :application_id AND {by_index("own.user_id", "u.user_id")}
        ) AS stored
    ) AS r"""
)
_ACCOUNTS = Statement(
    """SELECT user_id, login, login_key, tags, purchases, bans,
        disabled OR ban_in_force(bans, CAST(ARRAY[] AS int[])) IS NOT NULL AS disabled FROM users
    WHERE user_id = ANY(CAST(:names AS text[])) OR login_key = ANY(CAST(:names AS text[]))"""
)
_FIRST_POWERLESS = Statement(
    f"""SELECT user_id, login = '' AS is_guest FROM users
    WHERE user_id = ANY(CAST(:ids AS text[])) AND (login = '' OR {IS_TEST_PLAYER_SQL}) LIMIT 1"""
)
_LOCK_ACCOUNTS = Statement(f"{_ACCOUNTS.text} ORDER BY user_id FOR UPDATE")


class UserRow(NamedTuple):
    """One user at one application."""

    user: UserFacts
    own: OwnRecord
    members: dict[str, list[list[Any]]]  # project id → (level, resource, role, expired, ttl)
    bans: tuple[Ban, ...] = ()
    is_alias: bool = False  # the user was merged into another one


class UserAccount(NamedTuple):
    user_id: str
    login_key: str
    facts: UserFacts
    disabled: bool  # or banned everywhere
    bans: tuple[Ban, ...]


async def read_user_rows(
    runner: Runner, application_id: int, user_ids: Iterable[str], *, with_data: bool = True
) -> dict[str, UserRow]:
    """Returns the users that exist, by id; of their own records, ``with_data``, not only the roles."""
    users: dict[str, UserRow] = {}
    async for encoded in EncodedUserReader(runner, application_id, user_ids, with_data=with_data):
        users |= await decode_users(runner, encoded)
    return users


class EncodedUsers(NamedTuple):
    rows: list[Row]
    size: int  # characters of their own data

    @property
    def is_large(self) -> bool:
        """Whether decoding them, and computing with them, takes more than a few milliseconds."""
        return self.size > LARGE_BYTES


class EncodedUserReader:
    """Reads the users that exist, in this order, in parts: with one statement, unless they have much data.

    The parts should be decoded one after the other, so that not all of the data is in memory.
    """

    def __init__(self, runner: Runner, application_id: int, user_ids: Iterable[str], *, with_data: bool = True) -> None:
        self._runner = runner
        self._values = {"application_id": application_id, "with_data": with_data}
        self._unread = list(dict.fromkeys(user_ids))
        self._rows: deque[Row] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> EncodedUsers:
        if self._unread and not self._rows:
            await self._read()
        part: list[Row] = []
        size = 0
        while self._rows and (not part or size + _size(self._rows[0]) <= MAX_PART_DATA):
            part.append(self._rows.popleft())
            size += _size(part[-1])
        if not part:
            raise StopAsyncIteration
        return EncodedUsers(part, size)

    async def _read(self) -> None:
        """Reads the next users, of whom the first one that exists is always read."""
        rows = await self._runner.rows(_ROWS, ids=self._unread, max_bytes=MAX_STORED_BYTES, **self._values)
        by_id = {row["user_id"]: row for row in rows}
        existing = [user_id for user_id in self._unread if user_id in by_id]
        read = list(takewhile(lambda user_id: by_id[user_id]["is_read"], existing))
        self._rows.extend(by_id[user_id] for user_id in read)
        self._unread = existing[len(read) :]


async def decode_users(runner: Runner, encoded: EncodedUsers) -> dict[str, UserRow]:
    """Returns the users by id. Large records are decoded in a thread."""
    return await run_pure(runner, encoded.is_large, _decode, encoded.rows)


def _size(row: Row) -> int:
    return len(row["record"] or "")


def _decode(rows: Iterable[Row]) -> dict[str, UserRow]:
    decoded = {}
    for row in rows:
        members: dict[str, list[list[Any]]] = {}
        for project_id, *role in row["members"] or ():
            members.setdefault(project_id, []).append(role)
        user = UserFacts.from_login(row["user_id"], row["login"], tuple(row["tags"]), tuple(row["purchases"]))
        own = decode_own_record({**orjson.loads(row["record"] or "{}"), "roles": row["roles"]})
        decoded[row["user_id"]] = UserRow(user, own, members, read_bans(row["bans"]), row["is_alias"])
    return decoded


async def find_user_ids(runner: Runner, logins: Iterable[str]) -> dict[str, str]:
    """Returns the ids of the users with these logins or ids, by the name that was given."""
    return user_ids_by_name(await read_accounts(runner, logins), logins)


async def require_can_administer(runner: Runner, user_ids: Iterable[str], path: FieldPath) -> None:
    """Raises FieldError if one of the users is a guest or a test player, who can have no administrative right."""
    row = await runner.row(_FIRST_POWERLESS, ids=list(user_ids))
    if row is not None:
        kind = "guest" if row["is_guest"] else "test player"
        raise FieldError(path, f"{row['user_id']} is a {kind}, and {kind}s can have no administrative rights")


def user_ids_by_name(accounts: Iterable[UserAccount], names: Iterable[str]) -> dict[str, str]:
    ids = {name: account.user_id for account in accounts for name in (account.login_key, account.user_id)}
    return {name: ids[key] for name in names for key in (login_key(name), name) if key in ids}


async def read_accounts(runner: Runner, names: Iterable[str], *, lock: bool = False) -> list[UserAccount]:
    """Returns the users with these ids or logins. They have no address, so conditions on addresses do not hold."""
    ids_and_keys = {key for name in names for key in (name, login_key(name))}
    return [
        UserAccount(
            row["user_id"],
            row["login_key"],
            UserFacts.from_login(row["user_id"], row["login"], tuple(row["tags"]), tuple(row["purchases"])),
            row["disabled"],
            read_bans(row["bans"]),
        )
        for row in await runner.rows(_LOCK_ACCOUNTS if lock else _ACCOUNTS, names=list(ids_and_keys))
    ]
