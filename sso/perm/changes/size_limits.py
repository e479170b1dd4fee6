"""Limits of what the evaluation of one user at an application, or in a project, depends on.

A write is refused if it adds to an application or a project that is beyond a limit afterwards. One that was beyond it
before can be made smaller, and changed otherwise. The locks of the write keep other writes from adding meanwhile: a
write of roles locks the application, and a write of groups shares the locks of all applications of the project.
"""

from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.conditions import count_nodes
from sso.perm.engine.facts import ProjectFacts
from sso.perm.errors import PermissionConflict
from sso.perm.input.schema import MAX_ROLES
from sso.perm.stores.permission_state import PermissionState

MAX_CONDITION_NODES = 20_000  # of the roles of one application and of the groups of its project, together
MAX_APPLICATION_BYTES = 8_000_000  # of the schema and the roles of one application, as JSON
# Of the rules of the schema and the roles of one application: each with its path, its parameters and those of its role.
# It bounds the list of a user. With short parameters, a rule is about as long there as in `MAX_APPLICATION_BYTES`.
MAX_LIST_BYTES = 16_000_000
MAX_PROJECT_APPLICATIONS = 10_000  # of one project, with those that are removed


def check_sizes(before: PermissionState, after: PermissionState) -> None:
    """Raises PermissionConflict if an application or a project has become too large.

    Only compiled applications are checked.
    """
    _check_applications(before, after)
    _check_projects(before, after)


def _check_applications(before: PermissionState, after: PermissionState) -> None:
    for application_id, new in after.compiled.items():
        old = before.compiled.get(application_id)
        if len(new.roles) > max(MAX_ROLES, len(old.roles) if old else 0):
            raise PermissionConflict(f"application {application_id}: an application has at most {MAX_ROLES} roles")
        if new.size > max(MAX_APPLICATION_BYTES, old.size if old else 0):
            raise PermissionConflict(
                f"application {application_id}: the schema and the roles of an application have at most "
                f"{MAX_APPLICATION_BYTES} characters of JSON together, and {new.size} after this change"
            )
        _check_list_size(application_id, old, new)
        nodes = new.condition_nodes + group_nodes(after.home(application_id))
        if nodes > MAX_CONDITION_NODES:
            nodes_before = (old.condition_nodes if old else 0) + group_nodes(before.home(application_id))
            if nodes > nodes_before:
                raise PermissionConflict(
                    f"application {application_id}: the conditions of its roles and of the groups of its project have "
                    f"at most {MAX_CONDITION_NODES} nodes together, and {nodes} after this change"
                )


def _check_list_size(application_id: int, old: CompiledApplication | None, new: CompiledApplication) -> None:
    if new is old or new.list_size <= MAX_LIST_BYTES:
        return
    if new.list_size > (old.list_size if old else 0):
        raise PermissionConflict(
            f"application {application_id}: the rules of its schema and its roles, each with its path, its params and "
            f"the params of its role, have at most {MAX_LIST_BYTES} characters together, and {new.list_size} after "
            "this change"
        )


def _check_projects(before: PermissionState, after: PermissionState) -> None:
    for project_id, new in after.projects.items():
        old = before.projects.get(project_id)
        if len(new.applications) > max(MAX_PROJECT_APPLICATIONS, len(old.applications) if old else 0):
            raise PermissionConflict(
                f"project_id: a project has at most {MAX_PROJECT_APPLICATIONS} applications, with those that are "
                f"removed, and {project_id} has {len(new.applications)} after this change"
            )
        nodes = group_nodes(new)
        if nodes > max(MAX_CONDITION_NODES, group_nodes(old)):
            raise PermissionConflict(
                f"project {project_id}: the conditions of its groups have at most {MAX_CONDITION_NODES} nodes "
                f"together, and {nodes} after this change"
            )


def applications_with_more_groups(before: PermissionState, after: PermissionState) -> list[int]:
    """Returns the applications of projects whose groups have more nodes after the write."""
    grown = {
        project_id
        for project_id, project in after.projects.items()
        if group_nodes(project) > group_nodes(before.projects.get(project_id))
    }
    return [key for key, application in after.applications.items() if application.project_id in grown]


def group_nodes(project: ProjectFacts | None) -> int:
    if project is None:
        return 0
    return sum(count_nodes(item.condition) for group in project.groups for item in group.conditions)
