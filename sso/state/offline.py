"""Checks the assertions of a document without a database and a service: only what the document has exists."""

from typing import Any, NamedTuple

from sso.core.field_errors import FieldPath
from sso.perm.changes.impact import FailedAssertion
from sso.perm.changes.offline_state import OfflineGroup, OfflineState
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.input.references import encode_assignments
from sso.state.document import Document
from sso.state.location import error_location
from sso.state.sections.memberships import with_admins


class OfflineReport(NamedTuple):
    checked: int  # assertions
    failed: list[tuple[FieldPath, FailedAssertion]]  # with the location in the document

    @property
    def json(self) -> dict[str, Any]:
        return {"checked": self.checked, "failed": [item.json for _, item in self.failed], "warnings": []}


def check_document(document: Document, now: int, application_id: int | None = None) -> OfflineReport:
    """Raises FieldError if the document does not fit together."""
    state = build_state(document)
    locations = {
        (part.id, text): (*part.location, "assertions", index)
        for part in document.applications
        if application_id in (None, part.id)
        for index, text in enumerate(part.assertions or ())
    }
    found = ((locations.get((item.application_id, item.statement)), item) for item in state.check(now))
    failed = [(location, item) for location, item in found if location is not None]
    return OfflineReport(len(locations), sorted(failed, key=lambda item: str(item[0])))


def build_state(document: Document) -> OfflineState:
    state = OfflineState()
    for user in document.users:
        state.add_user(user.user_id, user.login, user.tags or (), user.purchases or ())
    _add_applications(state, document)
    _add_projects(state, document)
    for part in document.permissions:
        roles = encode_assignments(part.roles or ())
        state.add_record(part.user, part.application_id, {**part.fields, "roles": roles})
    return state


def _add_applications(state: OfflineState, document: Document) -> None:
    schemas = {part.id: part for part in document.schemas}
    named = {part.id: part for part in document.applications}
    for application_id in sorted({CENTRAL_APPLICATION_ID, *schemas, *named}):
        schema, part = schemas.get(application_id), named.get(application_id)
        state.add_application(
            application_id,
            part.fields.get("project_id") if part else None,
            schema.fields if schema else {},
            [role for _, role in schema.roles] if schema else [],
            (part.assertions or ()) if part else (),
        )


def _add_projects(state: OfflineState, document: Document) -> None:
    projects = {part.id: part for part in document.projects}
    memberships = {part.id: part for part in document.memberships}
    for project_id in sorted({*projects, *memberships}):
        project, membership = projects.get(project_id), memberships.get(project_id)
        groups = [
            OfflineGroup(
                part.id,
                part.fields.get("title", ""),
                part.fields.get("users", []),
                part.fields.get("conditions", []),
                part.fields.get("tags", []),
            )
            for part in document.groups
            if part.project_id == project_id
        ]
        applications = [
            (part.id, part.fields.get("name", ""), bool(part.fields.get("service_meta")))
            for part in document.applications
            if part.fields.get("project_id") == project_id
        ]
        data = membership.data if membership else {}
        admins = [state.find_user(name) for name in project.admins] if project else []
        if admins:
            data = data | {"users": with_admins(data.get("users", []), admins)}
        fields = project.fields if project else {}
        with error_location(membership.location if membership else project.location if project else ()):
            state.add_project({"id": project_id, **fields}, groups, applications, data)
