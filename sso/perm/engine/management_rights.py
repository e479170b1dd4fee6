"""The rights of the management API over all applications and projects: rules of the central application.

They count in requests to that API only. Rights over applications do not count at the central application itself, whose
roles give rights over the whole service.
"""

from collections.abc import Iterable, Mapping

VIEW_APPLICATIONS = "can_view_applications"
MANAGE_APPLICATIONS = "can_manage_applications"
VIEW_PROJECTS = "can_view_projects"
MANAGE_PROJECTS = "can_manage_projects"
APPLICATION_RIGHTS = frozenset((VIEW_APPLICATIONS, MANAGE_APPLICATIONS))
MANAGEMENT_RIGHTS = APPLICATION_RIGHTS | {VIEW_PROJECTS, MANAGE_PROJECTS}

# The rules, by level, that a right includes in every project. A caller gives and takes only roles with these rules.
_HELD_IN_PROJECTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    MANAGE_PROJECTS: (
        ("project", "project.can_view_project"),
        ("project", "project.can_manage_project"),
        ("project", "project.can_remove_project"),
        ("project", "project.can_manage_groups"),
        ("project", "project.can_ban_users"),
        ("groups", "group.can_manage_group"),
    ),
    MANAGE_APPLICATIONS: (
        ("project", "project.can_manage_applications"),
        ("applications", "app.can_manage_app_api_keys"),
        ("applications", "app.can_ban_users"),
    ),
}


def held_in_projects(management: Iterable[str]) -> set[tuple[str, str]]:
    """Returns the rules, each with its level, that these rights include in every project."""
    return {rule for right in management for rule in _HELD_IN_PROJECTS.get(right, ())}
