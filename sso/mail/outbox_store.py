"""The outbox in the database. All texts are encrypted."""

from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

_PUT = Statement(
    """INSERT INTO outbox (id, recipient, subject, body_sealed, html_sealed, request_id, trace_id)
    VALUES (:id, :recipient, :subject, :body_sealed, :html_sealed, :request_id, :trace_id)"""
)
# The limit of `tries` keeps the counter of a damaged row from overflowing.
_CLAIM = Statement(
    """UPDATE outbox SET tries = least(tries, 100) + 1, next_try = now() + make_interval(secs => :lease_s)
    WHERE id = (
        SELECT id FROM outbox WHERE next_try <= now() AND recipient <> ALL (CAST(:busy AS text[]))
        ORDER BY next_try LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING id, recipient, subject, body_sealed, html_sealed, tries, request_id, trace_id"""
)
_POSTPONE = Statement("UPDATE outbox SET next_try = now() + make_interval(secs => :pause_s) WHERE id = :id")
_DELETE = Statement("DELETE FROM outbox WHERE id = :id")
# A message without a recipient is not sent.
_MEASURE = Statement(
    """SELECT count(*) AS waiting, coalesce(CAST(extract(epoch FROM now() - min(created)) AS int), 0) AS oldest_s
    FROM outbox WHERE recipient <> ''"""
)


async def insert_mail(
    tx: Runner,
    message_id: str,
    recipient: str,
    subject: str,
    body_sealed: str,
    html_sealed: str,
    request_id: str | None,
    trace_id: str | None,
) -> None:
    await tx.value(
        _PUT,
        id=message_id,
        recipient=recipient,
        subject=subject,
        body_sealed=body_sealed,
        html_sealed=html_sealed,
        request_id=request_id,
        trace_id=trace_id,
    )


async def claim_mail(runner: Runner, lease_s: float, busy: list[str]) -> Row | None:
    """Returns a mail that is due and not for a busy recipient, and keeps others from claiming it for so long.

    Returns None if there is none.
    """
    return await runner.row(_CLAIM, lease_s=lease_s, busy=busy)


async def postpone_mail(runner: Runner, message_id: str, pause_s: float) -> None:
    await runner.value(_POSTPONE, id=message_id, pause_s=pause_s)


async def delete_mail(runner: Runner, message_id: str) -> None:
    await runner.value(_DELETE, id=message_id)


async def measure_queue(runner: Runner) -> tuple[int, int]:
    """Returns the number of mails that wait, and the age of the oldest one in seconds, 0 without one."""
    row = await runner.row(_MEASURE)
    assert row is not None
    return row["waiting"], row["oldest_s"]
