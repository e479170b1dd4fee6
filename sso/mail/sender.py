"""Sends the mails of the outbox by the SMTP server."""

import structlog
import trio

from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row
from sso.delivery.due_queue import LEASE_S, Due, DueQueue, Failure, QueuedDelivery, RetryPolicy, origin_fields
from sso.mail.content import mail_logo
from sso.mail.outbox import TOPIC, body_purpose, html_purpose
from sso.mail.smtp import Delivery, build_message
from sso.telemetry.counters import DELIVERIES

MAX_TRIES = 8

# The limit of `tries` keeps the counter of a damaged row from overflowing.
_CLAIM = Statement(
    """UPDATE outbox SET tries = least(tries, 100) + 1, next_try = now() + make_interval(secs => :lease_s)
    WHERE id = (SELECT id FROM outbox WHERE next_try <= now() ORDER BY next_try LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, recipient, subject, body_sealed, html_sealed, tries, request_id, trace_id"""
)
_POSTPONE = Statement("UPDATE outbox SET next_try = now() + make_interval(secs => :pause_s) WHERE id = :id")
_DELETE = Statement("DELETE FROM outbox WHERE id = :id")

log = structlog.get_logger()


class MailDelivery(QueuedDelivery[Row]):
    name = "mail"
    retries = RetryPolicy(first_pause_s=30.0, factor=2.0, max_tries=MAX_TRIES)

    def __init__(
        self, database: Database, keyring: Keyring, sender: str, delivery: Delivery, brand: CurrentBrand
    ) -> None:
        self._database = database
        self._keyring = keyring
        self._sender = sender
        self._delivery = delivery
        self._brand = brand

    async def claim(self, busy: list[str]) -> Due[Row] | None:
        row = await self._database.row(_CLAIM, lease_s=LEASE_S)
        return None if row is None else Due(row, "", row["tries"], {"id": row["id"], **origin_fields(row)})

    async def send(self, item: Row) -> Failure | None:
        if not item["recipient"]:  # it only takes as long as a mail that has one
            return None
        text = self._keyring.decrypt(body_purpose(item["id"]), item["body_sealed"])
        html = self._keyring.decrypt(html_purpose(item["id"]), item["html_sealed"]) if item["html_sealed"] else None
        message = build_message(
            self._sender, item["recipient"], item["subject"], text, html, mail_logo(self._brand.value)
        )
        await trio.to_thread.run_sync(self._delivery.send, message, abandon_on_cancel=True)
        return None

    async def finish(self, due: Due[Row]) -> None:
        if due.item["recipient"]:
            DELIVERIES.add(self.name, "delivered")
            log.info("mail.delivered", tries=due.tries, **due.log_fields)
        await self._database.value(_DELETE, id=due.item["id"])

    async def store_failure(self, item: Row, failure: Failure, retry_after_s: float | None) -> None:
        if retry_after_s is None:
            await self._database.value(_DELETE, id=item["id"])
        else:
            await self._database.value(_POSTPONE, id=item["id"], pause_s=retry_after_s)


def build_mail_sender(
    database: Database, keyring: Keyring, sender: str, delivery: Delivery, brand: CurrentBrand
) -> DueQueue:
    return DueQueue(TOPIC, MailDelivery(database, keyring, sender, delivery, brand), max_deliveries=1)
