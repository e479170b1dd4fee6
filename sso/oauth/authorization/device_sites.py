"""Describes the clients of devices to the confirmation page, and records what the user has confirmed."""

from collections.abc import Sequence

from sso.accounts.account_page.sections import describe_scopes
from sso.accounts.device_sites import DeviceSite
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.session_store import Session
from sso.accounts.sign_in_notices import SignInNotices
from sso.core.net import Address
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.oauth.authorization.store import AuthorizationStore
from sso.oauth.clients.branding import site_brand
from sso.oauth.clients.store import ClientStore
from sso.oauth.model import DEVICE_CODE, Client


class ClientDeviceSites:
    def __init__(
        self, database: Database, clients: ClientStore, authorizations: AuthorizationStore, notices: SignInNotices
    ) -> None:
        self._database = database
        self._clients = clients
        self._authorizations = authorizations
        self._notices = notices

    async def get(self, client_id: str, scopes: Sequence[str]) -> DeviceSite | None:
        client = await self._clients.get(client_id)
        if client is None or client.disabled or DEVICE_CODE not in client.grant_types:
            return None
        return DeviceSite(
            client.title,
            site_brand(client),
            describe_scopes(scopes),
            offline="offline_access" in scopes,
            first_party=client.first_party,
        )

    async def record_grant(self, session: Session, client_id: str, scopes: Sequence[str], address: Address) -> None:
        """Records the event. The user has seen the scopes, so this is also the consent to a client that needs it."""
        client = await self._clients.get(client_id)
        if client is None:
            return
        if client.consent:
            await self._authorizations.save_consent(session, client, scopes)
        else:
            await self._database.transaction(_record, session.user.user_id, client)
        await self._notices.site_signed_in(session.user, client_id, client.title, address)


async def _record(tx: Transaction, user_id: str, client: Client) -> None:
    await record_event(tx, user_id, EventKind.SITE_GRANTED, name=client.title)
