"""Sends mail through an outbox table: a message is sent if, and only if, the transaction that put it there commits."""

from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring, column_purpose
from sso.core.ids import record_id
from sso.db.transaction import Transaction
from sso.log import request_fields
from sso.mail.content import MailContent, render
from sso.mail.outbox_store import insert_mail

TOPIC = "mail"


class Outbox:
    def __init__(self, keyring: Keyring, brand: CurrentBrand) -> None:
        self._keyring = keyring
        self._brand = brand

    async def put(self, tx: Transaction, recipient: str, content: MailContent, language: str) -> None:
        """Adds a message, which is encrypted, as it may contain a code. The senders learn of it after the commit.

        A message without a recipient is dropped later. It hides whether there is one from those who measure time.

        The log lines about its delivery have the current request.
        """
        message_id, origin = record_id(), request_fields()
        mail = render(content, language, self._brand.value)
        await insert_mail(
            tx,
            message_id,
            recipient,
            mail.subject,
            self._keyring.encrypt(body_purpose(message_id), mail.text),
            self._keyring.encrypt(html_purpose(message_id), mail.html),
            origin.get("request"),
            origin.get("trace"),
        )
        tx.publish_after_commit(TOPIC)


def body_purpose(message_id: str) -> str:
    return column_purpose("outbox.body_sealed", message_id)


def html_purpose(message_id: str) -> str:
    return column_purpose("outbox.html_sealed", message_id)
