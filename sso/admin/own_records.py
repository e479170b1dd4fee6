"""Which routes callers without rights may use by permissions of their own, so that the console shows only these.

The handlers check the permissions themselves (``AdminRoute.by_permissions``).
"""

from collections.abc import Mapping

from sso.admin.caller import AdminCaller
from sso.admin.request import AdminRoute
from sso.admin.rights import AdminRight
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import is_application_key, is_segment
from sso.perm.visibility import NO_ACCESS, OwnAccess, Visibility

_PROJECT = "/projects/<project_id>"
_MEMBERS = f"{_PROJECT}/members"
_MEMBER = f"{_MEMBERS}/<user_id>"
_APPLICATION, _SCHEMA = "/applications/<application_id>", "/schemas/<application_id>"
_ROLE = "/roles/<application_id>/<name>"
# The operation of each route at the project, application or group of the request.
_OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("POST", "/projects"): Operation.PUBLISH,
    ("GET", _PROJECT): Operation.PROJECT_GET,
    ("PATCH", _PROJECT): Operation.PROJECT_SAVE,
    ("DELETE", _PROJECT): Operation.PROJECT_DELETE,
    ("GET", f"{_PROJECT}/roles"): Operation.MEMBERSHIP_GET,
    ("GET", _MEMBERS): Operation.MEMBERSHIP_GET,
    ("POST", _MEMBERS): Operation.MEMBERSHIP_SAVE,
    ("GET", _MEMBER): Operation.MEMBERSHIP_GET,
    ("PATCH", _MEMBER): Operation.MEMBERSHIP_SAVE,
    ("DELETE", _MEMBER): Operation.MEMBERSHIP_SAVE,
    ("POST", "/groups"): Operation.GROUP_SAVE,
    ("GET", "/groups/<group_id>"): Operation.GROUP_GET,
    ("PATCH", "/groups/<group_id>"): Operation.GROUP_ACCESS,
    ("DELETE", "/groups/<group_id>"): Operation.GROUP_DELETE,
    ("GET", _APPLICATION): Operation.APPLICATION_GET,
    ("PATCH", _APPLICATION): Operation.APPLICATION_SAVE,
    ("DELETE", _APPLICATION): Operation.APPLICATION_DELETE,
    ("GET", "/roles"): Operation.ROLE_LIST,
    ("POST", "/roles"): Operation.ROLE_MODIFY,
    ("GET", _ROLE): Operation.ROLE_LIST,
    ("PATCH", _ROLE): Operation.ROLE_MODIFY,
    ("DELETE", _ROLE): Operation.ROLE_MODIFY,
    ("GET", _SCHEMA): Operation.SCHEMA_READ,
    ("PATCH", _SCHEMA): Operation.SCHEMA_MODIFY,
    ("GET", "/access-keys"): Operation.ACCESS_KEY_LIST,
    ("POST", "/access-keys"): Operation.ACCESS_KEY,
    ("DELETE", "/access-keys/<key_id>"): Operation.ACCESS_KEY,
}


class OwnRecords:
    """The records that a caller sees or manages by permissions, and the routes that may be used for them."""

    def __init__(self, access: OwnAccess = NO_ACCESS) -> None:
        self._access = access
        self.groups = access.groups
        self.projects = access.projects or access.groups
        self.applications = access.applications or access.creates_applications

    def __bool__(self) -> bool:
        return bool(self._access)

    def allow(self, route: AdminRoute) -> bool:
        """Returns whether the route may be used for the record of the request, or shows some records."""
        access = self._access
        if not route.by_permissions:
            return False
        match route.method, route.path:
            case "GET", "/projects":
                return access.projects
            case "GET", "/groups":
                return access.groups
            case "GET", "/applications":
                return access.applications
            case "POST", "/applications":
                return access.creates_applications
            case "POST", "/conditions/test":
                return bool(access)
            case "GET", "/applications/<application_id>/holders":
                return "roles" in access.readable
            case "GET", "/users/<user_id>/permissions" | "/users/<user_id>/can" | "/applications/<application_id>/who":
                return {"roles", "private_data"} <= access.readable
            case "PATCH", "/users/<user_id>/permissions":
                return "roles" in access.writable
        return _OPERATIONS.get((route.method, route.path)) in access.operations


async def read_own_records(visibility: Visibility, caller: AdminCaller, target: Mapping[str, str]) -> OwnRecords:
    """``target``: the ids of the request, as texts. Callers with the rights to manage all records need no others."""
    if caller.is_root or {AdminRight.MANAGE_PROJECTS, AdminRight.MANAGE_APPLICATIONS} <= caller.rights:
        return OwnRecords()
    application_id, project_id = target.get("application_id", ""), target.get("project_id", "")
    access = await visibility.own_access(
        caller.permissions,
        project_id=project_id if is_segment(project_id) else None,
        application_id=int(application_id) if is_application_key(application_id) else None,
        group_id=target.get("group_id"),
    )
    return OwnRecords(access)
