"""Changes of webhooks by an administrator, with their audit entries: for the management API and the commands."""

from collections.abc import Callable, Sequence

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.outgoing_http import AddressRefused, OutgoingClient
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.db.transaction import Transaction
from sso.perm.errors import InvalidInput, PermissionConflict
from sso.webhooks import webhook_store
from sso.webhooks.model import Webhook
from sso.webhooks.webhook_store import MAX_WEBHOOKS


async def check_url(client: OutgoingClient, url: str, *, allow_http: bool) -> None:
    """Raises InvalidInput if events must not be sent to this address."""
    if not is_outgoing_url(url, allow_http=allow_http):
        raise InvalidInput(f"url: {EXPECTED}")
    try:
        await client.check_host(url)
    except AddressRefused:
        raise InvalidInput(
            "url: the host has a private address, which is allowed only if SSO_WEBHOOK_NETWORKS contains it"
        ) from None


async def add(
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
        raise PermissionConflict(f"there are {MAX_WEBHOOKS} webhooks already")
    await trail.write(tx, actor, "webhook.create", webhook.webhook_id, None, webhook.json() | {"secret": secret})
    return webhook


async def remove(
    tx: Transaction, actor: AuditActor, webhook_id: str, check: Callable[[Webhook], None] = lambda _webhook: None
) -> bool:
    """Deletes a webhook, with its failed events. ``check`` may refuse it. Returns False if there is none."""
    before = await webhook_store.lock_webhook(tx, webhook_id)
    if before is None:
        return False
    check(before)
    await trail.write(tx, actor, "webhook.delete", webhook_id, before.json(), None)
    await webhook_store.delete_webhook(tx, webhook_id)
    return True


async def resend(tx: Transaction, actor: AuditActor, webhook_id: str, ids: Sequence[str] | None) -> int | None:
    """Sends failed events again, all of them without ``ids``. Returns their number, or None without such a webhook."""
    if await webhook_store.lock_webhook(tx, webhook_id) is None:
        return None
    count = await webhook_store.retry_failed(tx, webhook_id, None if ids is None else [int(text) for text in ids])
    after = {"ids": None if ids is None else list(ids), "events": count}
    await trail.write(tx, actor, "webhook.retry", webhook_id, None, after)
    return count
