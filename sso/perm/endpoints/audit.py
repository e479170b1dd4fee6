"""POST /api/permissions/audit: the audit trail of a project or application, for its administrators."""

from typing import Any

from msgspec.structs import replace

from sso.audit import trail
from sso.audit.trail import DEFAULT_PAGE, AuditFilter
from sso.db.database import Database
from sso.perm.authorization import Authorizer
from sso.perm.endpoints.audit_view import AuditView
from sso.perm.engine.required_rights import Operation
from sso.perm.input.audit import FIELDS, read_audit_filter
from sso.perm.operations.lookups import ProjectLookup
from sso.perm.request import PermissionRequest
from sso.perm.stores.projects import resolve_project_id


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
        entries = await trail.read(self._database, audit_filter)
        next_page = {"next": entries[-1]["id"]} if len(entries) == audit_filter.limit else {}
        view = AuditView(self._authorizer.facts, request.caller, rights.granted)
        return request.response(data=await view.visible(entries), **next_page)

    async def _read_filter(self, data: dict[str, Any]) -> AuditFilter:
        fields = read_audit_filter(data)
        if "project_id" in fields:
            fields["project_id"] = await resolve_project_id(self._database, fields["project_id"])
        limit = fields.pop("most", DEFAULT_PAGE)
        return AuditFilter(limit=limit, **fields)
