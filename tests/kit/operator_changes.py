"""Changes that an operator makes while a test has the services in its own process."""

from sso.accounts.model import User
from sso.accounts.password_changes import BY_OPERATOR
from sso.core.ids import secret_token
from sso.db.transaction import Transaction
from sso.oauth.clients import revocation_store, store
from sso.services import Services


async def rotate_secret(services: Services, client_id: str) -> str:
    """Returns the new secret of the client. The previous one stays valid."""
    secret = secret_token()

    async def work(tx: Transaction) -> None:
        client = await store.lock_client(tx, client_id)
        assert client is not None
        await store.add_secret(tx, services.keyring, client, secret, None, None)

    await services.database.transaction(work)
    return secret


async def finish_rotation(services: Services, client_id: str) -> None:
    assert await store.finish_rotation(services.database, client_id)


async def disable_client(services: Services, client_id: str, *, disabled: bool = True) -> None:
    async def work(tx: Transaction) -> None:
        await store.update_client(tx, client_id, {"disabled": disabled})
        if disabled:
            await revocation_store.revoke_grants(tx, client_id)

    await services.database.transaction(work)


async def set_password(services: Services, user: User, password_hash: str) -> User | None:
    return await services.database.transaction(services.password_changes.apply, user, password_hash, BY_OPERATOR, None)
