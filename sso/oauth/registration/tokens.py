"""The operations of initial access tokens (RFC 7591 section 1.2), with which programs register clients."""

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.errors import NotFound
from sso.core.ids import secret_token
from sso.core.moments import rfc3339
from sso.db.transaction import Transaction
from sso.oauth.registration import store
from sso.oauth.registration.store import RegistrationToken


async def create_token(tx: Transaction, actor: AuditActor, uses: int, days: int) -> tuple[RegistrationToken, str]:
    """Returns the token with its secret, which is not shown again."""
    secret = secret_token()
    token = await store.add_token(tx, secret, uses, days)
    await trail.write(tx, actor, "registration_token.create", token.id, None, {"uses": uses, "days": days})
    return token, secret


async def delete_token(tx: Transaction, actor: AuditActor, token_id: int) -> None:
    """Revokes a token. Clients that were registered with it stay. Raises NotFound."""
    token = await store.delete_token(tx, token_id)
    if token is None:
        raise NotFound("registration token not found")
    before = {"uses": token.uses, "uses_left": token.uses_left, "expires": rfc3339(token.expires)}
    await trail.write(tx, actor, "registration_token.delete", token.id, before, None)
