"""Invitations."""

from datetime import datetime

from sso.cli.lookups import login_has_account
from sso.cli.records.api import PAGE, CommandApi
from sso.cli.records.types import Fields, Records
from sso.client import Record, RecordNotFound, RequestRefused, invitations


class ManagedInvitations:
    def __init__(self, api: CommandApi) -> None:
        self._api = api

    async def create(self, login: str, days: int, lang: str) -> Record:
        try:
            created = await self._api.send(invitations.create({"login": login, "days": days, "lang": lang}))
        except RequestRefused as error:
            if error.status == 409 and error.field == ("login",):
                raise login_has_account(login) from None
            raise
        return created

    async def list(self) -> Records:
        return [_listed(item) async for item in self._api.pages(invitations.list(limit=PAGE))]

    async def revoke(self, listed: Records) -> int:
        revoked = 0
        for invitation in listed:
            try:
                await self._api.send(invitations.delete(invitation["id"]))
                revoked += 1
            except RecordNotFound:  # it was used or revoked meanwhile
                continue
        return revoked


def _listed(item: Record) -> Fields:
    times = {name: int(datetime.fromisoformat(item[name]).timestamp()) for name in ("created", "expires")}
    return {"id": item["id"], "login": item["login"], **times}
