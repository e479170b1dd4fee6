"""Invitations of a server."""

from datetime import datetime

from sso.cli.administration import Fields
from sso.cli.invitation_administration import ListedInvitations, NewInvitation
from sso.cli.lookups import login_has_account
from sso.client import AsyncSsoClient, Record, RecordNotFound, RequestRefused, invitations

PAGE = 200


class RemoteInvitations:
    def __init__(self, api: AsyncSsoClient) -> None:
        self._api = api

    async def create(self, login: str, days: int, lang: str) -> NewInvitation:
        try:
            created = await self._api.send(invitations.create({"login": login, "days": days, "lang": lang}))
        except RequestRefused as error:
            if error.status == 409 and error.text.startswith("login:"):
                raise login_has_account(login) from None
            raise
        return NewInvitation(created["link"], created["mailed"])

    async def list(self) -> ListedInvitations:
        return [_listed(item) async for item in self._api.pages(invitations.list(limit=PAGE))]

    async def revoke(self, listed: ListedInvitations) -> int:
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
