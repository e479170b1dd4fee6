"""Webhooks and their failed events, as administrators see and change them."""

from collections.abc import Sequence
from typing import Any

from sso.change_stream.reader import StreamEvent
from sso.change_stream.store import MAX_PAGE_BYTES
from sso.core.encryption import Keyring
from sso.core.ids import record_id
from sso.core.moments import rfc3339
from sso.db.sorted_pages import Page, PageQuery, SortColumn, SortedPages
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.webhooks.model import Webhook, secret_purpose

MAX_WEBHOOKS = 100

_PAGES = SortedPages(
    """SELECT *, {value} FROM webhooks
    WHERE {after} AND (strpos(lower(url), lower(:search)) > 0 OR webhook_id = :search)
    ORDER BY {order} LIMIT :limit""",
    SortColumn("webhook_id", is_unique=True),
    {"url": SortColumn("lower(url)"), "created": SortColumn("created", "time")},
)
_GET = Statement("SELECT * FROM webhooks WHERE webhook_id = :webhook_id")
_LOCK = Statement("SELECT * FROM webhooks WHERE webhook_id = :webhook_id FOR UPDATE")
# A lock of its own: two concurrent requests must not both add the last webhook.
_COUNT = Statement("SELECT count(*) FROM webhooks, (SELECT pg_advisory_xact_lock(7350913)) AS locked")
_ADD = Statement(
    """INSERT INTO webhooks (webhook_id, url, secret_sealed, events, disabled, position)
    SELECT :webhook_id, :url, :secret_sealed, :events, :disabled, last_position FROM change_stream WHERE id = 1
    RETURNING *"""
)
# A sender with a lease stops. An enabled webhook begins with the next event, and a changed one is tried at once.
_CHANGE = Statement(
    """UPDATE webhooks SET url = :url, events = :events, disabled = :disabled,
        secret_sealed = coalesce(CAST(:secret_sealed AS text), secret_sealed),
        position = CASE WHEN disabled AND NOT :disabled THEN (SELECT last_position FROM change_stream WHERE id = 1)
            ELSE position END,
        lease = '', lease_until = now(), next_try = now()
    WHERE webhook_id = :webhook_id RETURNING *"""
)
_DELETE = Statement("DELETE FROM webhooks WHERE webhook_id = :webhook_id")
# As a page of the stream: `found` is the number of events before the page was cut.
_FAILED = Statement(
    f"""SELECT * FROM (
        SELECT *, count(*) OVER () AS found,
            sum(pg_column_size(data)) OVER (ORDER BY id) - pg_column_size(data) AS bytes_before
        FROM (
            SELECT * FROM webhook_failures WHERE webhook_id = :webhook_id AND id > :after AND expires > now()
            ORDER BY id LIMIT :limit
        ) AS event
    ) AS sized WHERE bytes_before < {MAX_PAGE_BYTES} ORDER BY id"""
)
_RETRY = Statement(
    """WITH chosen AS (
        UPDATE webhook_failures SET retry_at = now()
        WHERE webhook_id = :webhook_id AND retry_at IS NULL AND expires > now()
            AND (CAST(:ids AS bigint[]) IS NULL OR id = ANY (CAST(:ids AS bigint[])))
        RETURNING 1
    ) SELECT count(*) FROM chosen"""
)


async def find_webhook_page(tx: Runner, query: PageQuery) -> Page[Webhook]:
    """Returns the webhooks whose address contains the search."""
    return (await _PAGES.page(tx, query)).map(Webhook.from_row)


async def get_webhook(tx: Runner, webhook_id: str) -> Webhook | None:
    return _webhook(await tx.row(_GET, webhook_id=webhook_id))


async def lock_webhook(tx: Runner, webhook_id: str) -> Webhook | None:
    return _webhook(await tx.row(_LOCK, webhook_id=webhook_id))


async def add_webhook(
    tx: Runner, keyring: Keyring, url: str, secret: str, events: Sequence[str], *, disabled: bool
) -> Webhook | None:
    """Adds a webhook, which gets the events from now on. Returns None if there are too many."""
    if await tx.value(_COUNT) >= MAX_WEBHOOKS:
        return None
    webhook_id = record_id()
    row = await tx.row(
        _ADD,
        webhook_id=webhook_id,
        url=url,
        secret_sealed=keyring.encrypt(secret_purpose(webhook_id), secret),
        events=list(events),
        disabled=disabled,
    )
    return Webhook.from_row(row)


async def change_webhook(
    tx: Runner,
    keyring: Keyring,
    webhook_id: str,
    url: str,
    secret: str | None,
    events: Sequence[str],
    *,
    disabled: bool,
) -> Webhook:
    """Changes a webhook that exists. Without a secret, it keeps its own."""
    sealed = None if secret is None else keyring.encrypt(secret_purpose(webhook_id), secret)
    values = {"url": url, "secret_sealed": sealed, "events": list(events), "disabled": disabled}
    return Webhook.from_row(await tx.row(_CHANGE, webhook_id=webhook_id, **values))


async def delete_webhook(tx: Runner, webhook_id: str) -> None:
    """Deletes a webhook, with its failed events."""
    await tx.value(_DELETE, webhook_id=webhook_id)


async def list_failed(tx: Runner, webhook_id: str, after: int, limit: int) -> tuple[list[dict[str, Any]], bool]:
    """Returns the failed events, the oldest first, and whether there are more.

    At most ``limit`` events, and fewer if their data are long, but at least one.
    """
    rows = await tx.rows(_FAILED, webhook_id=webhook_id, after=after, limit=limit + 1)
    failed = [
        {
            "id": str(row["id"]),
            "event": StreamEvent.from_row(row).content,
            "failed_at": rfc3339(row["failed_at"]),
            "tries": row["tries"],
            "problem": row["problem"],
            "retrying": row["retry_at"] is not None,
        }
        for row in rows[:limit]
    ]
    return failed, bool(rows) and rows[0]["found"] > len(failed)


async def retry_failed(tx: Runner, webhook_id: str, ids: Sequence[int] | None) -> int:
    """Lets the senders try failed events again, all of them without ``ids``. Returns their number."""
    count: int = await tx.value(_RETRY, webhook_id=webhook_id, ids=None if ids is None else list(ids))
    return count


def _webhook(row: Row | None) -> Webhook | None:
    return None if row is None else Webhook.from_row(row)
