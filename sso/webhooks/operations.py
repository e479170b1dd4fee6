"""The operations of webhooks, with their audit entries. They run in a transaction of the caller."""

from collections.abc import Sequence

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.sequencer import TOPIC
from sso.core.encryption import Keyring
from sso.core.errors import Conflict
from sso.core.field_errors import FieldError
from sso.core.outgoing_http import AddressRefused, OutgoingClient
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.core.receiver_urls import REFUSED
from sso.db.transaction import Transaction
from sso.webhooks import webhook_store
from sso.webhooks.model import Webhook
from sso.webhooks.webhook_store import MAX_WEBHOOKS


async def check_url(client: OutgoingClient, url: str, *, allow_http: bool) -> None:
    """Raises FieldError if events must not be sent to this address."""
    if not is_outgoing_url(url, allow_http=allow_http):
        raise FieldError(("url",), EXPECTED)
    try:
        await client.check_host(url)
    except AddressRefused:
        raise FieldError(("url",), REFUSED) from None


async def create_webhook(
    tx: Transaction,
    actor: AuditActor,
    keyring: Keyring,
    url: str,
    secret: str,
    events: Sequence[str],
    *,
    disabled: bool = False,
) -> Webhook:
    """Adds a webhook, which gets the events from now on."""
    webhook = await webhook_store.add_webhook(tx, keyring, url, secret, events, disabled=disabled)
    if webhook is None:
        raise Conflict(f"there are {MAX_WEBHOOKS} webhooks already")
    await trail.write(tx, actor, "webhook.create", webhook.webhook_id, None, webhook.json() | {"secret": secret})
    return webhook


async def change_webhook(
    tx: Transaction,
    actor: AuditActor,
    keyring: Keyring,
    before: Webhook,
    url: str | None,
    secret: str | None,
    events: Sequence[str] | None,
    *,
    disabled: bool | None,
) -> None:
    """Changes a webhook that the caller has locked. None keeps a value. Events that failed are sent again at once."""
    webhook = await webhook_store.change_webhook(
        tx,
        keyring,
        before.webhook_id,
        before.url if url is None else url,
        secret,
        before.events if events is None else events,
        disabled=before.disabled if disabled is None else disabled,
    )
    after = webhook.json() | ({} if secret is None else {"secret": secret})
    await trail.write(tx, actor, "webhook.save", webhook.webhook_id, before.json(), after)
    tx.publish_after_commit(TOPIC)


async def delete_webhook(tx: Transaction, actor: AuditActor, webhook: Webhook) -> None:
    """Deletes a webhook that the caller has locked, with its failed events."""
    await trail.write(tx, actor, "webhook.delete", webhook.webhook_id, webhook.json(), None)
    await webhook_store.delete_webhook(tx, webhook.webhook_id)


async def retry_failed(tx: Transaction, actor: AuditActor, webhook: Webhook, ids: Sequence[str] | None) -> int:
    """Sends failed events of a locked webhook again, all of them without ``ids``. Returns their number."""
    numbers = None if ids is None else [int(text) for text in ids]
    count = await webhook_store.retry_failed(tx, webhook.webhook_id, numbers)
    after = {"ids": None if ids is None else list(ids), "events": count}
    await trail.write(tx, actor, "webhook.retry", webhook.webhook_id, None, after)
    tx.publish_after_commit(TOPIC)
    return count
