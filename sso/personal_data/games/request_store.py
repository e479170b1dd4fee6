"""Requests to games in the database, as their users and administrators see them. Workers send them: `queue_store`."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict

from sso.accounts.merged_user_store import IDS_WITH_MERGED
from sso.core.ids import record_id
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.delivery.due_queue import LEASE_S
from sso.personal_data.games.model import (
    ANSWER_DAYS,
    EXPORT_DAYS,
    MAX_SOURCES,
    REMOVAL_DAYS,
    TOPIC,
    DataRequest,
    RequestKind,
    UsedApplication,
)

TOO_MANY_SOURCES = f"an export asks at most {MAX_SOURCES} sources"

_COLUMNS = """r.id, r.request_id, r.kind, r.user_id, r.subject_id, r.application_id, a.name AS application_name,
    r.state, r.created, r.finished, r.tries, r.next_try, r.deadline, r.problem, r.size, r.characters, r.expires"""
_ADD = Statement(
    """INSERT INTO data_requests
        (request_id, kind, user_id, subject_id, export_id, application_id, url, state, next_try, deadline, problem,
        finished, expires)
    VALUES (:request_id, :kind, :user_id, :subject_id, :export_id, :application_id, :url,
        CASE :problem WHEN '' THEN 'pending' ELSE 'failed' END, CASE :problem WHEN '' THEN now() END,
        now() + make_interval(days => :days), :problem, CASE :problem WHEN '' THEN NULL ELSE now() END,
        now() + make_interval(days => CAST(:kept_days AS int)))"""
)
_DELETE_EXPORT = Statement("DELETE FROM data_requests WHERE user_id = :user_id AND export_id IS NOT NULL")
_DELETE_ANSWERS = Statement(
    f"""DELETE FROM data_requests
    WHERE user_id = :owner_id AND export_id IS NOT NULL AND subject_id = ANY (ARRAY({IDS_WITH_MERGED}))"""
)
_EXPORT = Statement(
    f"""SELECT {_COLUMNS} FROM data_requests r JOIN applications a USING (application_id)
    WHERE r.user_id = :user_id AND r.export_id IS NOT NULL AND r.expires > now()
    ORDER BY r.application_id, r.id"""
)
_CONTENT = Statement("SELECT content FROM data_requests WHERE id = :id AND state = 'done'")
_LIST = Statement(
    f"""SELECT {_COLUMNS} FROM data_requests r JOIN applications a USING (application_id)
    WHERE r.id < :before AND (r.expires IS NULL OR r.expires > now())
        AND (CAST(:kind AS text) IS NULL OR r.kind = :kind) AND (CAST(:state AS text) IS NULL OR r.state = :state)
        AND (CAST(:user_id AS text) IS NULL OR :user_id IN (r.user_id, r.subject_id))
        AND (CAST(:application_id AS int) IS NULL OR r.application_id = :application_id)
    ORDER BY r.id DESC LIMIT :limit"""
)
_LOCK = Statement(
    f"""SELECT {_COLUMNS} FROM data_requests r JOIN applications a USING (application_id)
    WHERE r.id = :id AND (r.expires IS NULL OR r.expires > now()) FOR UPDATE OF r"""
)
# A request whose next attempt is sooner than the end of a lease may be on its way.
_RETRY = Statement(
    f"""UPDATE data_requests SET state = 'pending', next_try = now(), tries = 0, finished = NULL,
        deadline = now() + make_interval(days => CASE kind WHEN 'remove' THEN {REMOVAL_DAYS} ELSE {ANSWER_DAYS} END),
        expires = CASE kind WHEN 'remove' THEN NULL ELSE expires END
    WHERE id = :id AND (state = 'failed' OR (state = 'pending' AND next_try > now() + make_interval(secs => :lease_s)))
    RETURNING id"""
)


class RequestFilter(Struct, frozen=True):
    kind: str | None = None
    state: str | None = None
    user_id: str | None = None
    application_id: int | None = None


async def add_export(tx: Transaction, user_id: str, applications: Sequence[UsedApplication]) -> None:
    """Replaces the export of the user by a new one that asks all sources. Those beyond the limit fail at once."""
    await tx.value(_DELETE_EXPORT, user_id=user_id)
    export_id = record_id()
    sources = [(used, kind, url) for used in applications for kind, url in used.sources.of_export()]
    for number, (used, kind, url) in enumerate(sources):
        await tx.value(
            _ADD,
            request_id=record_id(),
            kind=kind,
            user_id=user_id,
            subject_id=used.subject_id,
            export_id=export_id,
            application_id=used.application_id,
            url=url,
            days=ANSWER_DAYS,
            problem="" if number < MAX_SOURCES else TOO_MANY_SOURCES,
            kept_days=EXPORT_DAYS,
        )
    tx.publish_after_commit(TOPIC)


async def delete_answers(tx: Transaction, owner_id: str, user_id: str) -> None:
    """Deletes from the export of ``owner_id`` what games were asked about another user, or users merged into that one.

    The caller has locked the owner, so that no export is started concurrently. A request on its way has no effect.
    """
    await tx.value(_DELETE_ANSWERS, owner_id=owner_id, user_id=user_id)


async def add_removals(tx: Transaction, applications: Sequence[UsedApplication]) -> None:
    """Asks the applications that have addresses for it to remove the data of users who are being erased."""
    for used in applications:
        if used.sources.remove:
            await tx.value(
                _ADD,
                request_id=record_id(),
                kind=RequestKind.REMOVE,
                user_id=used.subject_id,
                subject_id=used.subject_id,
                application_id=used.application_id,
                url="",
                days=REMOVAL_DAYS,
                problem="",
            )
    tx.publish_after_commit(TOPIC)


async def read_export(runner: Runner, user_id: str) -> list[DataRequest]:
    """Returns the requests of the user's export; none if there is no export, or it has expired."""
    return [DataRequest.from_row(row) for row in await runner.rows(_EXPORT, user_id=user_id)]


async def read_content(runner: Runner, request_id: int) -> str:
    content: str | None = await runner.value(_CONTENT, id=request_id)
    return content or ""


async def list_requests(runner: Runner, wanted: RequestFilter, before: int, limit: int) -> list[DataRequest]:
    """Returns the newest requests first, those with an id below ``before``."""
    rows = await runner.rows(_LIST, before=before, limit=limit, **asdict(wanted))
    return [DataRequest.from_row(row) for row in rows]


async def lock_request(tx: Transaction, number: int) -> DataRequest | None:
    row = await tx.row(_LOCK, id=number)
    return None if row is None else DataRequest.from_row(row)


async def retry_request(tx: Transaction, number: int) -> bool:
    """Makes a request due that has failed or waits for its next attempt. Returns False if it does neither."""
    if await tx.value(_RETRY, id=number, lease_s=LEASE_S + 1) is None:
        return False
    tx.publish_after_commit(TOPIC)
    return True
