"""Invitations in the database of this machine."""

from typing import TYPE_CHECKING

from sso.cli.context import write_audit_entry
from sso.cli.invitation_administration import ListedInvitations, NewInvitation
from sso.cli.lookups import login_has_account

if TYPE_CHECKING:
    from sso.cli.services import CommandServices


class LocalInvitations:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services

    async def create(self, login: str, days: int, lang: str) -> NewInvitation:
        services, settings = self._services, self._services.settings
        if await services.users.get_by_login(login):
            raise login_has_account(login)
        sends_mail = settings.smtp_url is not None
        await write_audit_entry(services, "invitation.create", login, {"days": days, "mailed": sends_mail})
        link = await services.invitations.create(login, days, lang, sends_mail=sends_mail)
        return NewInvitation(link, sends_mail, settings.registration != "closed")

    async def list(self) -> ListedInvitations:
        return [
            {
                "id": invitation.id,
                "login": invitation.login,
                "created": int(invitation.created.timestamp()),
                "expires": int(invitation.expires.timestamp()),
            }
            for invitation in await self._services.invitations.list()
        ]

    async def revoke(self, invitations: ListedInvitations) -> int:
        for invitation in invitations:
            await write_audit_entry(self._services, "invitation.delete", invitation["login"], {"id": invitation["id"]})
        return await self._services.invitations.revoke([invitation["id"] for invitation in invitations])
