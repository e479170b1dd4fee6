"""POST /api/permissions/audit: the audit trail of a project or application, for its administrators."""

from dataclasses import replace
from typing import Any

from sso.db.database import Database
from sso.perm.authorization import Authorizer
from sso.perm.endpoints.audit_view import AuditView
from sso.perm.endpoints.project_lookup import ProjectLookup
from sso.perm.engine.operations import Operation
from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.names import read_application_id
from sso.perm.request import PermissionRequest
from sso.perm.stores import audit
from sso.perm.stores.audit import AuditFilter

FIELDS = frozenset(
    ("project_id", "application_id", "user_id", "operation", "target", "since", "until", "before_id", "most")
)
MAX_TIMESTAMP = 253402300799  # the end of the year 9999, the last that the database can convert


class AuditEndpoint:
    def __init__(self, database: Database, authorizer: Authorizer, projects: ProjectLookup) -> None:
        self._database = database
        self._authorizer = authorizer
        self._projects = projects

    async def read(self, request: PermissionRequest) -> dict[str, Any]:
        data = request.data
        request.warn_unknown(data, FIELDS)
        audit_filter = await self._read_filter(data)
        rights = await self._authorizer.caller_rights(request.caller, audit_filter.application_id)
        if audit_filter.project_id is not None:
            await self._projects.require(rights, audit_filter.project_id, Operation.PROJECT_SAVE)
        elif not rights.is_root:
            if rights.target_facts is None or rights.target.project_id is None:
                raise rights.refusal(Operation.PROJECT_SAVE)
            rights.require(Operation.PROJECT_SAVE, project_id=rights.target.project_id)
            # Not the entries from the time when the application was in another project.
            audit_filter = replace(audit_filter, project_id=rights.target.project_id)
        entries = await audit.read(self._database, audit_filter)
        next_page = {"next": entries[-1]["id"]} if len(entries) == audit_filter.limit else {}
        view = AuditView(self._authorizer.facts, request.caller, rights.granted)
        return request.response(data=await view.visible(entries), **next_page)

    async def _read_filter(self, data: dict[str, Any]) -> AuditFilter:
        conditions: dict[str, Any] = {}
        for name in data.keys() & {"user_id", "operation", "target"}:
            conditions[name] = validators.read_text(data[name], f"data.{name}", 128)
        for name in data.keys() & {"since", "until"}:
            conditions[name] = min(validators.read_number(data[name], f"data.{name}"), MAX_TIMESTAMP)
        if "before_id" in data:
            conditions["before_id"] = validators.read_number(data["before_id"], "data.before_id")
        limit = validators.read_number(data.get("most", 50), "data.most")
        if not 0 < limit <= audit.MAX_PAGE:
            raise InvalidInput(f"data.most: must be 1 to {audit.MAX_PAGE}")
        if "project_id" in data:
            conditions["project_id"] = await self._projects.read_project_id(data["project_id"], "data.project_id")
        if "application_id" in data:
            conditions["application_id"] = read_application_id(data["application_id"], "data.application_id")
        return AuditFilter(limit=limit, **conditions)
