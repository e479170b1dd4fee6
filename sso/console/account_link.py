"""The link to the console on the account page of users whom the console admits."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sso.accounts.sessions import Session
from sso.admin.own_records import read_own_records
from sso.admin.wiring import ManagementApi
from sso.web.request import client_address


class ConsoleLink:
    def __init__(self, management: ManagementApi) -> None:
        self._management = management

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        caller = await self._management.authenticator.browser_caller(session.user.user_id, client_address())
        with self._management.limit(caller):
            is_admitted = caller.rights or await read_own_records(self._management.visibility, caller, {})
        return {"console_link": bool(is_admitted)}
