"""The applications, projects and groups that a caller may see, for lists of the management API."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from sso.core.ban import ban_in_force
from sso.db.database import Database
from sso.db.transaction import Row, run_pure
from sso.perm.authorization import Authorizer, CallerRights, missing_sections, rights_of
from sso.perm.caller import Caller
from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.records import OwnRecord, Schema
from sso.perm.engine.required_rights import ROOT_RULES, Operation, is_allowed
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.secret_rights import secret_rights
from sso.perm.stores.record_lists import record_exists
from sso.perm.stores.user_data import has_own_secret_data, has_secret_rights, read_secret_data

FEW_ROWS = 50  # applications whose secret data are computed without a thread


class Visible(Struct, frozen=True):
    everything: bool  # except the central application
    ids: frozenset[int] | frozenset[str]

    def __contains__(self, record_id: object) -> bool:
        return record_id in self.ids or (self.everything and record_id != CENTRAL_APPLICATION_ID)

    def __bool__(self) -> bool:
        return self.everything or bool(self.ids)


class OwnAccess(Struct, frozen=True):
    """What a caller may do by permissions of their own, in place of rights of the management API."""

    projects: bool = False  # the caller may see some
    applications: bool = False
    groups: bool = False
    creates_applications: bool = False  # in one of the caller's projects, or in none
    operations: frozenset[Operation] = frozenset()  # at the project, application and group of the request
    readable: frozenset[str] = frozenset()  # sections of all users' data at the application
    writable: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.projects or self.applications or self.groups or self.creates_applications


NO_ACCESS = OwnAccess()


class Visibility:
    def __init__(self, database: Database, authorizer: Authorizer) -> None:
        self._database = database
        self._authorizer = authorizer

    async def records(self, kind: str, caller: Caller, operation: Operation) -> Visible:
        """Returns the records on which the caller may do the operation. ``kind`` is application, project or group."""
        find = {"application": self.applications, "project": self.projects, "group": self.groups}[kind]
        return await find(caller, operation)

    async def exists(self, kind: str, record_id: int | str) -> bool:
        return await record_exists(self._database, kind, record_id)

    async def has_permissions(self, caller: Caller) -> bool:
        """Returns whether the caller has any right of §5.5: over the service, in a project, or at an application."""
        granted = (await self._authorizer.caller_rights(caller)).granted
        if granted.is_root or granted.central.projects or not granted.root_rules.isdisjoint(ROOT_RULES):
            return True
        return await has_secret_rights(self._database, caller.user_id)

    async def own_access(
        self,
        caller: Caller,
        *,
        project_id: str | None = None,
        application_id: int | None = None,
        group_id: str | None = None,
    ) -> OwnAccess:
        """What the caller may do as a member of projects, or by own secret data at applications.

        Rights that an application gives to all users do not count: they make no one an administrator.
        """
        rights = await self._authorizer.caller_rights(caller, application_id)
        is_member = bool(rights.granted.central.projects)
        if not is_member and not await has_own_secret_data(self._database, caller.user_id):
            return NO_ACCESS
        if project_id is None and rights.target_facts is not None:
            project_id = rights.target_facts.project_id
        target = {"project_id": project_id, "application_id": application_id, "group_id": group_id}
        return OwnAccess(
            bool(await self.projects(caller, Operation.PROJECT_GET)),
            bool(await self.applications(caller, Operation.APPLICATION_GET)),
            any(_allowed_groups(rights, Operation.GROUP_GET)),
            any(
                rights.allow(Operation.APPLICATION_CREATE_IN_PROJECT, project_id=access.project.id)
                for access in rights.granted.central.projects
            )
            or rights.allow(Operation.APPLICATION_CREATE),
            frozenset(operation for operation in Operation if rights.allow(operation, **target)),
            rights.granted.readable_sections(own=False),
            rights.granted.writable_sections(own=False),
        )

    async def applications(self, caller: Caller, operation: Operation) -> Visible:
        """Returns the applications on which the caller may do the operation."""
        rights = await self._authorizer.caller_rights(caller)
        if rights.is_root:
            return Visible(everything=True, ids=frozenset((CENTRAL_APPLICATION_ID,)))
        everything = rights.allow(operation)
        central = rights.granted.central
        projects = [access.project.id for access in central.projects]
        rows = await read_secret_data(self._database, caller.user_id, projects, central_only=everything)
        facts = await self._authorizer.user_facts(caller)
        work = caller, facts, central, operation, rows
        return Visible(everything, await run_pure(self._database, len(rows) > FEW_ROWS, _allowed_applications, *work))

    async def sections(self, caller: Caller, application_id: int) -> frozenset[str]:
        """Returns the sections of all users' data at an application that the caller may read. It need not exist."""
        rights = await self._authorizer.caller_rights(caller, application_id)
        return rights.granted.readable_sections(own=False)

    async def require_sections(self, caller: Caller, application_id: int, *sections: str) -> None:
        """Raises Forbidden if the caller may not read these sections of all users' data at the application."""
        missing = set(sections) - await self.sections(caller, application_id)
        if missing:
            raise missing_sections("canRead", missing)

    async def projects(self, caller: Caller, operation: Operation) -> Visible:
        """Returns the projects on which the caller may do the operation."""
        rights = await self._authorizer.caller_rights(caller)
        project_ids = (access.project.id for access in rights.granted.central.projects)
        allowed = frozenset(project_id for project_id in project_ids if rights.allow(operation, project_id=project_id))
        return Visible(rights.allow(operation), allowed)

    async def may_name_project(self, caller: Caller, project_id: str, visible: Visible) -> bool:
        """Returns whether a caller who sees ``visible`` may know of the project: it exists, or the caller is a
        member."""
        if visible.everything:
            return await self.exists("project", project_id)
        rights = await self._authorizer.caller_rights(caller)
        return any(access.project.id == project_id for access in rights.granted.central.projects)

    async def groups(self, caller: Caller, operation: Operation) -> Visible:
        """Returns the groups on which the caller may do the operation, which needs a rule at the group."""
        rights = await self._authorizer.caller_rights(caller)
        return Visible(rights.allow(operation), frozenset(_allowed_groups(rights, operation)))


def _allowed_groups(rights: CallerRights, operation: Operation) -> Iterator[str]:
    """Returns those of the groups with rules for the caller on which the caller may do the operation."""
    for access in rights.granted.central.projects:
        for group_id in (scope.resource for scope in access.scopes if scope.level == "groups"):
            if rights.allow(operation, project_id=access.project.id, group_id=group_id):
                yield group_id


def _allowed_applications(
    caller: Caller, facts: PermissionFacts, central: EffectivePermissions, operation: Operation, rows: Iterable[Row]
) -> frozenset[int]:
    """Returns those of the applications in ``rows`` on which the caller may do the operation."""
    ids = set()
    for row in rows:
        application_id, project_id = row["application_id"], row["project_id"]
        is_banned = ban_in_force(facts.bans, caller.now, (application_id,), (project_id,) if project_id else ())
        has_own = not (is_banned or facts.user.cannot_administer or caller.second_factor_missing)
        own = OwnRecord(secret_data=(has_own and row["own_secret_data"]) or {})
        secret = secret_rights(Schema(secret_data=row["secret_data"]), own, caller.now)
        granted = rights_of(caller, central, application_id, secret)
        if is_allowed(operation, granted, project_id=project_id, application_id=application_id):
            ids.add(application_id)
    return frozenset(ids)
