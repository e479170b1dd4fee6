"""Mail goes through an outbox table, so that a message is sent if and only if what caused it was committed."""

import os
import smtplib
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import unquote, urlsplit

import structlog
import trio

from sso.core.ids import record_id
from sso.core.sealed import Keyring, place
from sso.db.bridge import Database, Runner
from sso.db.errors import DatabaseError
from sso.db.statement import Statement
from sso.db.wakeups import Wakeups, notify

TOPIC = "mail"
TRIES = 8
SMTP_S = 20

_PUT = Statement(
    """INSERT INTO outbox (id, recipient, subject, body_sealed) VALUES (:id, :recipient, :subject, :body_sealed)"""
)
# Claimed for a while: two senders never take the same one, and one that dies does not keep it.
_CLAIM = Statement(
    """UPDATE outbox SET tries = tries + 1, next_try = now() + make_interval(secs => 30 * 2 ^ least(tries, 8))
    WHERE id = (SELECT id FROM outbox WHERE next_try <= now() ORDER BY next_try LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, recipient, subject, body_sealed, tries"""
)
_DONE = Statement("DELETE FROM outbox WHERE id = :id")

log = structlog.get_logger()


class Outbox:
    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    async def put(self, tx: Runner, recipient: str, subject: str, body: str) -> None:
        """To be sent once the surrounding transaction has committed. The body may hold a code, so it is sealed."""
        message_id = record_id()
        sealed = self._keyring.seal(place("outbox.body_sealed", message_id), body)
        await tx.value(_PUT, id=message_id, recipient=recipient, subject=subject, body_sealed=sealed)
        await notify(tx, TOPIC)


class Postman:
    """Takes from the outbox and delivers: by SMTP, or as files in a directory where no server is set."""

    def __init__(self, database: Database, keyring: Keyring, sender: str, smtp_url: str | None, folder: Path) -> None:
        self._database = database
        self._keyring = keyring
        self._sender = sender
        self._smtp_url = smtp_url
        self._folder = folder

    async def run(self, wakeups: Wakeups, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        with wakeups.watch(TOPIC) as signals:
            task_status.started()
            while True:
                try:
                    while await self._deliver_one():
                        pass
                except DatabaseError as error:
                    log.warning("mail.outbox_not_read", reason=str(error))
                await signals.receive()

    async def _deliver_one(self) -> bool:
        """False when nothing is due."""
        row = await self._database.row(_CLAIM)
        if row is None:
            return False
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._sender, row["recipient"], row["subject"]
        message["Message-ID"] = f"<{record_id()}{record_id()}@{self._sender.rpartition('@')[2]}>"
        message.set_content(self._keyring.open(place("outbox.body_sealed", row["id"]), row["body_sealed"]))
        try:
            await trio.to_thread.run_sync(self._send, message, abandon_on_cancel=True)
        except (OSError, smtplib.SMTPException) as error:
            log.warning("mail.not_sent", id=row["id"], tries=row["tries"], reason=type(error).__name__)
            if row["tries"] < TRIES:
                return True
            log.error("mail.given_up", id=row["id"], tries=row["tries"])

        await self._database.value(_DONE, id=row["id"])
        return True

    def _send(self, message: EmailMessage) -> None:
        if self._smtp_url is None:
            self._write(message)
            return
        url = urlsplit(self._smtp_url)
        kind = smtplib.SMTP_SSL if url.scheme == "smtps" else smtplib.SMTP
        with kind(url.hostname or "localhost", url.port or 0, timeout=SMTP_S) as server:
            if url.scheme == "smtp+starttls":
                server.starttls()
            if url.username:
                server.login(unquote(url.username), unquote(url.password or ""))
            server.send_message(message)

    def _write(self, message: EmailMessage) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{record_id()}.eml"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(message.as_bytes())
