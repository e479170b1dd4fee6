"""Builds the resources of the management API that change permissions."""

from sso.accounts.users import UserStore
from sso.admin.access_keys import AccessKeyResource, access_key_routes
from sso.admin.application_keys import ApplicationKeyResource, application_key_routes
from sso.admin.applications import ApplicationResource, application_routes
from sso.admin.assignments import AssignmentResource, assignment_routes
from sso.admin.conditions import ConditionResource, condition_routes
from sso.admin.groups import GroupResource, group_routes
from sso.admin.members import MemberResource, member_routes
from sso.admin.projects import ProjectResource, project_routes
from sso.admin.request import AdminRoute
from sso.admin.roles import RoleResource, role_routes
from sso.admin.schemas import SchemaResource, schema_routes
from sso.admin.user_details import UserDetails
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.perm.visibility import Visibility
from sso.perm.wiring import Permissions


def permission_routes(
    database: Database,
    keyring: Keyring,
    permissions: Permissions,
    details: UserDetails,
    users: UserStore,
    visibility: Visibility,
) -> tuple[AdminRoute, ...]:
    operations = permissions.operations
    keys = ApplicationKeyResource(database, keyring, permissions.application_keys, permissions.service_jwts)
    return (
        *application_routes(ApplicationResource(database, operations.applications, visibility)),
        *application_key_routes(keys),
        *schema_routes(SchemaResource(database, operations.schemas, visibility)),
        *role_routes(RoleResource(database, operations.roles, visibility)),
        *access_key_routes(AccessKeyResource(database, operations.access_keys, visibility)),
        *project_routes(ProjectResource(database, operations.projects, visibility)),
        *member_routes(MemberResource(database, operations.members, visibility)),
        *group_routes(GroupResource(database, operations.groups, visibility)),
        *condition_routes(ConditionResource(database, users, visibility)),
        *assignment_routes(AssignmentResource(database, operations.user_data, details, visibility)),
    )
