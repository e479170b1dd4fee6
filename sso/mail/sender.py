"""Sends the mails of the outbox by the SMTP server, or writes them to files, and measures how many wait."""

from email.message import EmailMessage
from functools import partial
from pathlib import Path

import outcome
import structlog
import trio

from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.transaction import Row
from sso.delivery.due_queue import LEASE_S, Due, DueQueue, Failure, QueuedDelivery, RetryPolicy, origin_fields
from sso.mail.content import mail_logo
from sso.mail.outbox import TOPIC, body_purpose, html_purpose
from sso.mail.outbox_store import claim_mail, delete_mail, measure_queue, postpone_mail
from sso.mail.smtp import Delivery, build_message
from sso.telemetry.counters import DELIVERIES

MAX_TRIES = 8
MAX_DELIVERIES = 3  # of a worker at a time; some servers allow no more connections
MEASURE_S = 5.0


log = structlog.get_logger()


class MailDelivery(QueuedDelivery[Row]):
    name = "mail"
    retries = RetryPolicy(first_pause_s=30.0, factor=2.0, max_tries=MAX_TRIES)
    max_per_receiver = 1

    def __init__(
        self, database: Database, keyring: Keyring, sender: str, delivery: Delivery, brand: CurrentBrand
    ) -> None:
        self._database = database
        self._keyring = keyring
        self._sender = sender
        self._delivery = delivery
        self._brand = brand

    async def claim(self, busy: list[str]) -> Due[Row] | None:
        row = await claim_mail(self._database, LEASE_S, busy)
        if row is None:
            return None
        return Due(row, row["recipient"], row["tries"], {"id": row["id"], **origin_fields(row)})

    async def send(self, item: Row) -> Failure | None:
        if not item["recipient"]:  # it only takes as long as a mail that has one
            return None
        text = self._keyring.decrypt(body_purpose(item["id"]), item["body_sealed"])
        html = self._keyring.decrypt(html_purpose(item["id"]), item["html_sealed"]) if item["html_sealed"] else None
        logo = mail_logo(self._brand.value)
        message = build_message(self._sender, item["recipient"], item["subject"], text, html, logo)
        message["Date"] = self._database.clock.utc()
        path = await self._deliver(item["id"], message)
        if path:
            log.info("mail.written", path=str(path), id=item["id"], **origin_fields(item))
        return None

    async def _deliver(self, message_id: str, message: EmailMessage) -> Path | None:
        """Delivers the message. The lease lasts as long as that takes, so that no other worker sends it as well."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._renew_lease, message_id)
            result = await outcome.acapture(
                partial(trio.to_thread.run_sync, self._delivery.send, message, abandon_on_cancel=True)
            )
            nursery.cancel_scope.cancel()
        return result.unwrap()

    async def _renew_lease(self, message_id: str) -> None:
        while True:
            await trio.sleep(LEASE_S / 3)
            try:
                await postpone_mail(self._database, message_id, LEASE_S)
            except DatabaseError as error:
                log.warning("queue.store_failed", queue=self.name, reason=str(error))

    async def finish(self, due: Due[Row]) -> None:
        if due.item["recipient"]:
            DELIVERIES.add(self.name, "delivered")
            if self._delivery.has_server:
                log.info("mail.delivered", tries=due.tries, **due.log_fields)
        await delete_mail(self._database, due.item["id"])

    async def store_failure(self, item: Row, failure: Failure, retry_after_s: float | None) -> None:
        if retry_after_s is None:
            await delete_mail(self._database, item["id"])
        else:
            await postpone_mail(self._database, item["id"], retry_after_s)


def build_mail_sender(
    database: Database, keyring: Keyring, sender: str, delivery: Delivery, brand: CurrentBrand
) -> DueQueue:
    return DueQueue(TOPIC, MailDelivery(database, keyring, sender, delivery, brand), max_deliveries=MAX_DELIVERIES)


class MailQueueMonitor:
    """Measures the queue, for the metrics. One worker of a node does it: the queue is the same for all."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.waiting = 0
        self.oldest_s = 0  # age of the oldest mail; 0 without one

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            try:
                self.waiting, self.oldest_s = await measure_queue(self._database)
            except DatabaseError as error:
                log.warning("mail.queue_read_failed", reason=str(error))
            await trio.sleep(MEASURE_S)
