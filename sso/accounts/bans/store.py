"""Bans in the database. ``users.bans`` is a copy of the user's bans, which `refresh` writes."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from sso.core.ban import Ban
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

_AS_JSON = """jsonb_build_object('ban_id', b.id, 'reason', b.reason, 'until', b.until,
    'application_id', b.application_id, 'project_id', b.project_id)"""
_INSERT = Statement(
    """INSERT INTO user_bans (id, user_id, application_id, project_id, until, reason, note, author)
    VALUES (:id, :user_id, :application_id, :project_id, :until, :reason, :note, :author) RETURNING *"""
)
_REFRESH = Statement(
    f"""UPDATE users SET bans = (SELECT jsonb_agg({_AS_JSON} ORDER BY b.created, b.id) FROM user_bans b
        WHERE b.user_id = users.user_id)
    WHERE user_id = :user_id"""
)
_LIST = Statement("SELECT * FROM user_bans WHERE user_id = :user_id ORDER BY created, id")
_GET = Statement("SELECT * FROM user_bans WHERE user_id = :user_id AND id = :id")
_DELETE = Statement("DELETE FROM user_bans WHERE user_id = :user_id AND id = :id RETURNING *")
_COUNT = Statement("SELECT count(*) FROM user_bans WHERE user_id = :user_id")
_FIND_ENDED = Statement(
    "SELECT id, user_id FROM user_bans WHERE until <= extract(epoch FROM now()) ORDER BY until LIMIT :limit"
)
_EXISTS = {
    "application_id": Statement("SELECT EXISTS (SELECT FROM applications WHERE application_id = :id AND NOT removed)"),
    "project_id": Statement("SELECT EXISTS (SELECT FROM projects WHERE id = :id AND NOT removed)"),
}
_PROJECT_OF = Statement("SELECT project_id FROM applications WHERE application_id = :application_id")
_APPLICATIONS = Statement(
    """SELECT coalesce(array_agg(application_id), '{}') FROM applications
    WHERE application_id = :application_id OR project_id = :project_id"""
)
# Sign-ins of programs to the applications of a scope. Their tokens stay, without effect, so that the program can be
# told why.
_END_SIGN_INS = Statement(
    """UPDATE sign_ins SET ended = true WHERE id IN (
        SELECT id FROM sign_ins WHERE user_id = :user_id AND NOT ended AND (
            app_id = ANY (CAST(:applications AS int[])) OR gapp_id = ANY (CAST(:applications AS int[])))
        ORDER BY id FOR UPDATE
    )"""
)


class StoredBan(Struct, frozen=True):
    ban: Ban
    user_id: str
    note: str
    author: str
    created: datetime

    @classmethod
    def from_row(cls, row: Row) -> "StoredBan":
        ban = Ban(row["id"], row["reason"], row["until"], row["application_id"], row["project_id"])
        return cls(ban, row["user_id"], row["note"], row["author"], row["created"])


async def insert_ban(tx: Runner, ban: Ban, user_id: str, note: str, author: str) -> StoredBan:
    row = await tx.row(
        _INSERT,
        id=ban.ban_id,
        user_id=user_id,
        application_id=ban.application_id,
        project_id=ban.project_id,
        until=ban.until,
        reason=ban.reason,
        note=note,
        author=author,
    )
    assert row is not None
    await refresh(tx, user_id)
    return StoredBan.from_row(row)


async def delete_ban(tx: Runner, user_id: str, ban_id: str) -> StoredBan | None:
    """Returns the ban, or None if the user has no such ban. Of several concurrent calls, one returns it."""
    row = await tx.row(_DELETE, user_id=user_id, id=ban_id)
    if row is None:
        return None
    await refresh(tx, user_id)
    return StoredBan.from_row(row)


async def refresh(tx: Runner, user_id: str) -> None:
    """Copies the bans to the user's row, after they were changed."""
    await tx.value(_REFRESH, user_id=user_id)


async def list_bans(runner: Runner, user_id: str) -> list[StoredBan]:
    return [StoredBan.from_row(row) for row in await runner.rows(_LIST, user_id=user_id)]


async def get_ban(runner: Runner, user_id: str, ban_id: str) -> StoredBan | None:
    row = await runner.row(_GET, user_id=user_id, id=ban_id)
    return StoredBan.from_row(row) if row else None


async def count_bans(runner: Runner, user_id: str) -> int:
    count: int = await runner.value(_COUNT, user_id=user_id)
    return count


async def find_ended(runner: Runner, limit: int) -> list[tuple[str, str]]:
    """Returns the users and the ids of bans whose end has passed, the oldest first."""
    return [(row["user_id"], row["id"]) for row in await runner.rows(_FIND_ENDED, limit=limit)]


async def scope_exists(runner: Runner, field: str, record_id: Any) -> bool:
    """Returns whether there is such an application or project, which is not removed."""
    return bool(await runner.value(_EXISTS[field], id=record_id))


async def project_of(runner: Runner, application_id: int) -> str | None:
    """Returns the project of an application; None if it has none, or does not exist."""
    project_id: str | None = await runner.value(_PROJECT_OF, application_id=application_id)
    return project_id


async def applications_of(runner: Runner, ban: Ban) -> list[int]:
    """Returns the applications that a ban of an application or a project covers."""
    ids: list[int] = await runner.value(
        _APPLICATIONS, application_id=ban.application_id or 0, project_id=ban.project_id
    )
    return ids


async def end_sign_ins(tx: Runner, user_id: str, applications: list[int]) -> None:
    await tx.value(_END_SIGN_INS, user_id=user_id, applications=applications)
