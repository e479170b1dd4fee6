"""Whether a project excludes a user, so that neither memberships nor grants of the project take effect."""

from enum import Enum

from sso.perm.engine.facts import ProjectFacts
from sso.perm.engine.groups import groups_with_member
from sso.perm.engine.user_facts import UserFacts


class ProjectExclusion(Enum):
    """Why a project excludes a user."""

    REMOVED = "the project is removed"
    DOMAIN = "the login domain is not among allowed_domains"
    DISALLOW = "the user is in a group of the disallow list"
    ALLOW = "the user is in no group of the allow list"


def project_exclusion(project: ProjectFacts, user: UserFacts) -> ProjectExclusion | None:
    """Returns None if the user has access through the project."""
    if project.removed:
        return ProjectExclusion.REMOVED
    if project.allowed_domains and user.domain not in project.allowed_domains:
        return ProjectExclusion.DOMAIN
    if project.disallow and groups_with_member(project, project.disallow, user):
        return ProjectExclusion.DISALLOW
    if project.allow and not groups_with_member(project, project.allow, user):
        return ProjectExclusion.ALLOW
    return None
