"""The link to the console on the account page of administrators."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sso.accounts.sessions import Session
from sso.admin.caller import AdminAuthenticator
from sso.web.request import client_address


class ConsoleLink:
    def __init__(self, authenticator: AdminAuthenticator) -> None:
        self._authenticator = authenticator

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        caller = await self._authenticator.browser_caller(session.user.user_id, client_address())
        return {"console_link": bool(caller.rights)}
