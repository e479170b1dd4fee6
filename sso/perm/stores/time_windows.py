"""The time windows of all conditions, and up to which moment their begins and ends are events of the change stream."""

import math
from typing import NamedTuple

from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.perm.engine.decode import decode_condition
from sso.perm.engine.time_windows import TimeWindow

ALL_APPLICATIONS = 0
MAX_OPEN_S = 700  # longer than any write takes; another transaction that stays open longer is no write

# Groups matter at the applications of their project; in a list of the project also at the central application.
_WINDOWS = Statement(
    """SELECT r.application_id, jsonb_path_query(r.condition, '$.**.time') AS time
    FROM roles r JOIN applications a USING (application_id) WHERE r.condition @? '$.**.time' AND NOT a.removed
    UNION SELECT a.application_id, jsonb_path_query(g.conditions, '$.**.time')
    FROM user_groups g JOIN applications a USING (project_id) WHERE g.conditions @? '$.**.time' AND NOT a.removed
    UNION SELECT 1, jsonb_path_query(g.conditions, '$.**.time')
    FROM user_groups g JOIN projects p ON p.id = g.project_id
    WHERE g.conditions @? '$.**.time' AND NOT p.removed AND g.id = ANY (p.allow || p.disallow)"""
)
_MEMBERS = Statement(
    """SELECT DISTINCT m.user_id FROM project_members m
    WHERE m.project_id IN (SELECT p.id FROM user_groups g JOIN projects p ON p.id = g.project_id
        WHERE g.conditions @? '$.**.time' AND NOT p.removed AND g.id = ANY (p.allow || p.disallow))
    LIMIT :limit"""
)
_BEGIN = Statement(
    """INSERT INTO time_window_progress (application_id, moment) VALUES (:application_id, :moment)
    ON CONFLICT (application_id) DO NOTHING"""
)
_MOMENT = Statement("SELECT moment FROM time_window_progress WHERE application_id = :application_id")
# Another worker may have recorded the moment, for this application or for all, since this one has read it.
_LATEST_MOMENT = Statement("SELECT max(moment) FROM time_window_progress WHERE application_id IN (0, :application_id)")
_ADVANCE = Statement(
    "UPDATE time_window_progress SET moment = :moment WHERE application_id = :application_id AND moment < :moment"
)
# A second more than the age of the oldest open transaction of the service, because moments are whole seconds.
_OPEN_FOR = Statement(
    f"""SELECT CAST(least(coalesce(max(age) + 1, 0), {MAX_OPEN_S}) AS float)
    FROM pg_stat_activity, extract(epoch FROM clock_timestamp() - xact_start) AS age
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"""
)
_FORGET = Statement("DELETE FROM time_window_progress WHERE application_id <> 0 AND moment <= :moment")


class KnownWindows(NamedTuple):
    recorded_to: int  # begins and ends up to this moment are recorded, at all applications
    known_to: int  # a write in progress may save windows that begin or end after this moment
    windows: list[tuple[int, TimeWindow]]  # with the application at which the window matters


async def read_windows(tx: Transaction, now: int) -> KnownWindows:
    """Reads the windows that are committed.

    A write reports what is so when it has its locks, and may commit minutes later. So another moment is known_to, which
    is before the beginning of every transaction that is open before the windows are read.
    """
    known_to = math.floor(now - await tx.value(_OPEN_FOR))
    recorded_to = await tx.value(_MOMENT, application_id=ALL_APPLICATIONS)
    if recorded_to is None:
        await tx.value(_BEGIN, application_id=ALL_APPLICATIONS, moment=now)
        recorded_to = now
    rows = await tx.rows(_WINDOWS)
    decoded = ((row["application_id"], decode_condition({"time": row["time"]}).time) for row in rows)
    return KnownWindows(recorded_to, known_to, [(key, window) for key, window in decoded if window is not None])


async def members_with_windows(runner: Runner, limit: int) -> set[str]:
    """Returns the members of projects that admit users, or exclude them, by time windows."""
    return {row["user_id"] for row in await runner.rows(_MEMBERS, limit=limit)}


async def read_moment(tx: Transaction, application_id: int, recorded_to: int) -> int:
    """Returns the moment up to which begins and ends are recorded at the application.

    The lock of the application keeps other workers waiting.
    """
    await tx.value(_BEGIN, application_id=application_id, moment=recorded_to)
    moment: int = await tx.value(_LATEST_MOMENT, application_id=application_id)
    return moment


async def advance(tx: Transaction, application_id: int, moment: int) -> None:
    await tx.value(_ADVANCE, application_id=application_id, moment=moment)
    if application_id == ALL_APPLICATIONS:
        await tx.value(_FORGET, moment=moment)
