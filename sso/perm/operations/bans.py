"""Who may ban whom: rights in the scope of a ban, and users whose rights the caller could not take away."""

from sso.accounts.bans.operations import NewBan
from sso.accounts.bans.store import project_of
from sso.core.ban import Ban
from sso.core.errors import Conflict, Forbidden
from sso.db.database import Database
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.changes.writer import EVALUATION_S
from sso.perm.delegation import require_removable
from sso.perm.engine.required_rights import Operation
from sso.perm.stores.facts import read_service_rights
from sso.perm.stores.memberships import read_memberships_of

MAX_MEMBERSHIPS = 1000


class BanRights:
    def __init__(self, database: Database, authorizer: Authorizer) -> None:
        self._database = database
        self._authorizer = authorizer

    async def allows(self, caller: Caller, application_id: int | None, project_id: str | None) -> bool:
        """Returns whether the caller may ban in this scope by a role in the project, or at the application."""
        if application_id is not None:
            project_id = await project_of(self._database, application_id)
        rights = await self._authorizer.caller_rights(caller)
        return rights.allow(Operation.USER_BAN, project_id=project_id, application_id=application_id)

    async def require_bannable(self, caller: Caller, user_id: str, ban: NewBan) -> None:
        """Raises Conflict for root and for the caller, Forbidden for a member whom the caller could not remove."""
        if user_id == caller.user_id:
            raise Conflict("you cannot ban yourself")
        if (await read_service_rights(self._database, user_id, caller.now)).is_root:
            raise Conflict("a user with the role root cannot be banned: take the role away first")
        await self.require_removable(caller, user_id, ban)

    async def require_removable(self, caller: Caller, user_id: str, ban: Ban | NewBan) -> None:
        """Raises Forbidden for a member in the scope of the ban whose roles the caller could not take away."""
        project_id, is_of_all = ban.project_id, ban.application_id is None and ban.project_id is None
        if ban.application_id is not None:
            project_id = await project_of(self._database, ban.application_id)
        rights = await self._authorizer.caller_rights(caller)
        for membership in await read_memberships_of(self._database, user_id, MAX_MEMBERSHIPS):
            place = membership["project_id"]
            if not is_of_all and place != project_id:
                continue
            if not rights.allow(Operation.MEMBERSHIP_SAVE, project_id=place):
                raise Forbidden(f"project.can_manage_project is required in {place}: the user has roles there")
            if not rights.is_root:
                await self._database.contended_transaction(EVALUATION_S, require_removable, caller, place, user_id)
