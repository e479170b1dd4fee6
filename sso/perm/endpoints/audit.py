"""POST /api/permissions/audit: the trail of a project or application, for those who administer it."""

from dataclasses import replace
from typing import Any

from sso.db.database import Database
from sso.perm.authorization import Authorizer
from sso.perm.endpoints.audit_view import AuditView
from sso.perm.engine.operations import Operation
from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.names import read_application_id
from sso.perm.projects import ProjectEndpoint
from sso.perm.request import PermissionRequest
from sso.perm.stores import audit
from sso.perm.stores.audit import AuditFilter

KNOWN = frozenset(
    ("project_id", "application_id", "user_id", "operation", "target", "since", "until", "before_id", "most")
)

LATEST = 253402300799  # the end of the year 9999: the database knows no moment of every number


class AuditEndpoint:
    def __init__(self, database: Database, desk: Authorizer, projects: ProjectEndpoint) -> None:
        self._database = database
        self._desk = desk
        self._projects = projects

    async def handle(self, call: PermissionRequest) -> dict[str, Any]:
        data = call.data
        call.ignore_unknown(data, KNOWN)
        wanted = await self._filter(data)
        standing = await self._desk.standing(call.caller, wanted.application_id)
        if wanted.project_id is None and not standing.rights.is_root:
            if standing.at is None or standing.at.project_id is None:
                raise standing.missing(Operation.PROJECT_SAVE)
            standing.require(Operation.PROJECT_SAVE, project_id=standing.at.project_id)
            wanted = replace(wanted, project_id=standing.at.project_id)  # not what it was in other hands
        elif wanted.project_id is not None:
            await self._projects.visible(standing, wanted.project_id, Operation.PROJECT_SAVE)
        entries = await audit.read(self._database, wanted)
        next_page = {"next": entries[-1]["id"]} if len(entries) == wanted.most else {}
        view = AuditView(self._desk.facts, call.caller, standing.rights)
        return call.answer(data=await view.shown(entries), **next_page)

    async def _filter(self, data: dict[str, Any]) -> AuditFilter:
        said: dict[str, Any] = {}
        for name in data.keys() & {"user_id", "operation", "target"}:
            said[name] = validators.read_text(data[name], f"data.{name}", 128)
        for name in data.keys() & {"since", "until"}:
            said[name] = min(validators.read_number(data[name], f"data.{name}"), LATEST)
        if "before_id" in data:
            said["before_id"] = validators.read_number(data["before_id"], "data.before_id")
        most = validators.read_number(data.get("most", 50), "data.most")
        if not 0 < most <= audit.MAX_PAGE:
            raise InvalidInput(f"data.most: must be 1 to {audit.MAX_PAGE}")
        return AuditFilter(
            project_id=await self._projects.resolve(data["project_id"], "data.project_id")
            if "project_id" in data
            else None,
            application_id=read_application_id(data["application_id"], "data.application_id")
            if "application_id" in data
            else None,
            most=most,
            **said,
        )
