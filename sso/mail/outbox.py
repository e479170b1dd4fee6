"""Sends mail through an outbox table: a message is sent if, and only if, the transaction that put it there commits."""

import structlog
import trio

from sso.bus.bus import Bus
from sso.core.brand import Brand
from sso.core.domain_counters import MAILS
from sso.core.encryption import Keyring, column_purpose
from sso.core.ids import record_id
from sso.core.logo import Logo
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.log import request_fields
from sso.mail.content import MailContent, render
from sso.mail.smtp import Delivery, build_message

TOPIC = "mail"
MAX_TRIES = 8

_PUT = Statement(
    """INSERT INTO outbox (id, recipient, subject, body_sealed, html_sealed, request_id, trace_id)
    VALUES (:id, :recipient, :subject, :body_sealed, :html_sealed, :request_id, :trace_id)"""
)
# Claims a message until `next_try`: two senders never take the same one. The message of a killed sender is retried.
_CLAIM = Statement(
    """UPDATE outbox
    SET tries = least(tries, 100) + 1, next_try = now() + make_interval(secs => 30 * 2 ^ least(tries, 8))
    WHERE id = (SELECT id FROM outbox WHERE next_try <= now() ORDER BY next_try LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, recipient, subject, body_sealed, html_sealed, tries, request_id, trace_id"""
)
_DELETE = Statement("DELETE FROM outbox WHERE id = :id")

log = structlog.get_logger()


class Outbox:
    def __init__(self, keyring: Keyring, bus: Bus, brand: Brand) -> None:
        self._keyring = keyring
        self._bus = bus
        self._brand = brand

    async def put(self, tx: Runner, recipient: str, content: MailContent, language: str) -> None:
        """Adds a message, which is encrypted, as it may contain a code. Call ``wake_senders`` after the commit.

        A message without a recipient is dropped later. It hides whether there is one from those who measure time.

        The log lines about its delivery have the current request.
        """
        message_id, origin = record_id(), request_fields()
        mail = render(content, language, self._brand)
        await tx.value(
            _PUT,
            id=message_id,
            recipient=recipient,
            subject=mail.subject,
            body_sealed=self._keyring.encrypt(_body_purpose(message_id), mail.text),
            html_sealed=self._keyring.encrypt(_html_purpose(message_id), mail.html),
            request_id=origin.get("request"),
            trace_id=origin.get("trace"),
        )

    def wake_senders(self) -> None:
        """Lets the senders look at once; without it they look every few seconds."""
        self._bus.publish(TOPIC)


class MailSender:
    """Delivers the messages of the outbox."""

    def __init__(
        self, database: Database, keyring: Keyring, sender: str, delivery: Delivery, logo: Logo | None = None
    ) -> None:
        self._database = database
        self._keyring = keyring
        self._sender = sender
        self._delivery = delivery
        self._logo = logo

    async def run(self, bus: Bus, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        with bus.subscribe(TOPIC) as signals:
            task_status.started()
            while True:
                try:
                    while await self._deliver_one():
                        pass
                except DatabaseError as error:
                    log.warning("mail.outbox_read_failed", reason=str(error))
                await signals.receive()

    async def _deliver_one(self) -> bool:
        """Delivers the next message that is due. Returns False if there is none.

        A message that cannot be delivered is retried later and abandoned after ``MAX_TRIES`` attempts, including
        attempts that were interrupted because the process died.
        """
        row = await self._database.row(_CLAIM)
        if row is None:
            return False
        if not row["recipient"]:
            await self._database.value(_DELETE, id=row["id"])
            return True
        message_id, tries, origin = row["id"], row["tries"], _origin(row)
        if tries <= MAX_TRIES:
            try:
                await self._deliver(row)
                MAILS.add("delivered")
                log.info("mail.delivered", id=message_id, tries=tries, **origin)
            except Exception as error:
                MAILS.add("failed")
                log.warning("mail.delivery_failed", id=message_id, tries=tries, reason=_reason(error), **origin)
                if tries < MAX_TRIES:
                    return True
                _report_abandoned(message_id, tries, origin)
        else:
            _report_abandoned(message_id, tries, origin)
        await self._database.value(_DELETE, id=message_id)
        return True

    async def _deliver(self, row: Row) -> None:
        text = self._keyring.decrypt(_body_purpose(row["id"]), row["body_sealed"])
        html = self._keyring.decrypt(_html_purpose(row["id"]), row["html_sealed"]) if row["html_sealed"] else None
        message = build_message(self._sender, row["recipient"], row["subject"], text, html, self._logo)
        await trio.to_thread.run_sync(self._delivery.send, message, abandon_on_cancel=True)


def _report_abandoned(message_id: str, tries: int, origin: dict[str, str]) -> None:
    MAILS.add("abandoned")
    log.error("mail.delivery_abandoned", id=message_id, tries=tries, **origin)


def _body_purpose(message_id: str) -> str:
    return column_purpose("outbox.body_sealed", message_id)


def _html_purpose(message_id: str) -> str:
    return column_purpose("outbox.html_sealed", message_id)


def _origin(row: Row) -> dict[str, str]:
    """Returns the log fields of the request that queued a message. A message of an older release has none."""
    origin = {"request": row["request_id"], "trace": row["trace_id"]}
    return {name: value for name, value in origin.items() if value}


def _reason(error: Exception) -> str:
    """Returns the error's type and, for TLS, why the certificate was rejected. Other texts may quote the message."""
    return (
        f"{type(error).__name__}: {error.verify_message}" if hasattr(error, "verify_message") else type(error).__name__
    )
