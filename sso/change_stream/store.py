"""The stream of changes in the database. `sso.change_stream.sequencer` says why events are numbered later."""

from collections.abc import Sequence
from typing import Any

from sso.db.batch.statement import BatchStatement
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction

MAX_EVENTS = 1000  # numbered at a time
# Of the data of a page, as they are stored: the next event begins another page. Compressed data may be a hundred times
# as long when they are read.
MAX_PAGE_BYTES = 256 * 1024
# The end of the stream, for statements that read permissions: they see every change up to it.
POSITION_SQL = "(SELECT last_position FROM change_stream WHERE id = 1)"
LAST_POSITION = BatchStatement(
    f"SELECT item.n, {POSITION_SQL} AS last_position FROM {{items}}", columns={"number": "int"}
)

_RECORD = Statement(
    """INSERT INTO change_events (type, user_id, application_id, data)
    SELECT type, user_id, application_id, data FROM unnest(
        CAST(:types AS text[]), CAST(:user_ids AS text[]), CAST(:application_ids AS int[]), CAST(:data AS jsonb[])
    ) WITH ORDINALITY AS t (type, user_id, application_id, data, n) ORDER BY n"""
)
# An event that only replicas read: facts of a user at an application, or the application's roles, may have changed
# without an effect on permissions at the moment.
FACTS_CHANGED = "facts_changed"

# The events and the end of the stream are read at one moment. `found` is the number of events before the page was cut.
# The sizes are read without the data.
_PAGE = f"""SELECT s.last_position, s.trimmed_to, e.position, e.at, e.type, e.user_id, e.application_id, e.data, e.found
    FROM change_stream s LEFT JOIN LATERAL (
        SELECT * FROM (
            SELECT *, count(*) OVER () AS found,
                sum(pg_column_size(data)) OVER (ORDER BY position) - pg_column_size(data) AS bytes_before
            FROM (
                SELECT * FROM change_events WHERE position > :after {{filter}} ORDER BY position LIMIT :limit
            ) AS event
        ) AS sized WHERE bytes_before < {MAX_PAGE_BYTES}
    ) AS e ON true WHERE s.id = 1 ORDER BY e.position"""
_VISIBLE = f"AND type <> '{FACTS_CHANGED}'"
_READ_ALL = Statement(_PAGE.format(filter=_VISIBLE))
_READ_APPLICATION = Statement(_PAGE.format(filter=f"{_VISIBLE} AND application_id = :application_id"))
# What may change facts at the application: its own events, and those of users at all applications.
_READ_FACTS = Statement(
    _PAGE.format(
        filter="AND (application_id = :application_id OR (application_id IS NULL AND user_id IS NOT NULL))",
    )
)
_HAS_PENDING = Statement("SELECT EXISTS (SELECT FROM change_events WHERE position IS NULL)")
# A statement of its own: the next one then sees everything that was committed before the lock was acquired.
_LOCK = Statement("SELECT last_position FROM change_stream WHERE id = 1 FOR UPDATE")
_NUMBER = Statement(
    f"""WITH pending AS (
        SELECT id, row_number() OVER (ORDER BY id) AS n FROM (
            SELECT id FROM change_events WHERE position IS NULL ORDER BY id LIMIT {MAX_EVENTS}
        ) AS oldest
    ), start AS (
        SELECT greatest(last_position, CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)) AS position
        FROM change_stream WHERE id = 1
    ), numbered AS (
        UPDATE change_events e SET position = start.position + pending.n FROM pending, start WHERE e.id = pending.id
        RETURNING e.position
    ), moved AS (
        UPDATE change_stream SET last_position = newest.position
        FROM (SELECT max(position) AS position FROM numbered) AS newest
        WHERE id = 1 AND newest.position IS NOT NULL
    )
    SELECT count(*) FROM numbered"""
)


async def insert_events(
    tx: Transaction,
    types: Sequence[str],
    user_ids: Sequence[str | None],
    application_ids: Sequence[int | None],
    data: Sequence[dict[str, Any]],
) -> None:
    """Adds events without a position."""
    await tx.value(_RECORD, types=types, user_ids=user_ids, application_ids=application_ids, data=data)


async def has_pending_events(runner: Runner) -> bool:
    """Returns whether committed events have no position yet."""
    return bool(await runner.value(_HAS_PENDING))


async def number_events(tx: Transaction) -> int:
    """Gives the oldest committed events without a position the next positions. Returns their number."""
    await tx.value(_LOCK)
    count: int = await tx.value(_NUMBER)
    return count


async def read_events(
    runner: Runner, after: int, limit: int, application_id: int | None, *, of_facts: bool = False
) -> Sequence[Row]:
    """Returns the events after a position, each with the ends of the stream; without an event, the ends alone.

    At most ``limit`` events, and fewer if their data are long, but at least one. Each has the number of events that
    there were within ``limit``.

    ``of_facts``: all events after which the facts about a user at the application may be different.
    """
    if application_id is None:
        return await runner.rows(_READ_ALL, after=after, limit=limit)
    statement = _READ_FACTS if of_facts else _READ_APPLICATION
    return await runner.rows(statement, after=after, limit=limit, application_id=application_id)
